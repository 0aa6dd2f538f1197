"""Logs who sends requests that are refused for good: they are lost, and no metric says whose
they were.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

import structlog

from pathgauge.collector.core.repetitions import Repetitions

_log = structlog.get_logger(__name__)

LOG_INTERVAL_S = 60.0
"""Minimum time between two lines about an address and an answer."""
MAX_KINDS = 20
"""Addresses and answers in that time. More may be an attack, which must not fill the log."""
_MAX_AGENT_CHARS = 100


class Sender(NamedTuple):
    """What is known of who sent a request. It may be a proxy."""

    peer: str
    """The address, without the port."""
    user_agent: str = ""
    tenant: str = ""
    """Empty if there is only one, or it is unknown."""


class RefusedRequests:
    """For one thread."""

    def __init__(self, transport: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._transport = transport
        self._clock = clock
        self._repetitions = Repetitions(LOG_INTERVAL_S, MAX_KINDS)

    def note(self, sender: Sender, code: str, **about: str) -> None:
        """Log the sender, unless there was a line about it shortly before. `code` is the answer,
        and `about` is what else is known of the request.
        """
        requests = self._repetitions.due((sender.peer, code), self._clock())
        if not requests:
            return
        told = {"user_agent": _shown(sender.user_agent), "tenant": sender.tenant}
        known = {
            "code": code,
            "requests": requests,
            "transport": self._transport,
            **{name: _shown(text) for name, text in about.items()},
            "peer": sender.peer,
            **{name: value for name, value in told.items() if value},
        }
        if code == "partial_success":
            _log.warning("records refused, senders do not retry this", **known)
        else:
            _log.warning("export request refused, senders do not retry this", **known)


def _shown(text: str) -> str:
    """Short and printable: a sender can write anything."""
    return "".join(char if char.isprintable() else "?" for char in text[:_MAX_AGENT_CHARS])

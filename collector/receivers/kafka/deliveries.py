"""Brings the reports about delivered records from the polling thread to the event loop."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import suppress

import structlog
from confluent_kafka import KafkaError, Message

_log = structlog.get_logger(__name__)

_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE})
_LOG_INTERVAL_S = 10.0
"""What keeps a broker from taking records usually concerns all of them."""


class Request:
    """One request whose records are being delivered. Only the polling thread counts its records, so
    that no lock is needed.
    """

    __slots__ = ("_deliveries", "_is_durable", "_left", "loop", "outcome", "too_large")

    def __init__(
        self, loop: asyncio.AbstractEventLoop, records: int, deliveries: Deliveries
    ) -> None:
        self.loop = loop
        self.outcome: asyncio.Future[bool] = loop.create_future()
        """Whether every record is acknowledged, or was refused for its size."""
        self.too_large = 0
        """Spans or log records in messages that a broker refused for their size."""
        self._left = records
        self._is_durable = True
        self._deliveries = deliveries

    def part(self, members: int) -> Callable[[KafkaError | None, Message], None]:
        """The callback of one Kafka record that holds so many spans or log records."""

        def delivered(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                self._failed(error, members)
            self._left -= 1
            if not self._left:
                self._deliveries.completed.append((self, self._is_durable))

        return delivered

    def _failed(self, error: KafkaError, members: int) -> None:
        if error.code() in _TOO_LARGE:
            self.too_large += members
        else:
            self._is_durable = False
            self._deliveries.log(error)


class Deliveries:
    """The requests that are completed but not yet reported."""

    def __init__(self) -> None:
        self.completed: list[tuple[Request, bool]] = []
        self._log_at = -math.inf

    def log(self, error: KafkaError) -> None:
        """Log why a record is not durable, but not for each of them."""
        now = time.monotonic()
        if now >= self._log_at:
            self._log_at = now + _LOG_INTERVAL_S
            _log.warning(
                "a record did not reach Kafka; its sender is told to retry", error=error.str()
            )

    def resolve(self) -> bool:
        """Report them, each event loop at once. Returns whether one of them is durable."""
        completed, self.completed = self.completed, []
        for loop in {request.loop for request, _ in completed}:
            own = [one for one in completed if one[0].loop is loop]
            with suppress(RuntimeError):  # the event loop is closed: nobody waits any more
                loop.call_soon_threadsafe(_report, own)
        return any(is_durable for _, is_durable in completed)


def _report(completed: list[tuple[Request, bool]]) -> None:
    for request, is_durable in completed:
        if not request.outcome.done():
            request.outcome.set_result(is_durable)

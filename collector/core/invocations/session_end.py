"""Finds the signal that a session ended with a turn, and how.

The signal is the attribute `pathgauge.session.end` of any span or log record of the turn, or a span
event or log record of that name. Its value, or the attribute `outcome` of the event, says how the
session ended: `resolved`, `escalated`, `abandoned`, or another word. `true` says only that it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.otlp.spans import LogRecord
from pathgauge.scorers.session_protocol import ENDED

KEY = "pathgauge.session.end"
OUTCOME = "outcome"
"""The attribute of an event of that name."""
MAX_CHARS = 64
_MARK = KEY.encode()


def find(entry: Node, members: Sequence[Node], logs: Iterable[LogRecord]) -> str | None:
    """The last outcome that signals of the turn name; `ended` if none does, `None` without a
    signal.
    """
    outcomes = list(filter(None, map(_outcome, _values(entry, members, logs))))
    named = [outcome for outcome in outcomes if outcome != ENDED]
    return next(reversed(named or outcomes), None)


def _values(entry: Node, members: Sequence[Node], logs: Iterable[LogRecord]) -> Iterator[Any]:
    nodes = [*entry.ancestors(), entry, *(node for node in members if node is not entry)]
    for span in (span for node in nodes for span in node.spans):
        if _MARK not in span.raw:
            continue
        yield span.attributes.get(KEY)
        for event in span.events:
            if event.name == KEY:
                yield _named(event.attributes)
    for log in logs:
        if _MARK in log.raw:
            yield log.attributes.get(KEY)
            if log.event_name == KEY:
                yield _named(log.attributes)


def _named(attributes: Mapping[str, Any]) -> Any:
    return attributes.get(OUTCOME, True)


def _outcome(value: Any) -> str | None:
    if value is True:
        return ENDED
    if not isinstance(value, str):
        return None
    return " ".join(value.split())[:MAX_CHARS].casefold() or None

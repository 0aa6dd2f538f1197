"""Traces of a simulated past: five kinds of turns, most of them good, some parts of conversations,
with times of whole microseconds, which every backend keeps.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from support.turns import otlp, script, turn

START: Final = 1_760_000_400
"""In Unix seconds: 2025-10-09T09:00:00Z."""
SECOND: Final = 1_000_000_000
CONVERSATION: Final = "chat"
REFERENCES: Final[list[dict[str, Any]]] = [
    {
        "scenario": "refund",
        "expected_tools": ["lookup_order", "issue_refund"],
        "expected_response": "It is refunded.",
    },
    {"scenario": "weather", "expected_tools": ["get_weather"]},
    {
        "scenario": "support",
        "turns": [{"expected_tools": ["search"]}, {"expected_tools": []}],
    },
]
CRITERIA: Final[dict[str, Any]] = {
    "tool_trajectory_avg_score": 1.0,
    "tool_trajectory_f1": 0.8,
    "response_match_score": 0.5,
    "failure": None,
    "total_tokens": None,
    "latency": None,
}
_KINDS = (
    ("refund", ("lookup_order", "issue_refund"), "It is refunded."),
    ("refund", ("lookup_order",), "I looked at it."),
    ("weather", ("get_weather",), "It rains."),
    ("support", ("search",), "I found it."),
    ("support", (), "You are welcome."),
    ("", ("browse", "browse"), "That is all."),
)
_SHARES = (40, 4, 30, 10, 10, 6)


@dataclass(frozen=True)
class Past:
    """A trace that was kept."""

    start: int
    """Unix nanoseconds."""
    trace_id: str
    service: str
    conversation: str
    body: bytes
    """An OTLP request."""


@dataclass(frozen=True)
class Archive:
    """All traces that were kept, the oldest first."""

    traces: Sequence[Past]

    def between(self, since: int, until: int) -> Sequence[Past]:
        """Those that began in this time, both ends included, in Unix nanoseconds."""
        starts = self._starts
        return self.traces[bisect_left(starts, since) : bisect_left(starts, until + 1)]

    @property
    def _starts(self) -> list[int]:
        return _starts_of(self)

    def __hash__(self) -> int:
        return id(self)


@cache
def _starts_of(archive: Archive) -> list[int]:
    return [one.start for one in archive.traces]


def archive(traces: int, seconds: float, seed: int = 1, begin: int = START) -> Archive:
    """So many traces, evenly over so many seconds from `begin` on."""
    chance, found = random.Random(seed), []
    turns_left: list[str] = []
    for number in range(traces):
        start = begin * SECOND + int(number * seconds / traces * 1e6) * 1000
        kind = chance.choices(range(len(_KINDS)), _SHARES)[0]
        conversation = f"alone-{number}"
        if kind == 3:
            turns_left.append(conversation := f"{CONVERSATION}-{number}")
        elif kind == 4 and turns_left:
            conversation = turns_left.pop()
        found.append(_trace(kind, number, start, conversation, chance))
    return Archive(found)


@cache
def _template(kind: int) -> bytes:
    scenario, tools, answer = _KINDS[kind]
    agent = "desk" if kind < 3 else "guide"
    return otlp(turn(script(scenario, *tools, answer=answer), agent=agent, version="1.4"))


def _trace(kind: int, number: int, start: int, conversation: str, chance: random.Random) -> Past:
    request = ExportTraceServiceRequest.FromString(_template(kind))
    trace_id = chance.randbytes(16)
    spans = [
        span
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
    ]
    begins = sorted(span.start_time_unix_nano for span in spans)
    ids = {span.span_id: chance.randbytes(8) for span in spans}
    last = max(span.end_time_unix_nano for span in spans)
    for span in spans:
        span.trace_id, span.span_id = trace_id, ids[span.span_id]
        span.parent_span_id = ids.get(span.parent_span_id, b"")
        place = begins.index(span.start_time_unix_nano)
        is_last = span.end_time_unix_nano == last
        span.start_time_unix_nano = start + place * 100_000_000
        span.end_time_unix_nano = start + (len(spans) if is_last else place + 1) * 100_000_000
        for pair in span.attributes:
            if pair.key == "gen_ai.conversation.id":
                pair.value.string_value = conversation
    [group] = request.resource_spans
    service = next(
        one.value.string_value for one in group.resource.attributes if one.key == "service.name"
    )
    return Past(start, trace_id.hex(), service, conversation, request.SerializeToString())

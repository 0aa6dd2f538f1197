"""The calls of a run on a time axis: bars with their start and width in percent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pathgauge.scorers.types import Invocation

MAX_BARS = 200
_MIN_WIDTH = 0.4
_NS = 1e9

Kind = Literal["agent", "model", "tool"]


@dataclass(frozen=True, slots=True)
class Bar:
    """One call."""

    kind: Kind
    name: str
    start: float
    """In percent of the run."""
    width: float
    after_s: float
    """Seconds from the start of the run."""
    duration_s: float
    failed: bool


@dataclass(frozen=True, slots=True)
class Timeline:
    """All calls with known times, by their start."""

    bars: Sequence[Bar]
    further: int
    without_times: int
    duration_s: float


def timeline(invocation: Invocation) -> Timeline | None:
    """The timeline; `None` if no call has times."""
    calls = list(_calls(invocation))
    timed = sorted(
        (start, end, kind, name, failed)
        for kind, name, start, end, failed in calls
        if start is not None and end is not None and end >= start
    )
    if not timed:
        return None
    begin = min(timed[0][0], invocation.start_ns or timed[0][0])
    finish = max(*(end for _, end, *_ in timed), invocation.end_ns or 0, begin + 1)
    length = finish - begin
    bars = [
        Bar(
            kind,
            name,
            round(min((start - begin) / length * 100, 100 - _MIN_WIDTH), 2),
            round(max((end - start) / length * 100, _MIN_WIDTH), 2),
            (start - begin) / _NS,
            (end - start) / _NS,
            failed,
        )
        for start, end, kind, name, failed in timed[:MAX_BARS]
    ]
    return Timeline(bars, max(0, len(timed) - MAX_BARS), len(calls) - len(timed), length / _NS)


def _calls(
    invocation: Invocation,
) -> Iterator[tuple[Kind, str, int | None, int | None, bool]]:
    for run in invocation.sub_agents:
        yield "agent", run.agent or "sub-agent", run.start_ns, run.end_ns, run.error is not None
    for model in invocation.model_calls:
        name = model.model or "model"
        yield "model", name, model.start_ns, model.end_ns, model.error is not None
    for call in invocation.tool_calls:
        yield "tool", call.name, call.start_ns, call.end_ns, call.error is not None

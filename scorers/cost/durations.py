"""Scores how many seconds of an invocation models, tools and the framework took. Lower is better.

Overlapping calls are counted once. Model and tool time overlap if a tool calls a model or runs in
parallel with one. Framework time is the time in neither of them. As with `latency`, a failed run
has no value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from pathgauge.scorers.authoring.missing_telemetry import models_unknown, tools_unknown
from pathgauge.scorers.authoring.ranges import Amount
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Invocation, ModelCall, ReferenceTurn, Score, ToolCall

Interval: TypeAlias = tuple[int, int]
"""Start and end in nanoseconds."""


@dataclass(frozen=True)
class ModelTime(Amount):
    """Seconds in which at least one model call was running."""

    name: ClassVar[str] = "model_time"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if not_evaluated := _run_failed(actual) or models_unknown(actual):
            return not_evaluated
        calls = counted(len(actual.model_calls), "model call")
        return _seconds(_model_intervals(actual), calls)


@dataclass(frozen=True)
class ToolTime(Amount):
    """Seconds in which at least one tool call was running; an agent used as a tool counts."""

    name: ClassVar[str] = "tool_time"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if not_evaluated := _run_failed(actual) or tools_unknown(actual):
            return not_evaluated
        calls = counted(len(actual.tool_calls), "tool call")
        return _seconds(_tool_intervals(actual), calls)


@dataclass(frozen=True)
class FrameworkTime(Amount):
    """Seconds of the invocation in which neither a model call nor a tool call was running."""

    name: ClassVar[str] = "framework_time"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        not_evaluated = _run_failed(actual) or models_unknown(actual) or tools_unknown(actual)
        return not_evaluated or self._remaining(actual)

    def _remaining(self, actual: Invocation) -> Score:
        models, tools = _model_intervals(actual), _tool_intervals(actual)
        start, end = actual.start_ns, actual.end_ns
        if start is None or end is None or end < start or models is None or tools is None:
            return Score.not_evaluated("duration_not_recorded")
        inside = (
            (max(start, begin), min(end, until))
            for begin, until in (*models, *tools)
            if begin < end and until > start
        )
        seconds = (end - start - covered(inside)) / 1e9
        return Score(
            seconds,
            None,
            f"{seconds:.3g} s of {(end - start) / 1e9:.3g} s outside of models and tools",
        )


def covered(intervals: Iterable[Interval]) -> int:
    """Length of the union of the intervals in nanoseconds. No interval may end before it starts."""
    total = 0
    covered_until: int | None = None
    for start, end in sorted(intervals):
        if covered_until is None:
            covered_until = start
        total += max(0, end - max(start, covered_until))
        covered_until = max(end, covered_until)
    return total


def _run_failed(actual: Invocation) -> Score | None:
    if actual.error:
        return Score.not_evaluated("undefined", "the run failed")
    return None


def _seconds(intervals: list[Interval] | None, of: str) -> Score:
    if intervals is None:
        return Score.not_evaluated("duration_not_recorded")
    seconds = covered(intervals) / 1e9
    return Score(seconds, None, f"{seconds:.3g} s in {of}")


def _model_intervals(actual: Invocation) -> list[Interval] | None:
    return _known(map(_interval, actual.model_calls))


def _tool_intervals(actual: Invocation) -> list[Interval] | None:
    """Handoffs and final answers often have no span of their own; without one they took no time."""
    timed = (
        call
        for call in actual.tool_calls
        if call.kind in ("function", "agent") or call.start_ns is not None
    )
    return _known(map(_interval, timed))


def _known(intervals: Iterable[Interval | None]) -> list[Interval] | None:
    """The intervals; `None` if one of them is not known."""
    known = []
    for interval in intervals:
        if interval is None:
            return None
        known.append(interval)
    return known


def _interval(call: ModelCall | ToolCall) -> Interval | None:
    if call.start_ns is None or call.end_ns is None or call.end_ns < call.start_ns:
        return None
    return call.start_ns, call.end_ns

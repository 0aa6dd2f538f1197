"""Where the time of an invocation went: an invocation comes in, seconds go out. Less is better.

Calls that overlap are counted once. Model and tool time overlap where a tool calls a model or works
beside one; framework time is what neither of them explains. As with `latency`, a run that failed
has no value.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from pathgauge.scorers.authoring.options import tools_unknown
from pathgauge.scorers.authoring.ranges import Amount
from pathgauge.scorers.cost.usage import models_unknown
from pathgauge.scorers.matching.calls import counted
from pathgauge.scorers.types import Invocation, ModelCall, ReferenceTurn, Score, ToolCall

Interval: TypeAlias = tuple[int, int]
"""From when until when, in nanoseconds."""


@dataclass(frozen=True)
class ModelTime(Amount):
    """Seconds in which at least one model call was under way."""

    name: ClassVar[str] = "model_time"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        calls = counted(len(actual.model_calls), "model call")
        return (
            _run_failed(actual)
            or models_unknown(actual)
            or _seconds(_model_intervals(actual), calls)
        )


@dataclass(frozen=True)
class ToolTime(Amount):
    """Seconds in which at least one tool call was under way; an agent used as a tool is one."""

    name: ClassVar[str] = "tool_time"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        calls = counted(len(actual.tool_calls), "tool call")
        return (
            _run_failed(actual) or tools_unknown(actual) or _seconds(_tool_intervals(actual), calls)
        )


@dataclass(frozen=True)
class FrameworkTime(Amount):
    """Seconds of the invocation in which neither a model nor a tool was called."""

    name: ClassVar[str] = "framework_time"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        return (
            _run_failed(actual)
            or models_unknown(actual)
            or tools_unknown(actual)
            or self._rest(actual)
        )

    def _rest(self, actual: Invocation) -> Score:
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
    """Nanoseconds that lie in at least one of the intervals, none of which ends before it starts."""
    total = 0
    reached: int | None = None
    for start, end in sorted(intervals):
        since = start if reached is None else max(start, reached)
        total += max(0, end - since)
        reached = end if reached is None else max(end, reached)
    return total


def _run_failed(actual: Invocation) -> Score | None:
    return Score.not_evaluated("undefined", "the run failed") if actual.error else None


def _seconds(intervals: list[Interval] | None, of: str) -> Score:
    if intervals is None:
        return Score.not_evaluated("duration_not_recorded")
    seconds = covered(intervals) / 1e9
    return Score(seconds, None, f"{seconds:.3g} s in {of}")


def _model_intervals(actual: Invocation) -> list[Interval] | None:
    return _known(map(_interval, actual.model_calls))


def _tool_intervals(actual: Invocation) -> list[Interval] | None:
    """What passes control on, and an answer, needs no span: without one it took no time."""
    timed = (
        call
        for call in actual.tool_calls
        if call.kind in ("function", "agent") or call.start_ns is not None
    )
    return _known(map(_interval, timed))


def _known(intervals: Iterable[Interval | None]) -> list[Interval] | None:
    """The intervals, or `None` when one of them is not known."""
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

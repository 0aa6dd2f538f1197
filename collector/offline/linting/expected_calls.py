"""Checks expected calls against those that runs made.

Each is paired with a call that matches it, else with another call of its tool.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pathgauge.collector.offline.linting.findings import Level
from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.matching.alignment import Alignment, TooLongError
from pathgauge.scorers.matching.comparison import align
from pathgauge.scorers.matching.equality import opened
from pathgauge.scorers.matching.matchers import Ignored, OneOf, matches, written
from pathgauge.scorers.matching.measures import f1
from pathgauge.scorers.matching.wording import counted, short
from pathgauge.scorers.types import ExpectedCall, Invocation, Json, ReferenceTurn, ToolCall

MIN_RUNS = 5
"""Runs from which "never" and "always" say something about what is expected."""
MIN_FOR_NOTES = 20
"""The same about what is allowed: it may just be rare."""


@dataclass(slots=True)
class _Usage:
    """How runs used one trajectory of a turn: those that agree best with it."""

    calls: Sequence[ExpectedCall]
    runs: int = 0
    made: Counter[int] = field(default_factory=Counter)
    """By expected call, the runs that made it."""
    recorded: Counter[int] = field(default_factory=Counter)
    """Those of them whose arguments were recorded."""
    values: dict[tuple[int, str], list[Json]] = field(default_factory=lambda: defaultdict(list))
    """By expected call and argument, the values in the runs."""
    unexpected: Counter[tuple[int, str]] = field(default_factory=Counter)
    """By expected call and argument that is not expected, how often it was given."""

    def add(self, pairs: Sequence[tuple[int, int]], calls: Sequence[ToolCall]) -> None:
        self.runs += 1
        for i, j in pairs:
            self.made[j] += 1
            expected, actual = self.calls[j].arguments, opened(calls[i].arguments)
            self.recorded[j] += actual is not None
            if expected is None or not isinstance(actual, Mapping):
                continue
            for name in expected:
                if name in actual:
                    self.values[j, name].append(actual[name])
            self.unexpected.update((j, name) for name in actual if name not in expected)


def calls_findings(
    turn: ReferenceTurn, runs: Sequence[Invocation]
) -> Iterator[tuple[Level, str, str]]:
    """Alternatives, calls and arguments that no run, or every run, has."""
    if turn.tool_calls is None:
        return
    usages = _usages(turn, runs)
    compared = sum(one.runs for one in usages)
    for number, usage in enumerate(usages):
        where = f"alternative {number}: " if number else ""
        if not usage.runs and len(usages) > 1 and compared >= MIN_FOR_NOTES:
            which = f"alternative {number}" if number else "expected_tools"
            text = f"{which} is the best for 0 of {counted(compared, 'run')}: it is dead"
            yield "note", "dead_alternative", text
        for level, check, text in _of_calls(usage):
            yield level, check, where + text


def _usages(turn: ReferenceTurn, runs: Sequence[Invocation]) -> list[_Usage]:
    usages = [_Usage(calls) for calls in (turn.tool_calls or (), *turn.alternatives)]
    for run in runs:
        if tools_unknown(run):
            continue
        try:
            matching = [
                align(run.tool_calls, usage.calls, "name_and_args", ordered=False)
                for usage in usages
            ]
            by_name = [
                align(run.tool_calls, usage.calls, "name_only", ordered=False) for usage in usages
            ]
        except (TooLongError, RecursionError):
            continue
        scores = [
            (f1(*one.counts) or 0.0, f1(*named.counts) or 0.0)
            for one, named in zip(matching, by_name, strict=True)
        ]
        best = max(range(len(usages)), key=lambda index: (scores[index], -index))
        pairs = _pairs(matching[best], run.tool_calls, usages[best].calls)
        usages[best].add(pairs, run.tool_calls)
    return usages


def _pairs(
    matching: Alignment, actual: Sequence[ToolCall], expected: Sequence[ExpectedCall]
) -> list[tuple[int, int]]:
    """The pairs that match, and those of the calls that are left by their names."""
    paired = {j for _, j in matching.pairs}
    left = [j for j in range(len(expected)) if j not in paired]
    others = align(
        [actual[i] for i in matching.unexpected], [expected[j] for j in left], ordered=False
    )
    return [*matching.pairs, *((matching.unexpected[i], left[j]) for i, j in others.pairs)]


def _of_calls(usage: _Usage) -> Iterator[tuple[Level, str, str]]:
    if usage.runs < MIN_RUNS:
        return
    for j, call in enumerate(usage.calls):
        made, runs = usage.made[j], counted(usage.runs, "run")
        if not made and not call.optional:
            yield "problem", "never_called", f"{call.name} is expected, but made in 0 of {runs}"
        if call.optional and usage.runs >= MIN_FOR_NOTES and made in {0, usage.runs}:
            yield "note", "not_optional", f"{call.name} is optional, but made in {made} of {runs}"
        yield from _of_arguments(usage, j, call)


def _of_arguments(usage: _Usage, j: int, call: ExpectedCall) -> Iterator[tuple[Level, str, str]]:
    made = usage.recorded[j]
    if made < MIN_RUNS:
        return
    for name, expected in (call.arguments or {}).items():
        values, where = usage.values[j, name], f"{call.name}.{name}"
        if values:
            yield from _of_values(where, expected, values)
        elif not isinstance(expected, Ignored):
            yield "problem", "never_given", f"{where} is given in 0 of {counted(made, 'call')}"
    for (at, name), count in sorted(usage.unexpected.items()):
        if at == j and count == made:
            text = f"{call.name}.{name} is not expected, but given in all {counted(made, 'call')}"
            yield "problem", "always_given", text


def _of_values(
    where: str, expected: Json, values: Sequence[Json]
) -> Iterator[tuple[Level, str, str]]:
    if not any(_matches(expected, value) for value in values):
        text = (
            f"{where} is never equal: expected {short(written(expected))}, found for instance"
            f" {short(values[-1])} in {counted(len(values), 'call')}"
        )
        yield "problem", "never_equal", text
        return
    if isinstance(expected, OneOf) and len(values) >= MIN_FOR_NOTES:
        for choice in expected.values:
            if not any(_matches(choice, value) for value in values):
                text = f"{where} is {short(written(choice))} in 0 of {counted(len(values), 'call')}"
                yield "note", "dead_value", text


def _matches(expected: Json, value: Json) -> bool:
    try:
        return matches(expected, value)
    except (TooLongError, RecursionError):
        return True  # not certain

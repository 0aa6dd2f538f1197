"""Proposes the reference of a group of runs, with the evidence for each part of it.

First the runs that deviate are set aside, in all turns; then the reference is learned that accepts
all others. The proposal states how many runs it really accepts: that is counted with the scorers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pathgauge.collector.core.curation import answers
from pathgauge.collector.core.curation.acceptance import accepts
from pathgauge.collector.core.curation.branches import ways
from pathgauge.collector.core.curation.deviations import cuts
from pathgauge.collector.core.curation.grouping import Group
from pathgauge.collector.core.curation.minority import Budget, Cut, bound
from pathgauge.collector.core.curation.order import blocks, rare_orders
from pathgauge.collector.core.curation.people import NO_PEOPLE, People, called_good, people_of
from pathgauge.collector.core.curation.runs import Run, Runs, Step, steps_of
from pathgauge.collector.core.curation.values import arguments, arguments_of_step
from pathgauge.collector.core.references.parallel_groups import joined
from pathgauge.scorers.matching.wording import short
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn

BAD_SHARE = 0.1
MIN_RUNS = 10
_MIN_OF_WAY = 3
"""Runs of an alternative."""
_EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class Options:
    """What is assumed of the runs."""

    bad_share: float = BAD_SHARE
    """The share of runs that may be bad. What so few runs do is not learned."""
    min_runs: int = MIN_RUNS


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Runs that deviate, and are not learned from."""

    why: str
    runs: int
    traces: tuple[str, ...]
    """Examples."""


@dataclass(frozen=True, slots=True)
class Fact:
    """The evidence for one part of the proposal."""

    way: int
    """0: the expected tools; else the number of the alternative."""
    part: str
    """Such as `refund.amount`."""
    runs: int
    """How many runs have it."""
    of: int
    """How many runs there are of this way."""
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Proposal:
    """A reference, and why."""

    reference: Reference
    runs: int
    kept: int
    """The runs that it was learned from."""
    accepted: int
    """How many of them it accepts."""
    rejected: int
    """How many of the others it does not accept."""
    facts: tuple[Fact, ...]
    left_out: tuple[LeftOut, ...]
    notes: tuple[str, ...]
    people: People = NO_PEOPLE


@dataclass(slots=True)
class _Turn:
    runs: Runs
    ways: list[list[int]] = field(default_factory=list)


def propose(group: Group, options: Options = Options()) -> Proposal | None:
    """The reference of these runs; `None` if they are too few to learn from."""
    count = len(group.turns[0])
    if count < options.min_runs:
        return None
    turns = [_Turn(dict(enumerate(runs))) for runs in group.turns]
    good = called_good(group)
    budget = Budget(count, options.bad_share, good=good)
    for turn in turns:
        _set_aside(turn, budget)
    for turn in turns:
        turn.ways = _large_enough([budget.kept(way) for way in turn.ways], budget)
    numbers = budget.kept(range(count))
    learned = [_turn(turn, numbers, options.bad_share) for turn in turns]
    reference = Reference(
        group.scenario_id, tuple(turn for turn, _ in learned), criteria=_criteria(learned)
    )
    accepted = {number for number in range(count) if accepts(reference, _at(turns, number))}
    kept = set(numbers)
    return Proposal(
        reference,
        count,
        len(kept),
        len(accepted & kept),
        count - len(kept) - len(accepted - kept),
        tuple(fact for turn in turns for fact in _facts(turn, budget)),
        tuple(_left_out(budget, turns[0].runs)),
        tuple(group.notes),
        people_of(group, reference, good, accepted),
    )


def _set_aside(turn: _Turn, budget: Budget) -> None:
    turn.ways = ways(turn.runs, budget.kept(turn.runs), budget)
    for way in turn.ways:
        budget.take(rare_orders(turn.runs, budget.kept(way), budget.share))
    budget.take(
        cut for way in turn.ways for cut in _rare_arguments(turn.runs, budget.kept(way), budget)
    )
    given = {number: turn.runs[number].invocation.final_response for number in turn.runs}
    kept = {number: given[number] for number in budget.kept(given)}
    budget.take(answers.rare_answers(kept, budget.share))


def _rare_arguments(runs: Runs, numbers: Sequence[int], budget: Budget) -> Iterator[Cut]:
    for step in steps_of(runs, numbers):
        values = {
            number: found
            for number in numbers
            if step in runs[number].calls and (found := runs[number].arguments(step)) is not None
        }
        for cut in cuts(values, "", budget.share) if values else ():
            yield Cut(cut.runs, f"{step}: {cut.why}")


def _large_enough(found: list[list[int]], budget: Budget) -> list[list[int]]:
    large = [way for way in found if len(way) >= _MIN_OF_WAY] or found[:1]
    for way in found:
        if way not in large and way:
            budget.dropped.update(way)
            budget.cuts.append(Cut(frozenset(way), "go a way that too few others go"))
    return large


def _turn(turn: _Turn, numbers: Sequence[int], share: float) -> tuple[ReferenceTurn, float | None]:
    """The turn, and the threshold of the similarity of answers."""
    trajectories: dict[str, tuple[ExpectedCall, ...]] = {}
    of_tools = _of_tools(turn.runs, numbers)
    for way in turn.ways:
        calls = _calls(turn.runs, way, of_tools)
        trajectories.setdefault(repr(calls), calls)
    first, *others = trajectories.values()
    invocations = [turn.runs[number].invocation for number in numbers]
    given = [one.final_response for one in invocations if one.final_response]
    if len(given) < len(invocations) - bound(len(invocations), share):
        given = []
    typical = answers.typical(given) if given else None
    return (
        ReferenceTurn(
            user_input=_plain(invocations[0].user_input),
            tool_calls=first,
            alternatives=tuple(others),
            response=typical and _plain(typical.answer),
            response_contains=tuple(answers.phrases(given)) if given else (),
        ),
        typical and typical.threshold,
    )


def _of_tools(runs: Runs, numbers: Sequence[int]) -> dict[str, dict[str, Json]]:
    """What is learned from all calls of each tool."""
    calls: dict[str, list[Mapping[str, Json]]] = {}
    for number in numbers:
        for step in runs[number].calls:
            found = runs[number].arguments(step)
            calls.setdefault(step.tool, []).extend([] if found is None else [found])
    return {tool: arguments(some) for tool, some in calls.items()}


def _calls(
    runs: Runs, way: Sequence[int], of_tools: Mapping[str, Mapping[str, Json]]
) -> tuple[ExpectedCall, ...]:
    return joined(
        [_expected(runs, way, step, of_tools[step.tool]) for step in block]
        for block in blocks(runs, way)
    )


def _expected(
    runs: Runs, way: Sequence[int], step: Step, of_tool: Mapping[str, Json]
) -> ExpectedCall:
    having = [runs[number] for number in way if step in runs[number].calls]
    recorded = [run.arguments(step) for run in having]
    known = [one for one in recorded if one is not None]
    expected = arguments_of_step(known, of_tool) if len(known) == len(recorded) else None
    return ExpectedCall(step.tool, expected, optional=len(having) < len(way))


def _criteria(learned: Sequence[tuple[ReferenceTurn, float | None]]) -> dict[str, Json]:
    """What makes the reference reject: the criteria that its parts need."""
    criteria: dict[str, Json] = {"tool_trajectory_avg_score": 1.0, "failure": 0}
    if any(turn.response_contains for turn, _ in learned):
        criteria["response_contains"] = 1.0
    thresholds = [threshold for _, threshold in learned if threshold is not None]
    if thresholds:
        criteria["response_match_score"] = min(thresholds)
    return criteria


def _facts(turn: _Turn, budget: Budget) -> Iterator[Fact]:
    for index, way in enumerate(turn.ways):
        kept = budget.kept(way)
        for step in steps_of(turn.runs, kept):
            having = [turn.runs[number] for number in kept if step in turn.runs[number].calls]
            yield Fact(index, str(step), len(having), len(kept))
            recorded = [found for run in having if (found := run.arguments(step)) is not None]
            for name in dict.fromkeys(name for one in recorded for name in one):
                values = [one[name] for one in recorded if name in one]
                examples = dict.fromkeys(short(value) for value in values)
                yield Fact(
                    index, f"{step}.{name}", len(values), len(having), tuple(examples)[:_EXAMPLES]
                )


def _left_out(budget: Budget, runs: Mapping[int, Run]) -> Iterator[LeftOut]:
    by_why: dict[str, list[int]] = {}
    for cut in budget.cuts:
        by_why.setdefault(cut.why, []).extend(sorted(cut.runs))
    for why, numbers in sorted(by_why.items(), key=lambda one: (-len(one[1]), one[0])):
        traces = [runs[number].invocation.trace_id for number in sorted(numbers)]
        yield LeftOut(why, len(numbers), tuple(dict.fromkeys(traces))[:_EXAMPLES])


def _at(turns: Sequence[_Turn], number: int) -> list[Run]:
    return [turn.runs[number] for turn in turns]


def _plain(text: str | None) -> str | None:
    """Text without lone surrogates, which no file can hold."""
    return text.encode("utf-8", "replace").decode() if text else None

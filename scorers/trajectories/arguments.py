"""Scores the share of correct arguments of tool calls.

Each call is compared with an expected call of the same tool, so the choice of tools does not
matter here. `pathgauge.scorers.trajectories.adk` lists the cases without a value.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import fsum
from typing import ClassVar, Literal, NamedTuple, get_args

from pathgauge.scorers.authoring.options import check_choice
from pathgauge.scorers.matching.alignment import Alignment, Counts, TooLongError
from pathgauge.scorers.matching.argument_rules import MAX_COST, required_arguments
from pathgauge.scorers.matching.comparison import (
    ANY_ORDER,
    IN_ORDER,
    RULES,
    Comparison,
    MatchMode,
    align,
)
from pathgauge.scorers.matching.differences import MAX_DIFFERENCES, Difference, difference
from pathgauge.scorers.matching.equality import opened
from pathgauge.scorers.matching.explanations import expected_and_found
from pathgauge.scorers.matching.matchers import cost, matches
from pathgauge.scorers.matching.wording import one_line
from pathgauge.scorers.trajectories.adk import Reading
from pathgauge.scorers.trajectories.detailed import DetailedScorer
from pathgauge.scorers.types import ExpectedCall, Invocation, Json, ReferenceTurn, Score

Extra = Literal["ignore", "count"]


class _Pair(NamedTuple):
    """A call and the expected call that it is compared with."""

    actual: int
    expected: int
    correct: int
    """Arguments with the expected value."""
    total: int
    """Arguments that count: the expected ones, and perhaps others."""
    recorded: bool

    @property
    def share(self) -> float:
        return self.correct / self.total


@dataclass(frozen=True)
class ArgumentAccuracy(DetailedScorer):
    """The mean share of correct arguments, over the expected calls that were made and require
    arguments.
    """

    name: ClassVar[str] = "argument_accuracy"

    ordered: bool = True
    """Compare calls with expected ones in their order; else, each with the expected call whose
    arguments it has.
    """
    extra: Extra = "ignore"
    """Arguments that the reference does not have: `ignore` them, or `count` them as wrong."""

    def __post_init__(self) -> None:
        check_choice("extra", self.extra, get_args(Extra))

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation against its reference turn."""
        score = super().score(actual, expected)
        if score.reason != "undefined":
            return score
        return replace(score, reason="not_applicable")

    def read(self, comparison: Comparison) -> tuple[Reading, Mapping[str, Json]]:
        """Pair calls by names, then compare the values of top-level arguments.

        The details are `arguments` [actual index, expected index, name, correct, total], and
        `different` as in `pathgauge.scorers.matching.explanations`.
        """
        alignment, certain = self._aligned(comparison)
        pairs = list(self._pairs(comparison, alignment))
        value = _mean([pair.share for pair in pairs])
        best_case: float | None = 1.0
        if certain:
            best_case = _mean([pair.share if pair.recorded else 1.0 for pair in pairs])
        wrong = list(islice(self._wrong(comparison, pairs), MAX_DIFFERENCES))
        explanation = _explanation(pairs, wrong)
        rules = RULES["name_only"]
        reading = Reading(comparison, rules, alignment, value, best_case, explanation)
        names = comparison.expected.names
        rows = [
            [pair.actual, pair.expected, names[pair.expected], pair.correct, pair.total]
            for pair in pairs
        ]
        return reading, {"arguments": rows, "different": list(map(list, wrong))}

    def _aligned(self, comparison: Comparison) -> tuple[Alignment, bool]:
        """The alignment, and whether it is the same for all arguments that were not recorded."""
        if self.ordered:
            return comparison.align(RULES["name_only"], IN_ORDER), True
        alignment = comparison.align(RULES["name_and_required_args"], ANY_ORDER)
        certain = alignment.best_case == alignment.counts and not _unrecorded(comparison)
        alignment = _with_equal_arguments(comparison, alignment)
        return _with_other_arguments(comparison, alignment), certain

    def _pairs(self, comparison: Comparison, alignment: Alignment) -> Iterator[_Pair]:
        """The pairs whose expected call requires arguments. Raises the exceptions of
        `pathgauge.scorers.matching.matchers.matches`.
        """
        total_cost = 0
        for i, j in alignment.pairs:
            expected = comparison.expected.calls[j].arguments
            required = required_arguments("superset", expected)
            if not required:
                continue
            total_cost += cost(required)
            if total_cost > MAX_COST:
                raise TooLongError("too many comparisons of arguments with matchers")
            arguments = opened(comparison.actual.calls[i].arguments)
            given = arguments if isinstance(arguments, Mapping) else {}
            correct = sum(
                key in given and matches(value, given[key]) for key, value in required.items()
            )
            total = len(required)
            if self.extra == "count":
                total += len(given.keys() - (expected or {}).keys())
            yield _Pair(i, j, correct, total, recorded=arguments is not None)

    def _wrong(self, comparison: Comparison, pairs: Iterable[_Pair]) -> Iterator[Difference]:
        rules = RULES["name_and_args" if self.extra == "count" else "name_and_required_args"]
        for pair in pairs:
            if pair.recorded and pair.correct < pair.total:
                yield difference(comparison, rules, pair.actual, pair.expected)


def _explanation(pairs: Sequence[_Pair], wrong: Sequence[Difference]) -> str:
    if not pairs:
        return "no expected call that was made asks for arguments"
    correct, total = sum(pair.correct for pair in pairs), sum(pair.total for pair in pairs)
    explanation = f"{correct} of {total} arguments are right"
    if not wrong:
        return explanation
    tool, arguments = wrong[0].tool, wrong[0].arguments
    if not arguments:
        return one_line(f"{explanation}; {tool} with other arguments")
    key, values = next(iter(arguments.items()))
    return one_line(f"{explanation}; {tool} {key}: {expected_and_found(*values)}")


def _unrecorded(comparison: Comparison) -> bool:
    """Whether a call without recorded arguments might match an expected call that requires some."""
    expected, actual = comparison.expected, comparison.actual
    requiring = {expected.names[j] for j in _requiring(expected.calls)}
    return any(
        name in requiring and opened(call.arguments) is None
        for name, call in zip(actual.names, actual.calls, strict=True)
    )


def _with_equal_arguments(comparison: Comparison, alignment: Alignment) -> Alignment:
    """The alignment, with calls paired first with the expected calls whose arguments they have and
    no others, if there are as many pairs. With matchers, such a pair may take the only partner of
    another call.
    """
    actual, expected = comparison.actual.calls, comparison.expected.calls
    every, requiring = range(len(actual)), _requiring(expected)
    equal = _pairs_among(comparison, every, requiring, "name_and_args")
    left_actual = sorted(set(every) - {i for i, _ in equal})
    left_expected = sorted(set(range(len(expected))) - {j for _, j in equal})
    others = _pairs_among(comparison, left_actual, left_expected, "name_and_required_args")
    pairs = tuple(sorted([*equal, *others]))
    if len(pairs) < len(alignment.pairs):
        return alignment
    found = {j for _, j in pairs}
    return replace(
        alignment,
        pairs=pairs,
        missing=tuple(j for j, call in enumerate(expected) if j not in found and not call.optional),
        unexpected=tuple(sorted(set(every) - {i for i, _ in pairs})),
    )


def _requiring(expected: Sequence[ExpectedCall]) -> list[int]:
    """The expected calls that require arguments."""
    return [j for j, call in enumerate(expected) if required_arguments("superset", call.arguments)]


def _pairs_among(
    comparison: Comparison, actual: Sequence[int], expected: Sequence[int], mode: MatchMode
) -> list[tuple[int, int]]:
    """The pairs of some calls with some expected ones, in any order."""
    alignment = align(
        [comparison.actual.calls[i] for i in actual],
        [comparison.expected.calls[j] for j in expected],
        mode,
        ordered=False,
    )
    return [(actual[i], expected[j]) for i, j in alignment.pairs]


def _with_other_arguments(comparison: Comparison, alignment: Alignment) -> Alignment:
    """The alignment, with its remaining calls paired with expected calls of the same tool in their
    order, optional ones last.
    """
    expected, names = comparison.expected, comparison.actual.names
    paired = {j for _, j in alignment.pairs}
    unpaired = [j for j in range(len(expected.calls)) if j not in paired]
    by_tool: dict[str, deque[int]] = defaultdict(deque)
    for j in sorted(unpaired, key=lambda j: expected.calls[j].optional):
        by_tool[expected.names[j]].append(j)
    added = {i: by_tool[names[i]].popleft() for i in alignment.unexpected if by_tool[names[i]]}
    pairs = tuple(sorted((*alignment.pairs, *added.items())))
    found = set(added.values())
    missing = tuple(j for j in alignment.missing if j not in found)
    unexpected = tuple(i for i in alignment.unexpected if i not in added)
    counts = Counts(len(pairs), len(names), len(pairs) + len(missing))
    return replace(alignment, pairs=pairs, missing=missing, unexpected=unexpected, counts=counts)


def _mean(shares: Sequence[float]) -> float | None:
    return fsum(shares) / len(shares) if shares else None

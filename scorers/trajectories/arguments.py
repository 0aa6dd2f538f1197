"""How right the arguments of tool calls are: an invocation and its reference turn come in, the
share of right ones goes out.

A call is judged by the expected call of the same tool that it stands for, so it does not matter
here which tools were called. See `pathgauge.scorers.trajectories.adk` for when there is no value.
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
from pathgauge.scorers.matching.argument_rules import MAX_COST, demanded
from pathgauge.scorers.matching.comparison import ANY_ORDER, IN_ORDER, RULES, Comparison
from pathgauge.scorers.matching.differences import MAX_DIFFERENCES, Difference, differences
from pathgauge.scorers.matching.equality import opened
from pathgauge.scorers.matching.matchers import cost, matches
from pathgauge.scorers.trajectories.adk import Reading
from pathgauge.scorers.trajectories.detailed import DetailedScorer
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

Extra = Literal["ignore", "count"]


class _Judged(NamedTuple):
    """A call beside the expected one that it stands for."""

    actual: int
    expected: int
    right: int
    """Arguments that are the expected ones."""
    asked: int
    recorded: bool


@dataclass(frozen=True)
class ArgumentAccuracy(DetailedScorer):
    """The mean share of the expected arguments that calls have; only expected calls that were made
    and ask for some count.
    """

    name: ClassVar[str] = "argument_accuracy"

    ordered: bool = True
    """Whether calls stand for expected ones in their order; in any order, for those whose arguments
    they have.
    """
    extra: Extra = "ignore"
    """Arguments that the reference does not have: `ignore` them, or `count` them as wrong."""

    def __post_init__(self) -> None:
        check_choice("extra", self.extra, get_args(Extra))

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation against its reference turn."""
        score = super().score(actual, expected)
        return replace(score, reason="not_applicable") if score.reason == "undefined" else score

    def look(self, comparison: Comparison) -> tuple[Reading, Mapping[str, Json]]:
        """By names, then by the values of top-level arguments.

        `arguments` [actual index, expected index, name, right, asked], and `different` as in
        `pathgauge.scorers.matching.explanations`.
        """
        alignment, certain = self._aligned(comparison)
        judged = list(self._judged(comparison, alignment))
        value = _mean([call.right / call.asked for call in judged])
        hoped = (
            _mean([call.right / call.asked if call.recorded else 1.0 for call in judged])
            if certain
            else 1.0
        )
        wrong = list(islice(self._wrong(comparison, alignment, judged), MAX_DIFFERENCES))
        names = comparison.expected.names
        reading = Reading(
            comparison, RULES["name_only"], alignment, value, hoped, _line(judged, wrong)
        )
        return reading, {
            "arguments": [
                [call.actual, call.expected, names[call.expected], call.right, call.asked]
                for call in judged
            ],
            "different": [
                [
                    one.actual,
                    one.expected,
                    one.tool,
                    {key: list(two) for key, two in one.arguments.items()},
                ]
                for one in wrong
            ],
        }

    def _aligned(self, comparison: Comparison) -> tuple[Alignment, bool]:
        """The alignment, and whether it is the same for all arguments that were not recorded."""
        if self.ordered:
            return comparison.align(RULES["name_only"], IN_ORDER), True
        alignment = comparison.align(RULES["name_and_required_args"], ANY_ORDER)
        return _with_namesakes(
            comparison, alignment
        ), alignment.hoped == alignment.counts and not _may_stand_elsewhere(comparison)

    def _judged(self, comparison: Comparison, alignment: Alignment) -> Iterator[_Judged]:
        """The pairs whose expected call asks for arguments. Raises what
        `pathgauge.scorers.matching.matchers.matches` raises.
        """
        spent = 0
        for i, j in alignment.pairs:
            asked = demanded("superset", comparison.expected.calls[j].arguments)
            if asked:
                spent += cost(asked)
                if spent > MAX_COST:
                    raise TooLongError("too many comparisons of arguments with matchers")
                given = opened(comparison.actual.calls[i].arguments)
                known = given if isinstance(given, Mapping) else {}
                right = sum(
                    key in known and matches(value, known[key]) for key, value in asked.items()
                )
                extra = (
                    known.keys() - (comparison.expected.calls[j].arguments or {}).keys()
                    if self.extra == "count"
                    else ()
                )
                yield _Judged(i, j, right, len(asked) + len(extra), given is not None)

    def _wrong(
        self, comparison: Comparison, alignment: Alignment, judged: Iterable[_Judged]
    ) -> Iterator[Difference]:
        rules = RULES["name_and_args" if self.extra == "count" else "name_and_required_args"]
        for call in judged:
            if call.right < call.asked:
                alone = replace(
                    alignment, pairs=(), missing=(call.expected,), unexpected=(call.actual,)
                )
                yield from differences(comparison, rules, alone)


def _line(judged: Sequence[_Judged], wrong: Sequence[Difference]) -> str:
    if not judged:
        return "no expected call that was made asks for arguments"
    line = (
        f"{sum(call.right for call in judged)} of {sum(call.asked for call in judged)} arguments"
        " are right"
    )
    if not wrong:
        return line
    key, (asked, found) = next(iter(wrong[0].arguments.items()))
    return " ".join(
        f"{line}; {wrong[0].tool} {key}: expected {asked or 'nothing'}, found {found or 'nothing'}".split()
    )


def _may_stand_elsewhere(comparison: Comparison) -> bool:
    """Whether a call without recorded arguments could, with some, stand for an expected call that
    asks for them.
    """
    expected, actual = comparison.expected, comparison.actual
    asking = {
        name
        for name, call in zip(expected.names, expected.calls, strict=True)
        if demanded("superset", call.arguments)
    }
    return any(
        name in asking and opened(call.arguments) is None
        for name, call in zip(actual.names, actual.calls, strict=True)
    )


def _with_namesakes(comparison: Comparison, alignment: Alignment) -> Alignment:
    """The alignment, and of what it leaves, calls beside expected calls of the same tool in their
    order, optional ones last.
    """
    expected, names = comparison.expected, comparison.actual.names
    answered = {j for _, j in alignment.pairs}
    waiting: dict[str, deque[int]] = defaultdict(deque)
    for j in sorted(
        set(range(len(expected.calls))) - answered, key=lambda j: (expected.calls[j].optional, j)
    ):
        waiting[expected.names[j]].append(j)
    added = {i: waiting[names[i]].popleft() for i in alignment.unexpected if waiting[names[i]]}
    pairs = tuple(sorted((*alignment.pairs, *added.items())))
    found = set(added.values())
    missing = tuple(j for j in alignment.missing if j not in found)
    unexpected = tuple(i for i in alignment.unexpected if i not in added)
    counts = Counts(len(pairs), len(names), len(pairs) + len(missing))
    return replace(alignment, pairs=pairs, missing=missing, unexpected=unexpected, counts=counts)


def _mean(shares: Sequence[float]) -> float | None:
    return fsum(shares) / len(shares) if shares else None

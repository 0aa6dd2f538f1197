"""Actual calls beside expected calls: two trajectories and rules for their arguments come in, an
`Alignment` comes out.

Several criteria look at the same two trajectories, so one `Comparison` answers all of them and
keeps what it found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, reduce
from operator import or_
from typing import Generic, Literal, NamedTuple, TypeVar

from pathgauge.scorers.matching.alignment import Alignment, Counts, TooLongError, ordered_pairs
from pathgauge.scorers.matching.argument_rules import Answers, Demands, Rules
from pathgauge.scorers.matching.bipartite import largest_matching
from pathgauge.scorers.matching.equality import Arguments, canonical_arguments, tool_name
from pathgauge.scorers.matching.partial_order import block_pairs, transposed
from pathgauge.scorers.matching.prepared_reference import Expectation, blocks
from pathgauge.scorers.types import ExpectedCall, ToolCall

MatchMode = Literal["name_only", "name_and_args", "name_and_required_args"]
"""What makes a call the expected one: its name; name and equal arguments; name and at least the
expected arguments.
"""

RULES: Mapping[MatchMode, Rules] = {
    "name_only": Rules("ignore"),
    "name_and_args": Rules("exact"),
    "name_and_required_args": Rules("superset"),
}

MAX_CALLS = 2_000
"""Calls of an invocation, and of a reference turn, beyond which they are not compared."""

_T = TypeVar("_T")


class Order(NamedTuple):
    """What the order of calls means."""

    matters: bool = True
    """Whether pairs may not cross."""
    within_message: bool = True
    """Whether this holds for calls, too, that one model message asked for."""


IN_ORDER, ANY_ORDER = Order(), Order(matters=False)


class Members(NamedTuple):
    """How many calls of each side appear on the other side, however often, and how many calls are
    expected.
    """

    actual: int
    found: int
    expected: int
    """Optional calls are expected only when they were made."""


class _Relation(NamedTuple):
    """Per actual call, the expected calls that it may answer, as bits."""

    masks: list[int]
    hopeful: list[int]
    """The same, if arguments that were not recorded had been the expected ones; the same list when
    none matter.
    """
    selective: int
    """The expected calls that look at arguments."""


def align(
    actual: Sequence[ToolCall],
    expected: Sequence[ExpectedCall],
    mode: MatchMode = "name_only",
    *,
    ordered: bool = True,
) -> Alignment:
    """Pair as many actual calls with expected ones as `mode` allows, each used once; `ordered`
    pairs do not cross.

    Pairs with calls that are not optional come before others. Raises `TooLongError` or
    `RecursionError` when the calls are too many, or their arguments too large or nested too deep.
    """
    return Comparison(Calls(actual), Expectation(expected)).align(
        RULES[mode], IN_ORDER if ordered else ANY_ORDER
    )


def compare(actual: tuple[ToolCall, ...], expected: tuple[ExpectedCall, ...]) -> Comparison:
    """The comparison of two trajectories, remembered until other calls are compared: criteria of
    one invocation share it.
    """
    (calls, comparisons), expectation = _calls(_Same(actual)), _expectation(_Same(expected))
    comparison = comparisons.get(expectation)
    if comparison is None:
        comparison = comparisons[expectation] = Comparison(calls, expectation)
    return comparison


class Calls:
    """The calls of an invocation."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self.calls = calls
        self.names = [tool_name(call.name) for call in calls]
        """The tools, by the names that are compared."""

    @cached_property
    def arguments(self) -> list[Arguments]:
        """The arguments, ready to compare."""
        return [canonical_arguments(call.arguments) for call in self.calls]

    @cached_property
    def messages(self) -> list[int]:
        """As bits, the calls in their order, those that one model message asked for together."""
        return blocks([call.group for call in self.calls])


class Comparison:
    """Two trajectories side by side. Raises `TooLongError` beyond `MAX_CALLS` on either side."""

    def __init__(self, actual: Calls, expected: Expectation) -> None:
        longest = max(len(actual.calls), len(expected.calls))
        if longest > MAX_CALLS:
            raise TooLongError(
                f"{len(actual.calls)} calls against {len(expected.calls)} expected ones; at most"
                f" {MAX_CALLS} are compared"
            )
        self.actual, self.expected = actual, expected
        self._relations: dict[Rules, _Relation] = {}
        self._alignments: dict[tuple[Rules, Order], Alignment] = {}

    def align(self, rules: Rules, order: Order = IN_ORDER) -> Alignment:
        """The best alignment: as many required calls as possible, then as many calls as possible."""
        alignment = self._alignments.get((rules, order))
        if alignment is None:
            alignment = self._alignments[rules, order] = self._align(rules, order)
        return alignment

    def members(self, rules: Rules) -> tuple[Members, Members]:
        """The members as recorded, and if all arguments that were not recorded had been the
        expected ones.
        """
        relation = self._relation(rules)
        return self._members(relation.masks), self._members(relation.hopeful)

    def _members(self, masks: Sequence[int]) -> Members:
        found = reduce(or_, masks, 0)
        return Members(
            sum(map(bool, masks)), found.bit_count(), (found | self.expected.required).bit_count()
        )

    def _align(self, rules: Rules, order: Order) -> Alignment:
        relation = self._relation(rules)
        pairs = self._pairs(relation.masks, relation.selective, order)
        counts = self._counts(pairs)
        certain = relation.hopeful is relation.masks
        hoped = (
            counts
            if certain
            else self._counts(self._pairs(relation.hopeful, relation.selective, order))
        )
        answering, answered = {i for i, _ in pairs}, {j for _, j in pairs}
        return Alignment(
            pairs=tuple(pairs),
            missing=tuple(
                [
                    j
                    for j, call in enumerate(self.expected.calls)
                    if j not in answered and not call.optional
                ]
            ),
            unexpected=tuple([i for i in range(counts.actual) if i not in answering]),
            counts=counts,
            hoped=hoped,
        )

    def _counts(self, pairs: Sequence[tuple[int, int]]) -> Counts:
        expected = len(self.expected.calls)
        if self.expected.optional:
            expected = (self.expected.required | sum(1 << j for _, j in pairs)).bit_count()
        return Counts(len(pairs), len(self.actual.calls), expected)

    def _pairs(self, masks: Sequence[int], selective: int, order: Order) -> list[tuple[int, int]]:
        if not order.matters:
            return self._unordered(masks, selective)
        expected = self.expected
        grouped = len(expected.blocks) < len(expected.calls)
        if not (grouped or order.within_message) and len(self.actual.messages) < len(
            self.actual.calls
        ):
            columns = transposed(masks, len(expected.calls))
            vital = [
                column if expected.required >> j & 1 else 0 for j, column in enumerate(columns)
            ]
            return sorted((i, j) for j, i in block_pairs(columns, vital, self.actual.messages))
        if grouped or expected.optional:
            return block_pairs(masks, [mask & expected.required for mask in masks], expected.blocks)
        return ordered_pairs(masks, len(expected.calls))

    def _unordered(self, masks: Sequence[int], selective: int) -> list[tuple[int, int]]:
        relation = dict(enumerate(masks))
        vital = (
            {i: mask & self.expected.required for i, mask in relation.items()}
            if self.expected.optional
            else None
        )
        return sorted(largest_matching(relation, vital, first=selective).items())

    def _relation(self, rules: Rules) -> _Relation:
        relation = self._relations.get(rules)
        if relation is None:
            relation = self._relations[rules] = self._related(*self.expected.asked(rules))
        return relation

    def _related(self, demands: Mapping[str, Demands], selective: int) -> _Relation:
        named = [self.expected.named.get(name, 0) for name in self.actual.names]
        if not selective:
            return _Relation(named, named, 0)
        answers = Answers(demands)
        masks, hopeful = [], []
        for call, name, key, every in zip(
            self.actual.calls, self.actual.names, self.actual.arguments, named, strict=True
        ):
            mask = every & ~selective
            if key is not None and mask != every:
                mask |= answers.of(name, call.arguments, key)
            masks.append(mask)
            hopeful.append(every if key is None else mask)
        return _Relation(masks, masks if hopeful == masks else hopeful, selective)


class _Same(Generic[_T]):
    """A value that equals nothing but itself: trajectories hold dicts, so they have an identity but
    no hash.

    What never changes may be recognised by its identity, as long as it is kept alive, which the
    cache does.
    """

    __slots__ = ("value",)

    def __init__(self, value: _T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


@lru_cache(maxsize=1)
def _calls(actual: _Same[tuple[ToolCall, ...]]) -> tuple[Calls, dict[Expectation, Comparison]]:
    """The calls know nothing of their comparisons: as a cycle both would outlive the invocation
    until the garbage collector comes.
    """
    return Calls(actual.value), {}


@lru_cache(maxsize=256)
def _expectation(expected: _Same[tuple[ExpectedCall, ...]]) -> Expectation:
    return Expectation(expected.value)

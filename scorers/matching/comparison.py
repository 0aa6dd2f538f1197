"""Aligns actual tool calls with expected ones.

Several criteria compare the same two trajectories. So all of them share one `Comparison`, which
caches its results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache, reduce
from operator import or_
from typing import Generic, Literal, NamedTuple, TypeVar

from pathgauge.scorers.matching.alignment import Alignment, Counts, TooLongError, ordered_pairs
from pathgauge.scorers.matching.argument_rules import Rules, SatisfiedCalls, ToolRequirements
from pathgauge.scorers.matching.bipartite import largest_matching
from pathgauge.scorers.matching.equality import Arguments, canonical_arguments, tool_name
from pathgauge.scorers.matching.partial_order import block_pairs, transposed
from pathgauge.scorers.matching.prepared_reference import PreparedReference, blocks
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import ExpectedCall, ToolCall

MatchMode = Literal["name_only", "name_and_args", "name_and_required_args"]
"""When a call matches an expected one: by its name; by name and equal arguments; by name and at
least the expected arguments.
"""

RULES: Mapping[MatchMode, Rules] = {
    "name_only": Rules("ignore"),
    "name_and_args": Rules("exact"),
    "name_and_required_args": Rules("superset"),
}

MAX_CALLS = 2_000
"""Calls of an invocation, and of a reference turn; longer ones are not compared."""

_T = TypeVar("_T")


class Order(NamedTuple):
    """Whether the order of calls counts."""

    matters: bool = True
    """If true, pairs must not cross."""
    within_message: bool = True
    """Whether this also applies to calls that one model message requested."""


IN_ORDER, ANY_ORDER = Order(), Order(matters=False)


class Members(NamedTuple):
    """How many calls of each side appear on the other side, no matter how often."""

    actual: int
    """Actual calls that are expected."""
    found: int
    """Expected calls that were made."""
    expected: int
    """Optional calls count as expected only if they were made."""


class _Relation(NamedTuple):
    """For each actual call, the expected calls that it may match, as bits."""

    masks: list[int]
    best_case: list[int]
    """The masks if all arguments that were not recorded had been the expected ones. It is the same
    list object if that makes no difference.
    """
    selective: int
    """The expected calls whose arguments are compared."""


def align(
    actual: Sequence[ToolCall],
    expected: Sequence[ExpectedCall],
    mode: MatchMode = "name_only",
    *,
    ordered: bool = True,
) -> Alignment:
    """Pair as many actual calls with expected ones as `mode` allows, each used once. `ordered`
    pairs do not cross.

    Pairs with calls that are not optional come first. Raises `TooLongError` or `RecursionError` if
    the calls are too many, or their arguments too large or nested too deep, and `ValueError` for
    another mode.
    """
    if mode not in RULES:
        raise ValueError(f"mode: found {mode!r}, expected one of {', '.join(RULES)}")
    comparison = Comparison(Calls(actual), PreparedReference(expected))
    return comparison.align(RULES[mode], IN_ORDER if ordered else ANY_ORDER)


def compare(actual: tuple[ToolCall, ...], expected: tuple[ExpectedCall, ...]) -> Comparison:
    """The comparison of two trajectories. It is cached until other actual calls are compared, so
    the criteria of one invocation share it.
    """
    (calls, comparisons), reference = _calls(_Same(actual)), _prepared(_Same(expected))
    comparison = comparisons.get(reference)
    if comparison is None:
        comparison = comparisons[reference] = Comparison(calls, reference)
    return comparison


class Calls:
    """The calls of an invocation."""

    def __init__(self, calls: Sequence[ToolCall]) -> None:
        self.calls = calls
        self.names = [tool_name(call.name) for call in calls]
        """The tools, by the names that are compared."""

    @cached_property
    def arguments(self) -> list[Arguments]:
        """The arguments in canonical form."""
        return [canonical_arguments(call.arguments) for call in self.calls]

    @cached_property
    def messages(self) -> list[int]:
        """The calls in order as bits; a block holds the calls that one model message requested."""
        return blocks([call.group for call in self.calls])


class Comparison:
    """Two trajectories side by side. Raises `TooLongError` beyond `MAX_CALLS` on either side."""

    def __init__(self, actual: Calls, expected: PreparedReference) -> None:
        longest = max(len(actual.calls), len(expected.calls))
        if longest > MAX_CALLS:
            raise TooLongError(
                f"{counted(len(actual.calls), 'call')} against {len(expected.calls)} expected ones;"
                f" at most {MAX_CALLS} are compared"
            )
        self.actual, self.expected = actual, expected
        self._relations: dict[Rules, _Relation] = {}
        self._alignments: dict[tuple[Rules, Order], Alignment] = {}

    def align(self, rules: Rules, order: Order = IN_ORDER) -> Alignment:
        """The best alignment: as many required calls as possible, then as many others."""
        alignment = self._alignments.get((rules, order))
        if alignment is None:
            alignment = self._alignments[rules, order] = self._align(rules, order)
        return alignment

    def matching(self, rules: Rules) -> Sequence[int]:
        """For each actual call, the expected calls that it matches anywhere, as bits."""
        return self._relation(rules).masks

    def members(self, rules: Rules) -> tuple[Members, Members]:
        """The members as recorded, and in the best case of arguments that were not recorded."""
        relation = self._relation(rules)
        return self._members(relation.masks), self._members(relation.best_case)

    def _members(self, masks: Sequence[int]) -> Members:
        found = reduce(or_, masks, 0)
        return Members(
            sum(map(bool, masks)), found.bit_count(), (found | self.expected.required).bit_count()
        )

    def _align(self, rules: Rules, order: Order) -> Alignment:
        relation = self._relation(rules)
        pairs = self._pairs(relation.masks, relation.selective, order)
        counts = self._counts(pairs)
        best_case = counts
        if relation.best_case is not relation.masks:
            best_case = self._counts(self._pairs(relation.best_case, relation.selective, order))
        paired_actual, paired_expected = {i for i, _ in pairs}, {j for _, j in pairs}
        required = [j for j, call in enumerate(self.expected.calls) if not call.optional]
        return Alignment(
            pairs=tuple(pairs),
            missing=tuple([j for j in required if j not in paired_expected]),
            unexpected=tuple([i for i in range(counts.actual) if i not in paired_actual]),
            counts=counts,
            best_case=best_case,
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
        parallel = len(self.actual.messages) < len(self.actual.calls)
        if parallel and not grouped and not order.within_message:
            return self._pairs_within_messages(masks)
        if grouped or expected.optional:
            return block_pairs(masks, [mask & expected.required for mask in masks], expected.blocks)
        return ordered_pairs(masks, len(expected.calls))

    def _pairs_within_messages(self, masks: Sequence[int]) -> list[tuple[int, int]]:
        """Pairs in order, where calls of one message may come in any order."""
        columns = transposed(masks, len(self.expected.calls))
        required = self.expected.required
        preferred = [column if required >> j & 1 else 0 for j, column in enumerate(columns)]
        return sorted((i, j) for j, i in block_pairs(columns, preferred, self.actual.messages))

    def _unordered(self, masks: Sequence[int], selective: int) -> list[tuple[int, int]]:
        relation = dict(enumerate(masks))
        preferred = None
        if self.expected.optional:
            preferred = {i: mask & self.expected.required for i, mask in relation.items()}
        return sorted(largest_matching(relation, preferred, first=selective).items())

    def _relation(self, rules: Rules) -> _Relation:
        relation = self._relations.get(rules)
        if relation is None:
            relation = self._relations[rules] = self._related(*self.expected.requirements(rules))
        return relation

    def _related(self, by_tool: Mapping[str, ToolRequirements], selective: int) -> _Relation:
        same_tool = [self.expected.named.get(name, 0) for name in self.actual.names]
        if not selective:
            return _Relation(same_tool, same_tool, 0)
        satisfied = SatisfiedCalls(by_tool)
        masks, best_case = [], []
        for call, name, key, candidates in zip(
            self.actual.calls, self.actual.names, self.actual.arguments, same_tool, strict=True
        ):
            mask = candidates & ~selective
            if key is not None and mask != candidates:
                mask |= satisfied.of(name, call.arguments, key)
            masks.append(mask)
            best_case.append(candidates if key is None else mask)
        return _Relation(masks, masks if best_case == masks else best_case, selective)


class _Same(Generic[_T]):
    """A cache key by identity: trajectories contain dicts, so they have no hash.

    Identity is safe for values that never change, as long as they stay alive; the cache keeps them
    alive.
    """

    __slots__ = ("value",)

    def __init__(self, value: _T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


@lru_cache(maxsize=1)
def _calls(
    actual: _Same[tuple[ToolCall, ...]],
) -> tuple[Calls, dict[PreparedReference, Comparison]]:
    """The calls do not refer to their comparisons: as a reference cycle, both would outlive the
    invocation until the garbage collector runs.
    """
    return Calls(actual.value), {}


@lru_cache(maxsize=256)
def _prepared(expected: _Same[tuple[ExpectedCall, ...]]) -> PreparedReference:
    return PreparedReference(expected.value)

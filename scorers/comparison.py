"""Actual calls beside expected calls: two trajectories and a match mode come in, an `Alignment` comes out.

Several criteria look at the same two trajectories, so one `Comparison` answers every match mode and keeps what it found.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache, reduce
from operator import or_
from typing import Generic, Literal, NamedTuple, TypeVar

from scorers.alignment import Alignment, TooLongError, greedy_pairs, maximum_pairs, ordered_pairs
from scorers.equality import Arguments, canonical_arguments, tool_name
from scorers.types import ExpectedCall, ToolCall

MatchMode = Literal["name_only", "name_and_args", "name_and_required_args"]
"""What makes a call the expected one: its name; name and equal arguments; name and at least the expected arguments."""

MAX_CALLS = 2_000
"""Calls of an invocation, and of a reference turn, beyond which they are not compared."""

_T = TypeVar("_T")


class Members(NamedTuple):
    """How many calls of each side appear on the other side, however often."""

    actual: int
    expected: int


class _Relation(NamedTuple):
    """Per actual call, the expected calls that it may answer, as bits."""

    masks: list[int]
    hopeful: list[int]
    """The same, if arguments that were not recorded had been the expected ones; the same list when none matter."""
    selective: int
    """The expected calls that look at arguments."""


def align(
    actual: Sequence[ToolCall], expected: Sequence[ExpectedCall], mode: MatchMode = "name_only", *, ordered: bool = True
) -> Alignment:
    """Pair as many actual calls with expected ones as `mode` allows, each used once; `ordered` pairs do not cross.

    Raises `TooLongError` or `RecursionError` when the calls are too many, or their arguments nested too deep.
    """
    return Comparison(actual, expected).align(mode, ordered=ordered)


def compare(actual: tuple[ToolCall, ...], expected: tuple[ExpectedCall, ...]) -> Comparison:
    """The comparison of two trajectories, remembered until others are compared: criteria of one invocation share it."""
    return _latest(_Same(actual), _Same(expected))


class Comparison:
    """Two trajectories side by side. Raises `TooLongError` beyond `MAX_CALLS` on either side."""

    def __init__(self, actual: Sequence[ToolCall], expected: Sequence[ExpectedCall]) -> None:
        if max(len(actual), len(expected)) > MAX_CALLS:
            raise TooLongError(f"{len(actual)} calls against {len(expected)} expected ones; at most {MAX_CALLS} are compared")
        self.actual_names = [tool_name(call.name) for call in actual]
        self.expected_names = [tool_name(call.name) for call in expected]
        self._actual, self._expected = actual, expected
        self._relations: dict[MatchMode, _Relation] = {}
        self._alignments: dict[tuple[MatchMode, bool], Alignment] = {}

    def align(self, mode: MatchMode, *, ordered: bool) -> Alignment:
        """As the function `align`."""
        alignment = self._alignments.get((mode, ordered))
        if alignment is None:
            alignment = self._alignments[mode, ordered] = self._align(mode, ordered)
        return alignment

    def members(self, mode: MatchMode) -> tuple[Members, Members]:
        """The members as recorded, and if all arguments that were not recorded had been the expected ones."""
        relation = self._relation(mode)
        return _members(relation.masks), _members(relation.hopeful)

    def _align(self, mode: MatchMode, ordered: bool) -> Alignment:
        relation = self._relation(mode)
        pairs = self._pairs(relation.masks, relation.selective, mode, ordered)
        certain = relation.hopeful is relation.masks
        at_most = len(pairs) if certain else len(self._pairs(relation.hopeful, relation.selective, mode, ordered))
        answered, used = dict(pairs), {j for _, j in pairs}
        return Alignment(
            pairs=tuple(pairs),
            missing=tuple([j for j in range(len(self._expected)) if j not in used]),
            unexpected=tuple([i for i in range(len(self._actual)) if i not in answered]),
            at_most=at_most,
        )

    def _pairs(self, masks: list[int], selective: int, mode: MatchMode, ordered: bool) -> list[tuple[int, int]]:
        if ordered:
            return ordered_pairs(masks, len(self._expected))
        pairs = greedy_pairs(masks, self._recorded_first, selective)
        if mode == "name_and_required_args":
            pairs = maximum_pairs(masks, _positions(self.actual_names).values(), pairs)
        return sorted(pairs.items())

    def _relation(self, mode: MatchMode) -> _Relation:
        relation = self._relations.get(mode)
        if relation is None:
            relation = self._relations[mode] = self._names_alone() if mode == "name_only" else self._names_and_arguments(mode)
        return relation

    def _names_alone(self) -> _Relation:
        masks = [self._named.get(name, 0) for name in self.actual_names]
        return _Relation(masks, masks, 0)

    def _names_and_arguments(self, mode: MatchMode) -> _Relation:
        demands, selective = self._demands(mode)
        if not selective:
            return self._names_alone()
        accepted = _equal if mode == "name_and_args" else _at_least
        masks, hopeful = [], []
        for name, arguments in zip(self.actual_names, self._arguments, strict=True):
            named = self._named.get(name, 0)
            mask = named & ~selective
            if arguments is not None and mask != named:
                mask |= accepted(demands[name], arguments)
            masks.append(mask)
            hopeful.append(named if arguments is None else mask)
        return _Relation(masks, masks if hopeful == masks else hopeful, selective)

    def _demands(self, mode: MatchMode) -> tuple[dict[str, dict[Arguments, int]], int]:
        """Per tool, the arguments that are asked for and the expected calls that ask; and all these calls."""
        demands: dict[str, dict[Arguments, int]] = defaultdict(dict)
        selective = 0
        for j, (name, call) in enumerate(zip(self.expected_names, self._expected, strict=True)):
            if call.arguments or (mode == "name_and_args" and call.arguments is not None):
                asked, arguments = demands[name], canonical_arguments(call.arguments)
                asked[arguments] = asked.get(arguments, 0) | 1 << j
                selective |= 1 << j
        return demands, selective

    @cached_property
    def _named(self) -> dict[str, int]:
        """Per tool, the expected calls as bits."""
        return {name: sum(1 << j for j in indexes) for name, indexes in _positions(self.expected_names).items()}

    @cached_property
    def _arguments(self) -> list[Arguments]:
        return [canonical_arguments(call.arguments) for call in self._actual]

    @cached_property
    def _recorded_first(self) -> list[int]:
        """The order of `greedy_pairs`: calls without recorded arguments are the ones that may be hoped to answer anything."""
        return sorted(range(len(self._actual)), key=lambda i: self._actual[i].arguments is None)


def _positions(names: Sequence[str]) -> dict[str, list[int]]:
    positions: dict[str, list[int]] = defaultdict(list)
    for index, name in enumerate(names):
        positions[name].append(index)
    return positions


def _equal(asked: Mapping[Arguments, int], arguments: Arguments) -> int:
    return asked.get(arguments, 0)


def _at_least(asked: Mapping[Arguments, int], arguments: Arguments) -> int:
    if not isinstance(arguments, frozenset):
        return 0
    return sum(mask for required, mask in asked.items() if isinstance(required, frozenset) and required <= arguments)


def _members(masks: Iterable[int]) -> Members:
    return Members(sum(map(bool, masks)), reduce(or_, masks, 0).bit_count())


class _Same(Generic[_T]):
    """A value that equals nothing but itself: trajectories hold dicts, so they have an identity but no hash.

    What never changes may be recognised by its identity, as long as it is kept alive, which the cache does.
    """

    __slots__ = ("value",)

    def __init__(self, value: _T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value


@lru_cache(maxsize=1)
def _latest(actual: _Same[tuple[ToolCall, ...]], expected: _Same[tuple[ExpectedCall, ...]]) -> Comparison:
    return Comparison(actual.value, expected.value)

"""Agents that go round in circles: an invocation comes in, how often it made the same call goes
out. No reference is needed.

Two calls are the same when their names and their arguments are equal, see
`pathgauge.scorers.matching.equality`. A call whose arguments were not recorded may be the same as
any other of its tool; there is a value where that makes no difference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from operator import eq
from typing import ClassVar, NamedTuple, TypeAlias

from pathgauge.scorers.authoring.options import tools_unknown
from pathgauge.scorers.authoring.ranges import Rate, Share
from pathgauge.scorers.matching.comparison import MAX_CALLS
from pathgauge.scorers.matching.equality import Arguments, canonical_arguments, tool_name
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

CallKey: TypeAlias = tuple[str, Arguments]
"""What calls are compared by."""


@dataclass(frozen=True)
class ToolLoops(Share):
    """1 when no call was made too often with the same arguments, 0.5 when that looks like a loop, 0
    when it is one.
    """

    name: ClassVar[str] = "tool_loops"

    suspicious: int = 3
    """Equal calls from which the value is 0.5."""
    loop: int = 6
    """Equal calls from which the value is 0."""

    def __post_init__(self) -> None:
        if not 2 <= self.suspicious <= self.loop:
            raise ValueError(
                f"suspicious, loop: found {self.suspicious} and {self.loop}, expected at least 2"
                " and no less than that"
            )

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        keys = _keys(actual)
        lacking = tools_unknown(actual)
        if isinstance(keys, Score):
            return lacking or keys
        key, count = _max_equal(keys)
        value = self._value(count)
        if lacking and value > 0:
            return lacking
        line = (
            f"{key[0]} was called {count} times with the same arguments"
            if count > 1
            else "no call was seen twice"
        )
        if value != self._value(_max_possible(keys)):
            return Score.not_evaluated(
                "args_not_recorded",
                " ".join(f"arguments not recorded; without them {line}".split()),
            )
        return Score(value, None, " ".join(line.split()), _evidence(keys, key, count))

    def _value(self, count: int) -> float:
        return 1.0 if count < self.suspicious else 0.5 if count < self.loop else 0.0


@dataclass(frozen=True)
class RedundantCalls(Rate):
    """The share of calls that the agent had already made with the same arguments."""

    name: ClassVar[str] = "redundant_calls"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        keys = _keys(actual)
        if unknown := tools_unknown(actual):
            return unknown
        if isinstance(keys, Score):
            return keys
        names = Counter(name for name, _ in keys)
        if any(arguments is None and names[name] > 1 for name, arguments in keys):
            return Score.not_evaluated(
                "args_not_recorded",
                "arguments not recorded, without which equal calls cannot be told from others",
            )
        first: dict[CallKey, int] = {}
        again = [
            (i, first[key], key[0]) for i, key in enumerate(keys) if first.setdefault(key, i) != i
        ]
        line = f"{len(again)} of {len(keys)} calls repeat an earlier one"
        if again:
            line += f": {listed([name for _, _, name in again])}"
        return Score(
            len(again) / len(keys),
            None,
            line,
            {"repeated": [list(row) for row in again], "calls": len(keys)},
        )


class Run(NamedTuple):
    """A part of a sequence that is made of equal pieces."""

    start: int
    period: int
    """The length of a piece."""
    repeats: int


def longest_run(sequence: Sequence[Hashable]) -> Run | None:
    """The run of at least two equal pieces that covers the most elements, of the shortest pieces;
    the first of several.
    """
    numbers: dict[Hashable, int] = {}
    coded = [numbers.setdefault(element, len(numbers)) for element in sequence]
    best: Run | None = None
    for period in range(1, len(coded) // 2 + 1):
        start, repeats = _max_repeats(bytes(map(eq, coded, coded[period:])), period)
        if repeats > 1 and (best is None or repeats * period > best.repeats * best.period):
            best = Run(start, period, repeats)
    return best


def _max_repeats(same: bytes, period: int) -> tuple[int, int]:
    """Where the first run of the most pieces starts, and how many they are; `same` has ones where
    an element comes again a period later.
    """
    again = max(map(len, same.split(b"\0"))) // period
    return same.index(b"\1" * (again * period)), again + 1


def _keys(actual: Invocation) -> list[CallKey] | Score:
    if not actual.tool_calls:
        return Score.not_evaluated("not_applicable", "no tool was called")
    if len(actual.tool_calls) > MAX_CALLS:
        return Score.not_evaluated(
            "too_long", f"{len(actual.tool_calls)} calls; at most {MAX_CALLS} are compared"
        )
    try:
        return [
            (tool_name(call.name), canonical_arguments(call.arguments))
            for call in actual.tool_calls
        ]
    except RecursionError:
        return Score.not_evaluated("too_long", "arguments nested too deep")


def _max_equal(keys: Sequence[CallKey]) -> tuple[CallKey, int]:
    """The call that was made most often for certain, the first of several, and how often."""
    counts = Counter(key for key in keys if key[1] is not None)
    return counts.most_common(1)[0] if counts else (keys[0], 1)


def _max_possible(keys: Sequence[CallKey]) -> int:
    """How often the same call was made at most, if arguments that were not recorded were the most
    frequent ones.
    """
    unknown = Counter(name for name, arguments in keys if arguments is None)
    known = Counter(key for key in keys if key[1] is not None)
    return max([*unknown.values(), *(count + unknown[key[0]] for key, count in known.items())])


def _evidence(keys: Sequence[CallKey], key: CallKey, count: int) -> dict[str, Json]:
    """`most`: the positions of the call that was made most often; `run`: the longest run of calls,
    with the names of one piece.
    """
    if count == 1:
        return {"most": [], "run": None}
    distinct = [other if other[1] is not None else index for index, other in enumerate(keys)]
    run = longest_run(distinct)
    piece = (
        None
        if run is None
        else {
            **run._asdict(),
            "tools": [name for name, _ in keys[run.start : run.start + run.period]],
        }
    )
    return {"most": [index for index, other in enumerate(keys) if other == key], "run": piece}

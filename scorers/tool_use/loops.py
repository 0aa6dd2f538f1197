"""Scores how often an agent repeated the same tool call. No reference is needed.

Two calls are the same if their names and arguments are equal, see
`pathgauge.scorers.matching.equality`. A call without recorded arguments may be the same as any
other call of its tool; there is a value only where that makes no difference.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from operator import eq
from typing import ClassVar, NamedTuple, TypeAlias

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.ranges import Rate, Share
from pathgauge.scorers.matching.comparison import MAX_CALLS
from pathgauge.scorers.matching.equality import Arguments, canonical_arguments, tool_name
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

CallKey: TypeAlias = tuple[str, Arguments]
"""Name and arguments: what is compared."""


@dataclass(frozen=True)
class ToolLoops(Share):
    """1 if no call was repeated often with the same arguments, 0.5 if it may be a loop, 0 if it is
    one.
    """

    name: ClassVar[str] = "tool_loops"

    suspicious: int = 3
    """From this number of equal calls, the value is 0.5."""
    loop: int = 6
    """From this number of equal calls, the value is 0."""

    def __post_init__(self) -> None:
        if not 2 <= self.suspicious <= self.loop:
            raise ValueError(
                f"suspicious, loop: found {self.suspicious} and {self.loop}, expected at least 2"
                " and no less than that"
            )

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        keys = _keys(actual)
        incomplete = tools_unknown(actual)
        if isinstance(keys, Score):
            return incomplete or keys
        key, count = _most_frequent(keys)
        value = self._value(count)
        if incomplete and value > 0:
            return incomplete
        explanation = "no call was seen twice"
        if count > 1:
            tool = " ".join(key[0].split())
            explanation = f"{tool} was called {count} times with the same arguments"
        if value != self._value(_max_possible_count(keys)):
            return Score.not_evaluated(
                "args_not_recorded", f"arguments not recorded; without them {explanation}"
            )
        return Score(value, None, explanation, _evidence(keys, key, count))

    def _value(self, count: int) -> float:
        if count < self.suspicious:
            return 1.0
        return 0.5 if count < self.loop else 0.0


@dataclass(frozen=True)
class RedundantCalls(Rate):
    """The share of calls that the agent had already made with the same arguments."""

    name: ClassVar[str] = "redundant_calls"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        keys = _keys(actual)
        if unknown := tools_unknown(actual):
            return unknown
        if isinstance(keys, Score):
            return keys
        names = Counter(name for name, _ in keys)
        if any(arguments is None and names[name] > 1 for name, arguments in keys):
            return Score.not_evaluated(
                "args_not_recorded",
                "arguments not recorded, so equal calls cannot be told from different ones",
            )
        first: dict[CallKey, int] = {}
        repeated: list[Json] = [
            [at, first[key], key[0]]
            for at, key in enumerate(keys)
            if first.setdefault(key, at) != at
        ]
        explanation = f"{len(repeated)} of {len(keys)} calls repeat an earlier one"
        if repeated:
            explanation += f": {listed([name for _, _, name in repeated])}"
        details: dict[str, Json] = {"repeated": repeated, "calls": len(keys)}
        return Score(len(repeated) / len(keys), None, explanation, details)


def most_repeated(actual: Invocation) -> list[int]:
    """The positions of the call that was made most often with the same arguments. Empty if no call
    was repeated, or if the calls cannot be compared.
    """
    keys = _keys(actual)
    if isinstance(keys, Score):
        return []
    key, count = _most_frequent(keys)
    return _positions(keys, key) if count > 1 else []


def equal_calls(actual: Invocation) -> list[list[int]]:
    """The positions of each call that was made several times with the same arguments. Empty if the
    calls cannot be compared.
    """
    keys = _keys(actual)
    if isinstance(keys, Score):
        return []
    found: dict[CallKey, list[int]] = defaultdict(list)
    for at, key in enumerate(keys):
        if key[1] is not None:
            found[key].append(at)
    return [positions for positions in found.values() if len(positions) > 1]


class Run(NamedTuple):
    """A part of a sequence that repeats one piece."""

    start: int
    period: int
    """Length of the piece."""
    repeats: int


def longest_run(sequence: Sequence[Hashable]) -> Run | None:
    """The run of at least two equal pieces that covers the most elements. Among equally long runs,
    the one with the shortest piece, and of these the first.
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
    """The start of the first run with the most pieces, and their number. `same` has a 1 wherever an
    element equals the one a period later.
    """
    again = max(map(len, same.split(b"\0"))) // period
    return same.index(b"\1" * (again * period)), again + 1


def _keys(actual: Invocation) -> list[CallKey] | Score:
    if not actual.tool_calls:
        return Score.not_evaluated("not_applicable", "no tool was called")
    if len(actual.tool_calls) > MAX_CALLS:
        return Score.not_evaluated(
            "too_long",
            f"{counted(len(actual.tool_calls), 'call')}; at most {MAX_CALLS} are compared",
        )
    try:
        return [
            (tool_name(call.name), canonical_arguments(call.arguments))
            for call in actual.tool_calls
        ]
    except RecursionError:
        return Score.not_evaluated("too_long", "arguments nested too deep")


def _most_frequent(keys: Sequence[CallKey]) -> tuple[CallKey, int]:
    """The most frequent call with recorded arguments, the first of several, and its count."""
    counts = Counter(key for key in keys if key[1] is not None)
    return counts.most_common(1)[0] if counts else (keys[0], 1)


def _positions(keys: Sequence[CallKey], key: CallKey) -> list[int]:
    return [at for at, other in enumerate(keys) if other == key]


def _max_possible_count(keys: Sequence[CallKey]) -> int:
    """The count of the most frequent call if all arguments that were not recorded equalled its
    arguments.
    """
    unknown = Counter(name for name, arguments in keys if arguments is None)
    known = Counter(key for key in keys if key[1] is not None)
    return max([*unknown.values(), *(count + unknown[key[0]] for key, count in known.items())])


def _evidence(keys: Sequence[CallKey], key: CallKey, count: int) -> dict[str, Json]:
    """Details: `most` has the positions of the most frequent call, `run` the longest repeated
    sequence of calls.
    """
    if count == 1:
        return {"most": [], "run": None}
    # A call without recorded arguments equals no other: its position stands for it.
    distinct = [at if other[1] is None else other for at, other in enumerate(keys)]
    details: dict[str, Json] = {
        "most": _positions(keys, key),
        "run": None,
    }
    if run := longest_run(distinct):
        tools = [name for name, _ in keys[run.start : run.start + run.period]]
        details["run"] = {**run._asdict(), "tools": tools}
    return details

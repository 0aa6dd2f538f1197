"""Tool calls for people: an expected and an actual call side by side, with the parts of the
arguments that differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pathgauge.collector.core.evidence.comparison import (
    AlignedCall,
    Call,
    Mark,
    value_text,
)
from pathgauge.collector.web.diffs import Piece, word_diff
from pathgauge.scorers.types import ExpectedCall, Json, ToolCall

MAX_ARGUMENTS = 60
"""Arguments of one call that are shown."""


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument, in pieces that are as in the other call or differ."""

    name: str
    pieces: Sequence[Piece]
    state: Literal["equal", "differs", "only_here"] = "equal"


@dataclass(frozen=True, slots=True)
class CallView:
    """One call."""

    tool: str
    arguments: Sequence[Argument] | None = None
    """`None`: any, or not known."""
    further: int = 0
    """Arguments that are not shown."""
    text: str | None = None
    """Arguments that are not a JSON object."""


@dataclass(frozen=True, slots=True)
class PairView:
    """One line of a comparison."""

    mark: Mark
    expected: CallView | None
    actual: CallView | None


def pair_view(aligned: AlignedCall) -> PairView:
    """The two calls of a line."""
    expected, actual = aligned.expected, aligned.actual
    if expected is None or actual is None or aligned.mark != "~":
        return PairView(aligned.mark, _view(expected), _view(actual))
    one, other = _mapping(expected), _mapping(actual)
    if one is None or other is None:
        return PairView(aligned.mark, _view(expected), _view(actual))
    pairs = {name: _pair(name, one, other, aligned.differing) for name in [*one, *other]}
    return PairView(
        aligned.mark,
        _compared(expected.name, [found for found, _ in pairs.values() if found]),
        _compared(actual.name, [found for _, found in pairs.values() if found]),
    )


def expected_view(call: ExpectedCall) -> CallView:
    """A call of the reference."""
    return _plain(Call(call.name, call.arguments))


def actual_view(call: ToolCall) -> CallView:
    """A call of the agent."""
    return _plain(Call(call.name, call.arguments))


def _view(call: Call | None) -> CallView | None:
    return None if call is None else _plain(call)


def _plain(call: Call) -> CallView:
    if call.arguments is None:
        return CallView(call.name)
    if isinstance(call.arguments, str):
        return CallView(call.name, text=call.arguments)
    listed = [
        Argument(name, [Piece(value_text(value), False)]) for name, value in call.arguments.items()
    ]
    return _compared(call.name, listed)


def _compared(tool: str, arguments: Sequence[Argument]) -> CallView:
    return CallView(tool, arguments[:MAX_ARGUMENTS], max(0, len(arguments) - MAX_ARGUMENTS))


def _mapping(call: Call) -> Mapping[str, Json] | None:
    return call.arguments if isinstance(call.arguments, Mapping) else None


def _pair(
    name: str, one: Mapping[str, Json], other: Mapping[str, Json], differing: Sequence[str]
) -> tuple[Argument | None, Argument | None]:
    """An argument in both calls; `None` where it is absent."""
    texts = [value_text(side[name]) if name in side else None for side in (one, other)]
    expected, actual = texts
    if expected is None or actual is None:
        first, second = (_alone(name, text, name in differing) for text in texts)
        return first, second
    if name not in differing:
        return Argument(name, [Piece(expected, False)]), Argument(name, [Piece(actual, False)])
    here, there = word_diff(expected, actual)
    return Argument(name, here, "differs"), Argument(name, there, "differs")


def _alone(name: str, text: str | None, differs: bool) -> Argument | None:
    if text is None:
        return None
    return Argument(name, [Piece(text, differs)], "only_here" if differs else "equal")

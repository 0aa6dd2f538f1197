"""Translates the tool calls of an invocation into events: what can happen in an invocation, or not.

Events of four kinds describe an invocation: a tool was called, one tool followed another (with the
start and the end of the invocation), the invocation took a path, and the invocation had so many
calls. An event is a string, its kind followed by its name, so that it can be the key of a JSON
object. Both the number of events of an invocation and their length are bounded, whatever an agent
does.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import groupby, pairwise
from sys import intern
from typing import Final, Literal

from pathgauge.scorers.matching.wording import counted

Kind = Literal["tool", "transition", "path", "calls"]

KINDS: Final[tuple[Kind, ...]] = ("tool", "transition", "path", "calls")

START, END = "(start)", "(end)"

_NAME = 80
"""Characters of a tool's name that are read."""
_CALLS = 1000
"""Calls of an invocation that are read."""
_DISTINCT = 48
"""Different tools, and different transitions, of an invocation that are counted."""
_STEPS = 12
"""Steps of a path that are spelled out; the rest is a hash."""

_BINS = (0, 1, 2, 3, 4, 5, 7, 10, 14, 20, 28, 40, 57, 80, 113, 160)
"""The smallest number of calls of each bin. They grow by half, so that twice as many calls are
always two bins further up.
"""


def events_of(tool_names: Sequence[str]) -> tuple[str, ...]:
    """The events of an invocation that called these tools in this order, each once."""
    names = [name[:_NAME] for name in tool_names[:_CALLS]]
    steps = pairwise([START, *names, END])
    tools = list(dict.fromkeys(names))[:_DISTINCT]
    transitions = list(dict.fromkeys(f"{one} → {other}" for one, other in steps))[:_DISTINCT]
    return (
        *(event("tool", name) for name in tools),
        *(event("transition", step) for step in transitions),
        event("path", path_of(names)),
        event("calls", bin_of(len(tool_names))),
    )


def event(kind: Kind, name: str) -> str:
    """The event of this kind and name, one object for all invocations."""
    return intern(f"{kind} {name}")


def kind_of(key: str) -> Kind:
    """The kind of an event."""
    name = key.partition(" ")[0]
    return next(kind for kind in KINDS if kind == name)


def name_of(key: str) -> str:
    """The name of an event without its kind."""
    return key.partition(" ")[2]


def path_of(names: Sequence[str]) -> str:
    """The tools in order, repeated calls of one tool as one step: how often a call is repeated
    shows in the number of calls.
    """
    steps = [name for name, _ in groupby(names)]
    if len(steps) <= _STEPS:
        return " → ".join(steps)
    digest = blake2b("\0".join(steps).encode(errors="replace"), digest_size=6).hexdigest()
    return f"{' → '.join(steps[: _STEPS - 2])} → … ({counted(len(steps), 'step')}, {digest})"


def bin_of(calls: int) -> str:
    """The range of numbers that `calls` is in, as text: `3`, `5-6` or `160+`."""
    index = sum(calls >= low for low in _BINS) - 1
    if index == len(_BINS) - 1:
        return f"{_BINS[index]}+"
    low, high = _BINS[index], _BINS[index + 1] - 1
    return str(low) if low == high else f"{low}-{high}"

"""Shared parts of scorers: validated options, mappings as options, and a check for lost calls."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.types import Flag, Invocation, Score


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Raise `ValueError` unless the value of the option is one of the choices."""
    if value not in choices:
        raise ValueError(f"{option}: found {value!r}, expected one of {', '.join(choices)}")


def check_tool(option: str, value: str) -> None:
    """Raise `ValueError` if an option that names a tool is blank."""
    if not tool_name(value):
        raise ValueError(f"{option}: found {value!r}, expected the name of a tool")


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class FrozenMapping(dict[_Key, _Value]):
    """A mapping that must not be changed, so it can have a hash. Its values need none."""

    def __hash__(self) -> int:  # type: ignore[override]  # dict declares that it has none
        return hash(frozenset(self))


_LOST: frozenset[Flag] = frozenset({"lost_parents", "lost_tool_calls", "lost_model_calls"})
_INCOMPLETE: frozenset[Flag] = frozenset({"no_tool_spans", "dropped_spans"})


def spans_lost(actual: Invocation) -> Score | None:
    """A score without value if flags say that spans were lost on their way, else `None`."""
    flags = sorted(_LOST & actual.flags)
    if not flags:
        return None
    return Score.not_evaluated("lost_telemetry", f"spans were lost: {', '.join(flags)}")


def tools_unknown(actual: Invocation) -> Score | None:
    """A score without value if flags say that tool calls may be missing, else `None`."""
    if lost := spans_lost(actual):
        return lost
    flags = sorted(_INCOMPLETE & actual.flags)
    if not flags:
        return None
    return Score.not_evaluated(
        "tools_not_recorded", f"tool calls may be missing from the telemetry: {', '.join(flags)}"
    )

"""What many scorers need: checked options, mappings as options, and a check for missing telemetry."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.types import Flag, Invocation, Score


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Raise `ValueError` for an option whose value is none of the choices."""
    if value not in choices:
        raise ValueError(f"{option}: found {value!r}, expected one of {', '.join(choices)}")


def check_tool(option: str, value: str) -> None:
    """Raise `ValueError` for an option that should name a tool and is blank."""
    if not tool_name(value):
        raise ValueError(f"{option}: found {value!r}, expected the name of a tool")


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class FrozenMapping(dict[_Key, _Value]):
    """A mapping that nobody changes, so that it may have a hash; its values need none."""

    def __hash__(self) -> int:  # type: ignore[override]  # a dict says that it has none
        return hash(frozenset(self))


_INCOMPLETE: frozenset[Flag] = frozenset({"no_tool_spans", "dropped_spans"})


def tools_unknown(actual: Invocation) -> Score | None:
    """The score of an invocation whose telemetry may lack tool calls; `None` when it has them all."""
    lacking = sorted(_INCOMPLETE & actual.flags)
    if not lacking:
        return None
    return Score.not_evaluated(
        "tools_not_recorded", f"tool calls may be missing from the telemetry: {', '.join(lacking)}"
    )

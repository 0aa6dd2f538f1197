"""Shared parts of scorers: validated options, and mappings as options."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

from pathgauge.scorers.matching.equality import tool_name


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Raise `ValueError` unless the value of the option is one of the choices."""
    if value not in choices:
        raise ValueError(f"{option}: found {value!r}, expected one of {', '.join(choices)}")


def check_tool(option: str, value: str) -> None:
    """Raise `ValueError` if an option that names a tool is blank."""
    if not tool_name(value):
        raise ValueError(f"{option}: found {value!r}, expected the name of a tool")


def check_texts(option: str, values: object) -> None:
    """Raise `ValueError` if an option that lists texts is a text: it would be read by letter, so
    that a forbidden tool, for example, would never be found.
    """
    if isinstance(values, str):
        raise ValueError(f"{option}: found {values!r}, expected a list of texts")


_Key = TypeVar("_Key")
_Value = TypeVar("_Value")


class FrozenMapping(dict[_Key, _Value]):
    """A mapping that must not be changed, so it can have a hash. Its values need none."""

    def __hash__(self) -> int:  # type: ignore[override]  # dict declares that it has none
        return hash(frozenset(self))

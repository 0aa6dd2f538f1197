"""Checks of the options of scorers, which raise `ValueError` with what was found and what was expected."""

from __future__ import annotations

from collections.abc import Collection

from scorers.matching.equality import tool_name


def check_choice(option: str, value: str, choices: Collection[str]) -> None:
    """Raise `ValueError` for an option whose value is none of the choices."""
    if value not in choices:
        raise ValueError(f"{option}: found {value!r}, expected one of {', '.join(choices)}")


def check_tool(option: str, value: str) -> None:
    """Raise `ValueError` for an option that should name a tool and is blank."""
    if not tool_name(value):
        raise ValueError(f"{option}: found {value!r}, expected the name of a tool")

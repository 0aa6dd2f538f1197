"""Criteria as people write them: what a file holds under `criteria` comes in, its parts under one
spelling go out.

One criterion is a number (the threshold), or a mapping of the keys in `OWN` and the scorer's
options, or empty (no threshold: its scores are informational), or `false` (switched off). The
mapping of ADK's `test_config.json` is understood as it stands: option keys may be in camelCase.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pathgauge.collector.core.documents import Document, KeyPath, Problem
from pathgauge.scorers.types import Json

DEFAULTS: Mapping[str, Json] = {"failure": None, "latency": None}
"""The criteria of a configuration that names none: they need no reference and have no threshold."""

OWN = ("threshold", "objective", "scorer", "takes", "agent", "view")
"""The keys of every criterion; all others are options of its scorer."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where criteria stand: at `path` of a document."""

    document: Document
    path: KeyPath

    def problem(self, keys: KeyPath, text: str, *, of_key: bool = False) -> Problem:
        """A mistake at the `keys` below this place."""
        return self.document.problem((*self.path, *keys), text, of_key=of_key)


def lay_over(criteria: Mapping[str, Json], others: Mapping[str, Json]) -> dict[str, Json]:
    """The `criteria` with the `others` laid over them: a threshold replaces a threshold, an option
    an option, `false` all of it.

    A criterion that names its scorer starts anew.
    """
    laid = dict(criteria)
    for name, other in others.items():
        below, above = parts(laid.get(name)), parts(other)
        if name not in laid or below is None or above is None or "scorer" in above:
            laid[name] = other
        else:
            laid[name] = {**below, **above}
    return laid


def parts(written: Json) -> dict[str, Json] | None:
    """A criterion as a mapping with keys in snake_case; `None` when it is nothing that a criterion
    can be.
    """
    if written is None:
        return {}
    if is_number(written):
        return {"threshold": written}
    return (
        {snake_case(key): value for key, value in written.items()}
        if isinstance(written, dict)
        else None
    )


def affected(criteria: Mapping[str, Json], changed: Iterable[str]) -> tuple[str, ...]:
    """The names of the `changed` criteria, and of all that are made of them."""
    names = dict.fromkeys(changed)
    while more := [
        name
        for name, written in criteria.items()
        if name not in names and not names.keys().isdisjoint(_members(written))
    ]:
        names |= dict.fromkeys(more)
    return tuple(names)


def _members(written: Json) -> list[str]:
    members = (parts(written) or {}).get("of")
    return (
        [member for member in members if isinstance(member, str)]
        if isinstance(members, list)
        else []
    )


def is_number(value: Json) -> bool:
    """Whether a value is a finite number, and no larger than a metric can be; `true` is none."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )


def snake_case(key: str) -> str:
    """`matchMode` as `match_mode`."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower() if key.isidentifier() else key

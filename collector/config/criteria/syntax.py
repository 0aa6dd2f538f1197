"""The syntax of `criteria`, normalized: every spelling of a criterion becomes a mapping of options.

A criterion is a number (the threshold), a mapping of `COMMON_KEYS` and the scorer's options, empty
(no threshold: its scores are informational), or `false` (switched off). The mapping of ADK's
`test_config.json` is accepted as it is: option keys may be in camelCase.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pathgauge.collector.core.documents import Document, KeyPath, Problem
from pathgauge.scorers.types import Json

DEFAULTS: Mapping[str, Json] = {"failure": None, "latency": None}
"""The criteria of a configuration without any: they need no reference and have no threshold."""

COMMON_KEYS = (
    "threshold",
    "objective",
    "scorer",
    "takes",
    "agent",
    "view",
    "include_intermediate_responses_in_final",
    "over",
    "aggregate",
    "each",
    "k",
)
"""The keys of every criterion. All others are options of its scorer."""


@dataclass(frozen=True, slots=True)
class Location:
    """The position of a `criteria` mapping: a path in a document."""

    document: Document
    path: KeyPath

    def problem(self, keys: KeyPath, text: str, *, of_key: bool = False) -> Problem:
        """A problem at the `keys` below this path."""
        return self.document.problem((*self.path, *keys), text, of_key=of_key)


def merge(criteria: Mapping[str, Json], overrides: Mapping[str, Json]) -> dict[str, Json]:
    """`criteria` with `overrides`: a threshold replaces a threshold, an option an option, and
    `false` switches the criterion off. An override that names a scorer replaces all options.
    """
    merged = dict(criteria)
    for name, override in overrides.items():
        old, new = normalized(merged.get(name)), normalized(override)
        if name not in merged or old is None or new is None or "scorer" in new:
            merged[name] = override
        else:
            merged[name] = {**old, **new}
    return merged


def normalized(written: Json) -> dict[str, Json] | None:
    """A criterion as a mapping with keys in snake_case; `None` when the value is no criterion."""
    if written is None:
        return {}
    if is_number(written):
        return {"threshold": written}
    if isinstance(written, dict):
        return {snake_case(key): value for key, value in written.items()}
    return None


def affected(criteria: Mapping[str, Json], changed: Iterable[str]) -> tuple[str, ...]:
    """The names of the `changed` criteria, and of all criteria made of them."""
    names = dict.fromkeys(changed)
    while more := [
        name
        for name, written in criteria.items()
        if name not in names and not names.keys().isdisjoint(_members(written))
    ]:
        names |= dict.fromkeys(more)
    return tuple(names)


def _members(written: Json) -> list[str]:
    members = (normalized(written) or {}).get("of")
    if not isinstance(members, list):
        return []
    return [member for member in members if isinstance(member, str)]


def is_number(value: Json) -> bool:
    """Whether the value is a finite number that a metric can hold. `true` is not a number."""
    return (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and abs(value) <= sys.float_info.max
    )


def snake_case(key: str) -> str:
    """`matchMode` as `match_mode`."""
    if not key.isidentifier():
        return key
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower()

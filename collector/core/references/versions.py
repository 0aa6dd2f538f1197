"""The version of a reference: a hash of its content, the same in every format.

Fields with their default value are left out of the hash, so that existing references keep their
version when a later release adds a field.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from pathgauge.scorers.matching import matchers
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn, TurnRubric

_ALWAYS_HASHED = frozenset(
    {
        "scenario_id",
        "turns",
        "criteria",
        "version",
        "source",
        "user_input",
        "tool_calls",
        "response",
        "name",
        "arguments",
    }
)
"""The fields of the first release. They are part of every hash, even with their default value."""


def version(reference: Reference) -> str:
    """Twelve hex digits that change with everything that affects scores. Source, expected interval
    and `required` do not.
    """
    content = _content(
        dataclasses.replace(
            reference, source="", version="", expected_interval=None, required=False
        )
    )
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def _content(value: Any) -> Json:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    match value:
        case Mapping():
            return {key: _content(item) for key, item in value.items()}
        case list() | tuple():
            return [_content(item) for item in value]
        case Reference() | ReferenceTurn() | ExpectedCall() | TurnRubric():
            return dict(_hashed_fields(value))
        case _:  # the null character keeps a matcher apart from arguments that look like one
            return {"\0matcher": matchers.written(value)}


def _hashed_fields(
    value: Reference | ReferenceTurn | ExpectedCall | TurnRubric,
) -> Iterator[tuple[str, Json]]:
    kind: Any = type(value)
    for name, always, default in _fields(kind):
        item = getattr(value, name)
        if always or item != default:
            yield name, _content(item)


@cache
def _fields(kind: Any) -> tuple[tuple[str, bool, Any], ...]:
    """Name of each field, whether it is always hashed, and its default value."""
    return tuple(
        (field.name, field.name in _ALWAYS_HASHED, _default(field))
        for field in dataclasses.fields(kind)
    )


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return field.default

"""The version of a reference: its content comes in, a short hash goes out that is the same for the
same content in every format.

Fields that say nothing are no content, so that a reference keeps its version when references learn
to say more.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from pathgauge.scorers.matching import matchers
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn

_ALWAYS = frozenset(
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
"""What references said from the beginning; it is part of every hash."""


def version(reference: Reference) -> str:
    """Twelve hex digits that change with everything that scores depend on: not with the source, nor
    with the expected interval.
    """
    content = _content(
        dataclasses.replace(reference, source="", version="", expected_interval=None)
    )
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()[:12]


def _content(value: Any) -> Json:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case Mapping():
            return {key: _content(item) for key, item in value.items()}
        case list() | tuple():
            return [_content(item) for item in value]
        case Reference() | ReferenceTurn() | ExpectedCall():
            return dict(_said(value))
        case _:  # no JSON key begins so: a matcher is not the arguments that look like it
            return {"\0matcher": matchers.written(value)}


def _said(value: Reference | ReferenceTurn | ExpectedCall) -> Iterator[tuple[str, Json]]:
    for field in dataclasses.fields(value):
        item = getattr(value, field.name)
        default = (
            field.default_factory()
            if field.default_factory is not dataclasses.MISSING
            else field.default
        )
        if field.name in _ALWAYS or item != default:
            yield field.name, _content(item)

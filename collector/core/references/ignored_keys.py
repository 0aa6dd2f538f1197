"""Finds the keys that a format ignores, so that `pathgauge import` can report them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import BaseModel

from pathgauge.scorers.types import Json


def unknown_keys(part: BaseModel, prefix: str = "") -> Iterator[str]:
    """Non-empty keys that the model has no field for, including those of nested models."""
    yield from (f"{prefix}{key}" for key in non_empty_keys(part.model_extra or {}))
    for name in type(part).model_fields:
        value = getattr(part, name)
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, BaseModel):
                yield from unknown_keys(inner, f"{prefix}{name}.")


def non_empty_keys(mapping: Mapping[str, Json]) -> Iterator[str]:
    """The keys whose value is not null, empty text, an empty list or an empty mapping."""
    return (key for key, value in mapping.items() if value not in (None, "", [], {}))

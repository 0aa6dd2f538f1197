"""What a loader makes of a document: its references, each with its path in the document, and an
account of what was left aside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from pydantic import BaseModel

from pathgauge.collector.core.documents import Document, KeyPath
from pathgauge.scorers.types import Json, Reference

Ignored: TypeAlias = Counter[str]
"""How often each key was passed over, by its path without indices: `conversation.app_details`."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The references of one document."""

    document: Document
    """Where the paths of the references lead: what was read, perhaps arranged anew."""
    references: list[tuple[KeyPath, Reference]] = field(default_factory=list)
    ignored: Ignored = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    """What the operator should know of the names or the meaning of the references, a line each."""

    def add(self, path: KeyPath, reference: Reference) -> None:
        """Add a reference that stands at `path`."""
        self.references.append((path, reference))


def unread(part: BaseModel, prefix: str = "") -> Iterator[str]:
    """The keys that a model accepts without knowing them and that say something, those of all
    models inside it too.
    """
    yield from (f"{prefix}{key}" for key in said(part.model_extra or {}))
    for name in type(part).model_fields:
        value = getattr(part, name)
        for inner in value if isinstance(value, list) else [value]:
            if isinstance(inner, BaseModel):
                yield from unread(inner, f"{prefix}{name}.")


def said(keys: Mapping[str, Json]) -> Iterator[str]:
    """The keys whose values are not empty."""
    return (key for key, value in keys.items() if value not in (None, "", [], {}))

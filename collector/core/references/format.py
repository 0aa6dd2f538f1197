"""What a reference format is: the type that plug-ins register under `pathgauge.formats`.

docs/adding-a-reference-format.md shows how to write one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from pathgauge.collector.core.documents import Document, KeyPath
from pathgauge.scorers.types import Json, Reference


@dataclass(frozen=True, slots=True)
class LoadedReferences:
    """The references of one document, as a format's `load` returns them."""

    document: Document
    """The document that the paths refer to: the one that was loaded, or a rearranged copy."""
    references: list[tuple[KeyPath, Reference]] = field(default_factory=list)
    """Each reference with its path in the document, which gives it its line number."""
    ignored: Counter[str] = field(default_factory=Counter)
    """How often each key was ignored, by its path without list indices:
    `conversation.app_details`.
    """
    notes: list[str] = field(default_factory=list)
    """Remarks for the operator about names or meaning of the references, one line each."""

    def add(self, path: KeyPath, reference: Reference) -> None:
        """Add the reference at `path`. Its `source` and `version` are filled in afterwards."""
        self.references.append((path, reference))


@dataclass(frozen=True, slots=True)
class Format:
    """A file format for references."""

    title: str
    """Its name in messages: `ADK evalset`."""
    keys: tuple[str, ...]
    """The keys that identify the format. An error message for a file in an unknown format names
    the first one; a misspelt key is compared with all of them.
    """
    recognises: Callable[[Json], bool]
    """Whether the data of a document is in this format. It gets every document, of any shape, and
    must not raise. The first format that recognises a document loads it.
    """
    load: Callable[[Document], LoadedReferences]
    """Returns the references of a document that `recognises` accepted. Raises `ConfigError` with
    every problem in the document.
    """
    before: tuple[str, ...] = ()
    """Names of formats that are asked after this one, because they also recognise some of its
    documents.
    """

"""Tells the format of reference data and loads it: a `Document` comes in, its references with their
versions go out.

`FORMATS` is where a new format is added.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    KeyPath,
    Problem,
    did_you_mean,
    show_value,
)
from pathgauge.collector.core.references import (
    adk,
    chat_messages,
    langgraph,
    native,
    vertex,
)
from pathgauge.collector.core.references.loaded import Contents, Ignored
from pathgauge.collector.core.references.versions import version
from pathgauge.scorers.types import Json, Reference


class Format(NamedTuple):
    """One way to write references."""

    title: str
    keys: tuple[str, ...]
    """The keys that tell it from the others."""
    recognises: Callable[[Json], bool]
    load: Callable[[Document], Contents]
    """Raises `ConfigError`."""


FORMATS: Mapping[str, Format] = {
    "adk": Format("ADK evalset", adk.KEYS, adk.recognises, adk.load),
    "vertex": Format("Vertex AI dataset", vertex.KEYS, vertex.recognises, vertex.load),
    "graph": Format("LangGraph trajectories", langgraph.KEYS, langgraph.recognises, langgraph.load),
    "messages": Format(
        "chat messages", chat_messages.KEYS, chat_messages.recognises, chat_messages.load
    ),
    "pathgauge": Format("pathgauge", native.KEYS, native.recognises, native.load),
}
"""By the name that the command line gives them. The first that recognises a document loads it: the
keys of later ones may stand in earlier ones too.
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """A reference and where it stands."""

    reference: Reference
    document: Document
    path: KeyPath


@dataclass(frozen=True, slots=True)
class Read:
    """What documents hold."""

    entries: list[Entry] = field(default_factory=list)
    ignored: Ignored = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    titles: set[str] = field(default_factory=set)
    """Of the formats that were found."""

    def add(self, other: Read) -> None:
        """Add what another document holds."""
        self.entries.extend(other.entries)
        self.ignored.update(other.ignored)
        self.notes.extend(other.notes)
        self.titles.update(other.titles)


def load(document: Document, name: str | None = None) -> Read:
    """The references of a document in the format of that name, or in any known format. Raises
    `ConfigError`.
    """
    known = _format(document, FORMATS if name is None else {name: FORMATS[name]})
    contents = known.load(document)
    found = contents.document
    entries = [
        Entry(_finished(reference, found, path), found, path)
        for path, reference in contents.references
    ]
    return Read(entries, contents.ignored, contents.notes, {known.title})


def refuse_duplicates(entries: Iterable[Entry]) -> None:
    """Raise `ConfigError` when two references are of one scenario."""
    first: dict[str, Reference] = {}
    problems: list[Problem] = []
    for entry in entries:
        scenario = entry.reference.scenario_id
        if scenario in first:
            text = (
                f"found the scenario {scenario!r} again, expected it once (first at"
                f" {first[scenario].source})"
            )
            problems.append(entry.document.problem(entry.path, text))
        first.setdefault(scenario, entry.reference)
    if problems:
        raise ConfigError(problems)


def _format(document: Document, formats: Mapping[str, Format]) -> Format:
    for known in formats.values():
        if known.recognises(document.data):
            return known
    found, hint = show_value(document.data), ""
    if isinstance(document.data, dict):
        keys = [key for known in formats.values() for key in known.keys]
        found = f"the keys {', '.join(document.data)}" if document.data else "no keys"
        hint = next((hint for key in document.data if (hint := did_you_mean(key, keys))), "")
    *others, last = [f"{known.keys[0]} ({known.title})" for known in list(formats.values())[::-1]]
    expected = f"{', '.join(others)} or {last}" if others else last
    raise ConfigError([document.problem((), f"found {found}, expected the key {expected}{hint}")])


def _finished(reference: Reference, document: Document, path: KeyPath) -> Reference:
    """The reference with its source and version."""
    position = document.position(path)
    source = f"{document.file}:{position.line}" if position else document.file
    return replace(reference, source=source, version=version(reference))

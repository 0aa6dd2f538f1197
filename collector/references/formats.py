"""Tells the format of reference data and loads it: a `Document` comes in, its references with their versions go out.

`FORMATS` is where a new format is added.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import NamedTuple

from collector.documents import ConfigError, Document, KeyPath, Problem, did_you_mean, show_value
from collector.references import adk, native
from scorers.types import Json, Reference


class Format(NamedTuple):
    """One way to write references."""

    keys: tuple[str, ...]
    """The top-level keys that tell it from the others."""
    recognises: Callable[[Json], bool]
    load: Callable[[Document], list[tuple[KeyPath, Reference]]]
    """Raises `ConfigError`."""


FORMATS: Mapping[str, Format] = {
    "pathgauge": Format(native.KEYS, native.recognises, native.load),
    "ADK evalset": Format(adk.KEYS, adk.recognises, adk.load),
}


@dataclass(frozen=True, slots=True)
class Entry:
    """A reference and where it stands."""

    reference: Reference
    document: Document
    path: KeyPath


def load(document: Document) -> list[Entry]:
    """The references of a document in any known format. Raises `ConfigError`."""
    loaded = _format(document).load(document)
    return [Entry(_finished(reference, document, path), document, path) for path, reference in loaded]


def refuse_duplicates(entries: Iterable[Entry]) -> None:
    """Raise `ConfigError` when two references are of one scenario."""
    first: dict[str, Reference] = {}
    problems: list[Problem] = []
    for entry in entries:
        scenario = entry.reference.scenario_id
        if scenario in first:
            text = f"found the scenario {scenario!r} again, expected it once (first at {first[scenario].source})"
            problems.append(entry.document.problem(entry.path, text))
        first.setdefault(scenario, entry.reference)
    if problems:
        raise ConfigError(problems)


def _format(document: Document) -> Format:
    for known in FORMATS.values():
        if known.recognises(document.data):
            return known
    found, hint = show_value(document.data), ""
    if isinstance(document.data, dict):
        keys = [key for known in FORMATS.values() for key in known.keys]
        found = f"the keys {', '.join(document.data)}" if document.data else "no keys"
        hint = next((hint for key in document.data if (hint := did_you_mean(key, keys))), "")
    expected = " or ".join(f"{known.keys[0]} ({name})" for name, known in FORMATS.items())
    raise ConfigError([document.problem((), f"found {found}, expected the key {expected}{hint}")])


def _finished(reference: Reference, document: Document, path: KeyPath) -> Reference:
    """The reference with its source and with a version that is the same for the same content, whatever format it was read from."""
    position = document.position(path)
    source = f"{document.file}:{position.line}" if position else document.file
    content = asdict(replace(reference, source="", version=""))
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return replace(reference, source=source, version=hashlib.sha256(canonical.encode()).hexdigest()[:12])

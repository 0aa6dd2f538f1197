"""Recognises the format of a reference document and loads its references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice

from pathgauge.collector.core.documents import (
    MAX_PROBLEMS_IN_TOTAL,
    ConfigError,
    Document,
    KeyPath,
    Problems,
    did_you_mean,
    show_value,
)
from pathgauge.collector.core.references.format import Format, LoadedReferences
from pathgauge.collector.core.references.versions import version
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn

_MAX_SHOWN_KEYS = 50


@dataclass(frozen=True, slots=True)
class Entry:
    """A reference and its position."""

    reference: Reference
    document: Document
    path: KeyPath


@dataclass(frozen=True, slots=True)
class FileContents:
    """The references of one or more documents, and what was ignored in them."""

    entries: list[Entry] = field(default_factory=list)
    ignored: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    titles: set[str] = field(default_factory=set)
    """Titles of the formats that were found."""

    def add(self, other: FileContents) -> None:
        """Add the contents of another document."""
        self.entries.extend(other.entries)
        self.ignored.update(other.ignored)
        self.notes.extend(other.notes)
        self.titles.update(other.titles)


def load(document: Document, formats: Mapping[str, Format]) -> FileContents:
    """Load a document in the first of `formats` that recognises it. Raises `ConfigError`."""
    found = _recognise(document, formats)
    loaded = _load(found, document)
    entries = [
        Entry(_with_source_and_version(reference, loaded.document, path), loaded.document, path)
        for path, reference in loaded.references
    ]
    return FileContents(entries, loaded.ignored, loaded.notes, {found.title})


def _load(found: Format, document: Document) -> LoadedReferences:
    with _reported(found, document):
        loaded: object = found.load(document)
        if not isinstance(loaded, LoadedReferences):
            raise TypeError(f"load returned {type(loaded).__name__}, expected LoadedReferences")
        for _, reference in loaded.references:
            _check(reference)
        return loaded


def _check(reference: object) -> None:
    """Refuse what is no reference, or would fail far from its format. Raises `TypeError`."""
    _expect("reference", reference, Reference)
    assert isinstance(reference, Reference)
    _expect("scenario_id", reference.scenario_id, str)
    _expect_all("turns", reference.turns, ReferenceTurn)
    if not reference.turns:
        raise TypeError("turns: found none, expected at least one")
    for turn in reference.turns:
        calls = () if turn.tool_calls is None else turn.tool_calls
        _expect_all("tool_calls", calls, ExpectedCall)
        _expect_all("forbidden", turn.forbidden, ExpectedCall)
        _expect_all("alternatives", turn.alternatives, tuple)
        for alternative in turn.alternatives:
            _expect_all("alternatives", alternative, ExpectedCall)


def _expect_all(name: str, found: object, expected: type) -> None:
    _expect(name, found, tuple)
    assert isinstance(found, tuple)
    for one in found:
        _expect(name, one, expected)


def _expect(name: str, found: object, expected: type) -> None:
    if not isinstance(found, expected):
        text = f"found {type(found).__name__}, expected {expected.__name__}"
        raise TypeError(f"{name}: {text}")


@contextmanager
def _reported(found: Format, document: Document) -> Iterator[None]:
    """Name the format that failed. A format is third-party code and may raise anything."""
    try:
        yield
    except ConfigError:
        raise
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        text = f"the format {found.title} failed: {type(error).__name__}: {error}"
        raise ConfigError([document.problem((), text)]) from error


def refuse_duplicates(entries: Iterable[Entry]) -> None:
    """Raise `ConfigError` if a scenario has more than one reference."""
    first: dict[str, Reference] = {}
    problems = Problems(MAX_PROBLEMS_IN_TOTAL)
    for entry in entries:
        scenario = entry.reference.scenario_id
        if scenario in first:
            text = (
                f"found the scenario {show_value(scenario)} again, expected it once (first at"
                f" {first[scenario].source})"
            )
            problems.add([entry.document.problem(entry.path, text)])
        first.setdefault(scenario, entry.reference)
    problems.report()


def _recognise(document: Document, formats: Mapping[str, Format]) -> Format:
    for candidate in formats.values():
        with _reported(candidate, document):
            recognised = candidate.recognises(document.data)
        if recognised:
            return candidate
    # The native format comes last, but operators should read about it first.
    *others, last = [
        f"{candidate.keys[0]} ({candidate.title})" for candidate in reversed([*formats.values()])
    ]
    expected = f"{', '.join(others)} or {last}" if others else last
    keys = [key for candidate in formats.values() for key in candidate.keys]
    text = f"found {_show_keys(document.data)}, expected the key {expected}"
    raise ConfigError([document.problem((), text + _spelling_hint(document.data, keys))])


def _show_keys(data: Json) -> str:
    if not isinstance(data, dict):
        return show_value(data)
    shown = ", ".join(islice(data, _MAX_SHOWN_KEYS))
    if len(data) > _MAX_SHOWN_KEYS:
        shown += f" and {len(data) - _MAX_SHOWN_KEYS:,} more"
    return f"the keys {shown}" if data else "no keys"


def _spelling_hint(data: Json, keys: list[str]) -> str:
    if not isinstance(data, dict):
        return ""
    shown = islice(data, _MAX_SHOWN_KEYS)
    return next((hint for key in shown if (hint := did_you_mean(key, keys))), "")


def _with_source_and_version(reference: Reference, document: Document, path: KeyPath) -> Reference:
    position = document.position(path)
    source = f"{document.file}:{position.line}" if position else document.file
    return replace(reference, source=source, version=version(reference))

"""Loads reference files given by paths and patterns.

`fingerprint` is a cheap way to find out whether any of the files changed since.
"""

from __future__ import annotations

import codecs
import glob
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from pathgauge.collector.config.plugins.formats import FORMATS, installed_formats
from pathgauge.collector.core.documents import (
    MAX_PROBLEMS_IN_TOTAL,
    ConfigError,
    Document,
    Problem,
    Problems,
    csv_source,
    json_source,
    jsonl_source,
    yaml_source,
)
from pathgauge.collector.core.evaluations.label_values import KEPT_CHARS, label_value
from pathgauge.collector.core.references import formats
from pathgauge.collector.core.references.format import Format
from pathgauge.collector.core.references.formats import Entry, FileContents
from pathgauge.scorers.types import Reference

Fingerprint: TypeAlias = tuple[tuple[str, int, int], ...]
"""Path, modification time (ns) and size (bytes) of each file."""

_SOURCES: Mapping[str, Callable[[str, str], Document]] = {
    ".json": json_source.read,
    ".jsonl": jsonl_source.read,
    ".ndjson": jsonl_source.read,
    ".csv": csv_source.read,
}
"""Parsers by file suffix, in any case: Windows programs write `.CSV`. Every other file is YAML."""

_GZIP = b"\x1f\x8b"

PatternProblem: TypeAlias = Callable[[int, str], Problem]
"""Makes a problem of a pattern, given its index and a text."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """The references of all files."""

    entries: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()
    fingerprint: Fingerprint = ()
    problems: tuple[Problem, ...] = ()
    """Of the files that were not loaded."""


def load(patterns: Iterable[str], folder: Path = Path()) -> Loaded:
    """Load all files that match the paths and patterns, which are relative to `folder`. Raises
    `ConfigError` with every problem.
    """
    loaded = load_valid(patterns, folder)
    if loaded.problems:
        raise ConfigError(loaded.problems)
    return loaded


def load_valid(
    patterns: Iterable[str], folder: Path = Path(), located: PatternProblem | None = None
) -> Loaded:
    """Load all valid files that match. `located` gives the places of patterns in a configuration;
    without it, their problems are located at the missing file.
    """
    patterns = tuple(patterns)
    seen = fingerprint(patterns, folder)  # before reading, so that a change meanwhile is found
    problems = Problems(MAX_PROBLEMS_IN_TOTAL)
    warnings: list[str] = []
    files: dict[Path, None] = {}
    entries: list[Entry] = []
    known = installed_formats()
    with suppress(ConfigError):  # of too many problems, which are in `found`
        for index, pattern in enumerate(patterns):
            with problems:
                found = _expand(pattern, folder, index, located)
                files.update(dict.fromkeys(found))
                if not found:
                    text = f"no file matches the references {pattern!r} in {folder}"
                    warnings.append(str(located(index, text)) if located else text)
        for file in files:
            with problems:
                contents = _read(file, known)
                entries += contents.entries
                warnings += [f"{file}: {note}" for note in contents.notes]
        with problems:
            formats.refuse_duplicates(entries)
    warnings += islice(_indistinct(entries), MAX_PROBLEMS_IN_TOTAL)
    return Loaded(tuple(entries), tuple(warnings), seen, tuple(problems.found))


def _indistinct(entries: Iterable[Entry]) -> Iterator[str]:
    """Scenarios that metrics show as one, because their ids differ too late."""
    first: dict[str, Reference] = {}
    for entry in entries:
        scenario = entry.reference.scenario_id
        known = first.setdefault(label_value(scenario), entry.reference)
        if known.scenario_id != scenario:
            text = (
                f"found a scenario id with the same first {KEPT_CHARS} characters as that at"
                f" {known.source}; metrics and results do not tell them apart"
            )
            yield str(entry.document.problem(entry.path, text))


def below(folder: str | Path, pattern: str) -> str:
    """The pattern for any working directory. Brackets in the name of the folder are not part of
    the pattern.
    """
    if glob.has_magic(pattern):
        folder = glob.escape(str(folder))
    return os.path.join(folder, pattern)


def fingerprint(patterns: Iterable[str], folder: Path = Path()) -> Fingerprint:
    """A value that changes when a matching file appears, disappears or changes. Opens no file."""
    files = {file for pattern in patterns for file in _matches(pattern, folder)}
    return tuple(sorted(_stamp(file) for file in files))


def read(file: Path, name: str | None = None) -> FileContents:
    """Load one file in the format called `name`, or in any format.

    Raises `ConfigError`, and `PluginError` for an unknown name.
    """
    return _read(file, _formats(name))


def _formats(name: str | None) -> Mapping[str, Format]:
    return installed_formats() if name is None else {name: FORMATS.get(name)}


def _read(file: Path, known: Mapping[str, Format]) -> FileContents:
    filled = [document for document in read_documents(file) if document.data is not None]
    if not filled:
        raise _error(file, "found an empty file, expected references")
    problems = Problems()
    found = FileContents()
    for document in filled:
        with problems:
            found.add(formats.load(document, known))
    problems.report()
    return found


def read_all(files: Iterable[Path], name: str | None = None) -> dict[str, FileContents]:
    """Load each file. Raises `ConfigError` with every problem, including duplicate scenarios."""
    problems = Problems(MAX_PROBLEMS_IN_TOTAL)
    known = _formats(name)
    found: dict[str, FileContents] = {}
    for file in files:
        with problems:
            found[str(file)] = _read(file, known)
    with problems:
        entries = (entry for contents in found.values() for entry in contents.entries)
        formats.refuse_duplicates(entries)
    problems.report()
    return found


def read_documents(file: Path, environment: Mapping[str, str] | None = None) -> list[Document]:
    """Parse a file: all documents of a YAML file, or the single one of JSON, JSON lines or CSV.
    Raises `ConfigError`.

    Variables from `environment` are replaced in YAML only; see `yaml_source`.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _error(file, _not_text(error)) from None
    except (OSError, ValueError) as error:  # a path with a null byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise _error(file, f"cannot be read: {reason}") from None
    source = _SOURCES.get(file.suffix.lower())
    if source is not None:
        return [source(text, str(file))]
    return yaml_source.read(text, str(file), environment)


def _not_text(error: UnicodeDecodeError) -> str:
    beginning = error.object[:2]
    if beginning == _GZIP:
        return "found gzip data, expected text: only trace files and tables may be compressed"
    if beginning in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        return "found UTF-16, expected UTF-8"
    return f"found bytes that are not UTF-8 at offset {error.start}, expected text"


def _expand(pattern: str, folder: Path, index: int, located: PatternProblem | None) -> list[Path]:
    """The files that match. Raises `ConfigError` if a path matches nothing; a pattern may."""
    found = _matches(pattern, folder)
    if found or glob.has_magic(pattern):
        return found
    path = folder / pattern
    kind, expected = "no such file", ""
    if os.path.isdir(path):
        kind, expected = "a folder", ", expected a file or a pattern such as folder/*.yaml"
    if located is None:
        raise _error(path, f"found {kind}{expected}")
    raise ConfigError([located(index, f"found {kind}: {path}{expected}")])


def _matches(pattern: str, folder: Path) -> list[Path]:
    """The files that match. `os.path` is used because its tests return false for invalid names,
    where `pathlib` raises.
    """
    if os.path.isfile(folder / pattern):
        return [folder / pattern]
    found = sorted(glob.glob(pattern, root_dir=folder, recursive=True))
    return [folder / name for name in found if os.path.isfile(folder / name)]


def _error(path: Path, text: str) -> ConfigError:
    return ConfigError([Problem(str(path), None, (), text)])


def _stamp(file: Path) -> tuple[str, int, int]:
    try:
        status = os.stat(file)
    except OSError:
        return str(file), 0, 0
    return str(file), status.st_mtime_ns, status.st_size

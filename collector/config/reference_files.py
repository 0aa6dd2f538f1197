"""Reads reference files: paths and patterns come in, the references of all matching files go out,
or every problem in them.

A cheap `fingerprint` tells whether the files have changed since.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    Problem,
    Problems,
    csv_source,
    json_source,
    jsonl_source,
    yaml_source,
)
from pathgauge.collector.core.references import formats
from pathgauge.collector.core.references.formats import Entry, Read

Fingerprint: TypeAlias = tuple[tuple[str, int, int], ...]
"""Path, modification time (ns) and size (bytes) of each file."""

_SOURCES: Mapping[str, Callable[[str, str], Document]] = {
    ".json": json_source.read,
    ".jsonl": jsonl_source.read,
    ".ndjson": jsonl_source.read,
    ".csv": csv_source.read,
}
"""Readers by suffix; everything else is YAML."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the reference files hold."""

    entries: tuple[Entry, ...] = ()
    warnings: tuple[str, ...] = ()
    fingerprint: Fingerprint = ()


def load(patterns: Iterable[str], folder: Path = Path()) -> Loaded:
    """Read all files that match the paths and patterns, relative to `folder`. Raises `ConfigError`
    with every problem.
    """
    patterns = tuple(patterns)
    seen = fingerprint(patterns, folder)  # before reading: a change meanwhile must be noticed later
    problems = Problems()
    warnings: list[str] = []
    files: dict[Path, None] = {}
    for pattern in patterns:
        with problems:
            found = _expand(pattern, folder)
            files.update(dict.fromkeys(found))
            if not found:
                warnings.append(f"no file matches the references {pattern!r} in {folder}")
    entries: list[Entry] = []
    for file in files:
        with problems:
            found_in_file = read(file)
            entries += found_in_file.entries
            warnings += [f"{file}: {note}" for note in found_in_file.notes]
    with problems:
        formats.refuse_duplicates(entries)
    problems.report()
    return Loaded(tuple(entries), tuple(warnings), seen)


def fingerprint(patterns: Iterable[str], folder: Path = Path()) -> Fingerprint:
    """Changes whenever a matching file appears, disappears or changes; opens no file."""
    files = {file for pattern in patterns for file in _matches(pattern, folder)}
    return tuple(sorted(_stamp(file) for file in files))


def read(file: Path, name: str | None = None) -> Read:
    """The references of one file, in the format of that name or in any. Raises `ConfigError`."""
    filled = [document for document in read_documents(file) if document.data is not None]
    if not filled:
        raise ConfigError(
            [Problem(str(file), None, (), "found an empty file, expected references")]
        )
    problems = Problems()
    found = Read()
    for document in filled:
        with problems:
            found.add(formats.load(document, name))
    problems.report()
    return found


def read_all(files: Iterable[Path], name: str | None = None) -> dict[str, Read]:
    """The references of each file, as `read` gives them. Raises `ConfigError` with every problem, a
    scenario that is there twice too.
    """
    problems = Problems()
    found: dict[str, Read] = {}
    for file in files:
        with problems:
            found[str(file)] = read(file, name)
    with problems:
        formats.refuse_duplicates(entry for one in found.values() for entry in one.entries)
    problems.report()
    return found


def read_documents(file: Path, environment: Mapping[str, str] | None = None) -> list[Document]:
    """The documents of a YAML file, or the one of a file in JSON, JSON lines or CSV; see
    `yaml_source` for the environment.

    Raises `ConfigError`.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(
            [
                Problem(
                    str(file),
                    None,
                    (),
                    f"found bytes that are not UTF-8 at offset {error.start}, expected text",
                )
            ]
        ) from None
    except (OSError, ValueError) as error:  # a path with a null byte is a ValueError
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError([Problem(str(file), None, (), f"cannot be read: {reason}")]) from None
    if file.suffix in _SOURCES:
        return [_SOURCES[file.suffix](text, str(file))]
    return yaml_source.read(text, str(file), environment)


def _expand(pattern: str, folder: Path) -> list[Path]:
    """The files that match; nothing matching is a mistake for a path, but may be meant for a
    pattern.
    """
    found = _matches(pattern, folder)
    if not found and not glob.has_magic(pattern):
        text = (
            "found a folder, expected a file or a pattern such as folder/*.yaml"
            if os.path.isdir(folder / pattern)
            else "found no such file"
        )
        raise ConfigError([Problem(str(folder / pattern), None, (), text)])
    return found


def _matches(pattern: str, folder: Path) -> list[Path]:
    """The files that match; unlike those of `pathlib`, the tests of `os.path` are false for
    impossible names.
    """
    if os.path.isfile(folder / pattern):
        return [folder / pattern]
    found = sorted(glob.glob(pattern, root_dir=folder, recursive=True))
    return [folder / name for name in found if os.path.isfile(folder / name)]


def _stamp(file: Path) -> tuple[str, int, int]:
    try:
        status = os.stat(file)
    except OSError:
        return str(file), 0, 0
    return str(file), status.st_mtime_ns, status.st_size

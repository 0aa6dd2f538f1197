"""Datasets in which each row is one scenario: iteration over the rows, and their scenario ids.

A row without an id is named after a hash of its prompt, so that its name survives when the row
moves or its expected values change. A document that is a single row without id is named after its
file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pathgauge.collector.core.documents import ConfigError, Document, KeyPath, show_value
from pathgauge.scorers.types import Json

IDS = ("id", "scenario", "scenario_id", "eval_id", "case_id", "example_id")
"""Keys that may hold the id of a row; the first one present is used."""


def rows(document: Document) -> Iterator[tuple[KeyPath, Json]]:
    """The items of a list with their paths, or the whole document as the only row."""
    if isinstance(document.data, list):
        yield from (((index,), row) for index, row in enumerate(document.data))
    else:
        yield (), document.data


def mappings(data: Json) -> list[Mapping[str, Json]]:
    """All rows that are mappings; formats recognise a dataset by their keys."""
    items = data if isinstance(data, list) else [data]
    return [row for row in items if isinstance(row, dict)]


def id_key(row: Mapping[str, Json]) -> str | None:
    """The key that holds the id of the row."""
    return next((key for key in IDS if row.get(key) not in (None, "")), None)


def text_at(document: Document, path: KeyPath, value: Json) -> str | None:
    """The text at `path`, `None` if it is null or empty. Raises `ConfigError` for anything else."""
    if value is None or isinstance(value, str):
        return value or None
    raise ConfigError([document.problem(path, f"found {show_value(value)}, expected text")])


@dataclass(slots=True)
class RowNames:
    """Assigns scenario ids to the rows of one document."""

    document: Document
    hashed: list[str] = field(default_factory=list)
    """The names that are hashes of a prompt."""

    def name(self, path: KeyPath, row: Mapping[str, Json], prompt: Json) -> str:
        """The scenario id of the row at `path`. Raises `ConfigError` if its id is neither text nor
        a whole number, or if two rows without id have the same prompt.
        """
        key = id_key(row)
        if key is not None:
            return self._id((*path, key), row[key])
        if not path:
            return self._file_name() or "scenario"
        canonical = json.dumps(prompt, sort_keys=True).encode()
        name = "row-" + hashlib.sha256(canonical).hexdigest()[:12]
        if name in self.hashed:
            problem = (
                "found a row without an id and with the prompt of another one, expected an id"
                f" ({', '.join(IDS)})"
            )
            raise ConfigError([self.document.problem(path, problem)])
        self.hashed.append(name)
        return name

    def notes(self) -> list[str]:
        """A remark for the operator about the rows without id, if there are any."""
        if not self.hashed:
            return []
        named = f"named after a hash of their prompt, such as {self.hashed[0]}"
        return [f"rows without an id ({', '.join(IDS)}): {len(self.hashed)}, {named}"]

    def _file_name(self) -> str:
        return re.split(r"[\\/]", self.document.file)[-1].split(".")[0]

    def _id(self, path: KeyPath, value: Json) -> str:
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return str(value)
        text = f"found {show_value(value)}, expected text or a whole number"
        raise ConfigError([self.document.problem(path, text)])

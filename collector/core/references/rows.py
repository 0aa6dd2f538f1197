"""Datasets, in which one row is one scenario: the data of a document comes in, its rows and their
names go out.

A row is named by its id, else after a hash of its prompt: that stays the same when the row moves,
or when what is expected changes. A document that is one row without id is named after its file.
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
"""The keys that may hold the id of a row; the first that is there counts."""


def rows(document: Document) -> Iterator[tuple[KeyPath, Json]]:
    """The rows of a list, or the one row that the document is, each with its path."""
    if isinstance(document.data, list):
        yield from (((index,), row) for index, row in enumerate(document.data))
    else:
        yield (), document.data


def mappings(data: Json) -> list[Mapping[str, Json]]:
    """All rows that have keys, to recognise a dataset by them."""
    return [row for row in (data if isinstance(data, list) else [data]) if isinstance(row, dict)]


def id_key(row: Mapping[str, Json]) -> str | None:
    """The key that holds the id of the row."""
    return next((key for key in IDS if row.get(key) not in (None, "")), None)


def text(document: Document, path: KeyPath, value: Json) -> str | None:
    """The text at `path`; nothing and empty text are `None`. Raises `ConfigError`."""
    if value is None or isinstance(value, str):
        return value or None
    raise ConfigError([document.problem(path, f"found {show_value(value)}, expected text")])


@dataclass(slots=True)
class Names:
    """Gives the rows of one document their names."""

    document: Document
    hashed: list[str] = field(default_factory=list)
    """The names that are hashes."""

    def name(self, path: KeyPath, row: Mapping[str, Json], prompt: Json) -> str:
        """The name of the row at `path`; an id may be text or a whole number. Raises `ConfigError`."""
        key = id_key(row)
        if key is not None:
            return self._id((*path, key), row[key])
        if not path:
            return re.split(r"[\\/]", self.document.file)[-1].split(".")[0] or "scenario"
        hashed = (
            "row-" + hashlib.sha256(json.dumps(prompt, sort_keys=True).encode()).hexdigest()[:12]
        )
        if hashed in self.hashed:
            problem = (
                "found a row without an id and with the prompt of another one, expected an id"
                f" ({', '.join(IDS)})"
            )
            raise ConfigError([self.document.problem(path, problem)])
        self.hashed.append(hashed)
        return hashed

    def notes(self) -> list[str]:
        """What the operator should know of the names, a line each."""
        if not self.hashed:
            return []
        named = f"named after a hash of their prompt, such as {self.hashed[0]}"
        return [f"rows without an id ({', '.join(IDS)}): {len(self.hashed)}, {named}"]

    def _id(self, path: KeyPath, value: Json) -> str:
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return str(value)
        raise ConfigError(
            [
                self.document.problem(
                    path, f"found {show_value(value)}, expected text or a whole number"
                )
            ]
        )

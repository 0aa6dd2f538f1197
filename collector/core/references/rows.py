"""Datasets in which each row is one scenario: iteration over the rows, and their scenario ids.

A row without an id is named after a hash of its prompt, so that its name survives when the row
moves or its expected values change. A document that is a single row without id is named after its
file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from pathgauge.collector.core.documents import ConfigError, Document, KeyPath, show_value
from pathgauge.scorers.types import Json, Reference

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
    hashed: dict[str, None] = field(default_factory=dict)
    """The names that are hashes of a prompt, in the order of the rows."""

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
        self.hashed[name] = None
        return name

    def notes(self, references: Iterable[tuple[KeyPath, Reference]]) -> list[str]:
        """Remarks for the operator about the rows without id, and about those among them that no
        invocation can match.
        """
        if not self.hashed:
            return []
        named = f"named after a hash of their prompt, such as {next(iter(self.hashed))}"
        notes = [f"rows without an id ({', '.join(IDS)}): {len(self.hashed)}, {named}"]
        own = (reference for _, reference in references if reference.scenario_id in self.hashed)
        if lost := sum(not _has_one_prompt(reference) for reference in own):
            notes.append(
                f"rows that no invocation can match: {lost}, as they have neither an id nor one"
                " prompt; give them ids"
            )
        return notes

    def _file_name(self) -> str:
        return re.split(r"[\\/]", self.document.file)[-1].split(".")[0]

    def _id(self, path: KeyPath, value: Json) -> str:
        if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
            return str(value)
        text = f"found {show_value(value)}, expected text or a whole number"
        raise ConfigError([self.document.problem(path, text)])


def _has_one_prompt(reference: Reference) -> bool:
    """Whether `scenario.match_user_input` can find the reference."""
    return len(reference.turns) == 1 and bool(reference.turns[0].user_input)

"""Datasets in which each row is one scenario: iteration over the rows, and their scenario ids.

A row without an id is named after a hash of its prompt, so that its name survives when the row
moves or its expected values change. Without a prompt, too, it is named after its file and position:
only the row of another table in the same position can match it. A document that is a single row
without id is named after its file.
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

_POSITION = re.compile(r"-row-([1-9][0-9]{0,8})\Z")


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


def row_id(document: Document, path: KeyPath, row: Mapping[str, Json]) -> str | None:
    """The id of the row at `path`, `None` if it has none. Raises `ConfigError` if the id is neither
    text nor a whole number.
    """
    key = id_key(row)
    if key is None:
        return None
    value = row[key]
    if isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        return str(value)
    text = f"found {show_value(value)}, expected text or a whole number"
    raise ConfigError([document.problem((*path, key), text)])


def position_name(file: str, index: int) -> str:
    """The scenario id of a row that has neither an id nor a prompt."""
    return f"{_stem(file)}-row-{index + 1}"


def position_of(reference: Reference) -> int | None:
    """The index of the row that a reference was made of, if it was named after its position."""
    found = _POSITION.search(reference.scenario_id)
    if not found or len(reference.turns) != 1:
        return None
    return None if reference.turns[0].user_input else int(found[1]) - 1


def _stem(file: str) -> str:
    return re.split(r"[\\/]", file)[-1].split(".")[0]


@dataclass(slots=True)
class RowNames:
    """Assigns scenario ids to the rows of one document."""

    document: Document
    hashed: dict[str, None] = field(default_factory=dict)
    """The names that are hashes of a prompt, in the order of the rows."""
    positions: list[str] = field(default_factory=list)
    """The names after positions."""

    def name(self, path: KeyPath, row: Mapping[str, Json], prompt: Json) -> str:
        """The scenario id of the row at `path`. Raises `ConfigError` if its id is neither text nor
        a whole number, or if two rows without id have the same prompt.
        """
        name = row_id(self.document, path, row)
        if name is not None:
            return name
        if not path:
            return _stem(self.document.file) or "scenario"
        if prompt is None and isinstance(path[0], int):
            self.positions.append(position_name(self.document.file, path[0]))
            return self.positions[-1]
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
        return [*self._notes_on_hashed(references), *self._notes_on_positions()]

    def _notes_on_hashed(self, references: Iterable[tuple[KeyPath, Reference]]) -> Iterator[str]:
        if not self.hashed:
            return
        named = f"named after a hash of their prompt, such as {next(iter(self.hashed))}"
        yield f"rows without an id ({', '.join(IDS)}): {len(self.hashed)}, {named}"
        own = (reference for _, reference in references if reference.scenario_id in self.hashed)
        if lost := sum(not _has_one_prompt(reference) for reference in own):
            yield (
                f"rows that no invocation can match: {lost}, as they have neither an id nor one"
                " prompt; give them ids"
            )

    def _notes_on_positions(self) -> Iterator[str]:
        if self.positions:
            yield (
                f"rows with neither an id ({', '.join(IDS)}) nor a prompt: {len(self.positions)},"
                f" named after their position, such as {self.positions[0]}; no trace matches them,"
                " only the same row of a table of predictions: give them ids"
            )


def _has_one_prompt(reference: Reference) -> bool:
    """Whether `scenario.match_user_input` can find the reference."""
    return len(reference.turns) == 1 and bool(reference.turns[0].user_input)

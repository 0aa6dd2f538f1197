"""Parses CSV into a `Document`: a list with one mapping per row, from column name to cell.

All cells are text. Empty cells are left out, because CSV has no other notation for a missing value.
The position of a cell is the start of its row.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    KeyPath,
    Position,
    Problem,
    Problems,
)
from pathgauge.scorers.matching.wording import counted

OTHER_SEPARATORS = ";\t|"
"""Excel writes semicolons where the comma is the decimal point."""


def read(text: str, file: str) -> Document:
    """Parse CSV whose first row contains the column names. Raises `ConfigError`."""
    records = _records(text, file)
    line, names = next(records, (1, []))
    _check_names(names, file, line)
    rows: list[dict[str, str]] = []
    places = _RowPlaces(line, [])
    problems = Problems()
    for line, cells in records:
        with problems:
            if len(cells) != len(names):
                found = counted(len(cells), "cell")
                text = f"found {found}, expected {len(names)} as in the first row"
                raise _error(file, line, text)
            places.lines.append(line)
            rows.append({name: cell for name, cell in zip(names, cells, strict=True) if cell})
    problems.report()
    return Document(file, rows, places)


@dataclass(frozen=True, slots=True)
class _RowPlaces:
    """The places of rows; everything inside a row is where the row begins."""

    header: int
    lines: list[int]

    def position(self, path: KeyPath, *, of_key: bool = False) -> Position | None:
        """See `Places.position`."""
        row = path[0] if path else None
        if isinstance(row, int) and row < len(self.lines):
            return Position(self.lines[row], 1)
        return Position(self.header, 1)


def _records(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Each non-blank row with the number of its first line."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    begins = 1
    try:
        for cells in reader:
            if cells:
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as error:
        raise _error(file, begins, f"not CSV: {error}") from None


def _check_names(names: list[str], file: str, line: int) -> None:
    if len(names) == 1 and (other := next(filter(names[0].__contains__, OTHER_SEPARATORS), "")):
        raise _error(file, line, f"found columns separated by {other!r}, expected commas")
    for name, count in Counter(names).items():
        if not name:
            text = "found a column without a name, expected names in the first row"
            raise _error(file, line, text)
        if count > 1:
            raise _error(file, line, f"found the column {name!r} again, expected it once")


def _error(file: str, line: int, text: str) -> ConfigError:
    return ConfigError([Problem(file, Position(line, 1), (), text)])

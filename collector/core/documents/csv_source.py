"""Reads CSV with positions: a text comes in, one `Document` goes out, a list of mappings from the
names in the first row to the cells.

All cells are text. An empty cell is left out, as CSV has no other word for nothing. A cell stands
where its row begins.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    KeyPath,
    Position,
    Problem,
    Problems,
)


def read(text: str, file: str) -> Document:
    """Read comma-separated values with a row of names. Raises `ConfigError`."""
    records = _records(text, file)
    line, names = next(records, (1, []))
    _check_names(names, file, line)
    rows: list[dict[str, str]] = []
    places: dict[KeyPath, Position] = {(): Position(line, 1)}
    problems = Problems()
    for line, cells in records:
        with problems:
            if len(cells) != len(names):
                raise _problem(
                    file,
                    line,
                    f"found {len(cells)} cells, expected {len(names)} as in the first row",
                )
            places[len(rows),] = Position(line, 1)
            rows.append({name: cell for name, cell in zip(names, cells, strict=True) if cell})
    problems.report()
    return Document(file, rows, places)


def _records(text: str, file: str) -> Iterator[tuple[int, list[str]]]:
    """Each row that is not blank, with the line in which it begins."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    begins = 1
    try:
        for cells in reader:
            if cells:
                yield begins, cells
            begins = reader.line_num + 1
    except csv.Error as error:
        raise _problem(file, begins, f"not CSV: {error}") from None


def _check_names(names: list[str], file: str, line: int) -> None:
    for name in names:
        if not name:
            raise _problem(
                file, line, "found a column without a name, expected names in the first row"
            )
        if names.count(name) > 1:
            raise _problem(file, line, f"found the column {name!r} again, expected it once")


def _problem(file: str, line: int, text: str) -> ConfigError:
    return ConfigError([Problem(file, Position(line, 1), (), text)])

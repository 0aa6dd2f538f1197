"""Reads JSON lines with positions: a text comes in, one `Document` goes out, the list of the values
of all lines that are not blank.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    KeyPath,
    Position,
    Problem,
    Problems,
    json_source,
)
from pathgauge.scorers.types import Json


def read(text: str, file: str) -> Document:
    """Read one JSON value a line. Raises `ConfigError` with a problem for every line that is none."""
    rows: list[Json] = []
    values: dict[KeyPath, Position] = {(): Position(1, 1)}
    keys: dict[KeyPath, Position] = {}
    problems = Problems()
    # Only a line feed ends a line: other line breaks may stand in JSON text as they are.
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip(" \t\r"):
            continue
        with problems:
            row = _line(line, file, number)
            values.update(_moved(row.values, len(rows), number))
            keys.update(_moved(row.keys, len(rows), number))
            rows.append(row.data)
    problems.report()
    return Document(file, rows, values, keys)


def _line(line: str, file: str, number: int) -> Document:
    try:
        return json_source.read(line, file)
    except ConfigError as error:
        raise ConfigError(_of_line(problem, number) for problem in error.problems) from None


def _of_line(problem: Problem, number: int) -> Problem:
    """The problem of a text that is one line of a file."""
    text = problem.text.replace("the end of the file", "the end of the line").replace(
        "(first in line 1)", f"(first in line {number})"
    )
    position = Position(number, problem.position.column) if problem.position else None
    return replace(problem, position=position, text=text)


def _moved(places: Mapping[KeyPath, Position], row: int, line: int) -> dict[KeyPath, Position]:
    return {(row, *path): Position(line, position.column) for path, position in places.items()}

"""Parses JSON lines into a `Document`: a list with the value of each non-blank line."""

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
    """Parse one JSON value per line. Raises `ConfigError` with a problem for each invalid line."""
    rows: list[Json] = []
    values: dict[KeyPath, Position] = {(): Position(1, 1)}
    keys: dict[KeyPath, Position] = {}
    problems = Problems()
    # Only a line feed ends a line: JSON text may contain other line breaks unescaped.
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
    """A problem of a single line, moved to its position in the file."""
    text = problem.text.replace("the end of the file", "the end of the line")
    text = text.replace("(first in line 1)", f"(first in line {number})")
    position = Position(number, problem.position.column) if problem.position else None
    return replace(problem, position=position, text=text)


def _moved(positions: Mapping[KeyPath, Position], row: int, line: int) -> dict[KeyPath, Position]:
    return {(row, *path): Position(line, position.column) for path, position in positions.items()}

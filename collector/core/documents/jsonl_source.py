"""Parses JSON lines into a `Document`: a list with the value of each non-blank line."""

from __future__ import annotations

from pathgauge.collector.core.documents import Document, Problems
from pathgauge.collector.core.documents.json_source import JsonReader
from pathgauge.collector.core.documents.places import Lines, Recorder
from pathgauge.scorers.types import Json


def read(text: str, file: str) -> Document:
    """Parse one JSON value per line. Raises `ConfigError` with a problem for each invalid line."""
    rows: list[Json] = []
    recorder, lines = Recorder(), Lines(text)
    number, offset = recorder.begin(0), 0
    problems = Problems()
    # Only a line feed ends a line: JSON text may contain other line breaks unescaped.
    for line in text.split("\n"):
        if line.strip(" \t\r"):
            with problems:
                reader = JsonReader(line, file, recorder, lines, offset)
                rows.append(reader.document("the end of the line"))
        offset += len(line) + 1
    problems.report()
    recorder.end(number)
    return Document(file, rows, recorder.places(rows, lines))

"""Recognises a table of predictions by its columns, and parses it.

A trace file may contain the name of the column in some text, so only the keys of rows decide.
"""

from __future__ import annotations

import csv

import orjson

from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
    Position,
    Problem,
    csv_source,
    json_source,
    jsonl_source,
)
from pathgauge.collector.core.otlp import parsed_json
from pathgauge.collector.core.references.rows import mappings
from pathgauge.collector.core.references.vertex import by_row
from pathgauge.scorers.types import Json

COLUMN = "predicted_trajectory"
"""The column that makes a table one of predictions."""

_NAME = COLUMN.encode()
_OTHER_SEPARATORS = ";\t|"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_table(data: bytes, name: str) -> Document | None:
    """The rows of a table of predictions, `None` if the content of the file is something else.
    `name` is that of the file. Raises `ConfigError` for a table that cannot be parsed.
    """
    if _NAME not in data:
        return None
    data = data.removeprefix(_BYTE_ORDER_MARK)
    if data.lstrip()[:1] in (b"{", b"["):
        return _json_table(data, name)
    header = data.partition(b"\n")[0]
    if _NAME not in header or not _is_text(header):
        return None
    if not _has_header(header.decode(), name):
        return None
    return csv_source.read(_text(data, name), name)


def _has_header(header: str, name: str) -> bool:
    """Whether a column has the name. Raises `ConfigError` if only another separator shows it: Excel
    writes semicolons where the comma is the decimal point.
    """
    if COLUMN in _cells(header, ","):
        return True
    for other in _OTHER_SEPARATORS:
        if COLUMN in _cells(header, other):
            text = f"found columns separated by {other!r}, expected commas"
            raise ConfigError([Problem(name, Position(1, 1), (), text)])
    return False


def _cells(header: str, separator: str) -> list[str]:
    return next(csv.reader([header], delimiter=separator), [])


def _json_table(data: bytes, name: str) -> Document | None:
    """One JSON document, or one per line."""
    try:
        is_table = _has_column(parsed_json(data))
    except orjson.JSONDecodeError:
        if not _first_line_has_column(data):
            return None
        return jsonl_source.read(_text(data, name), name)
    return by_row(json_source.read(_text(data, name), name)) if is_table else None


def _first_line_has_column(data: bytes) -> bool:
    try:
        return _has_column(parsed_json(data.lstrip().partition(b"\n")[0]))
    except orjson.JSONDecodeError:
        return False


def _has_column(data: Json) -> bool:
    return any(COLUMN in row for row in mappings(data))


def _is_text(data: bytes) -> bool:
    try:
        return data.decode().replace("\t", " ").rstrip("\r").isprintable()
    except UnicodeDecodeError:
        return False


def _text(data: bytes, name: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        text = f"found bytes that are not UTF-8 at offset {error.start}, expected text"
        raise ConfigError([Problem(name, None, (), text)]) from None

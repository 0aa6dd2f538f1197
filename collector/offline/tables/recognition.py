"""Recognises a table of predictions by its columns, and parses it.

A trace file may contain the name of the column in some text, so only the keys of rows decide.
"""

from __future__ import annotations

import csv

import orjson

from pathgauge.collector.core.documents import (
    ConfigError,
    Document,
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
    if not _has_header(header.decode()):
        return None
    return csv_source.read(_text(data, name), name)


def _has_header(header: str) -> bool:
    """Whether a column has the name, also with a separator that `csv_source` refuses."""
    separators = (",", *csv_source.OTHER_SEPARATORS)
    return any(COLUMN in next(csv.reader([header], delimiter=one), []) for one in separators)


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

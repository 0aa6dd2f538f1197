"""The positions of everything in a document, for comparison as a whole."""

from __future__ import annotations

from collections.abc import Iterator

from pathgauge.collector.core.documents import Document, KeyPath, Position
from pathgauge.scorers.types import Json


def paths(data: Json, path: KeyPath = ()) -> Iterator[KeyPath]:
    """The paths of all values."""
    yield path
    items = data.items() if isinstance(data, dict) else ()
    for step, item in enumerate(data) if isinstance(data, list) else items:
        yield from paths(item, (*path, step))


def values(document: Document) -> dict[KeyPath, Position]:
    """Where each value begins."""
    return {path: _position(document, path) for path in paths(document.data)}


def keys(document: Document) -> dict[KeyPath, Position]:
    """Where the key of each value in a mapping begins."""
    return {
        path: _position(document, path, of_key=True)
        for path in paths(document.data)
        if path and isinstance(path[-1], str)
    }


def _position(document: Document, path: KeyPath, *, of_key: bool = False) -> Position:
    position = document.position(path, of_key=of_key)
    assert position is not None
    return position


def at(text: str, offset: int) -> Position:
    """The position of an offset, counted character by character."""
    line, column = 1, 1
    for character in text[:offset]:
        line, column = (line + 1, 1) if character == "\n" else (line, column + 1)
    return Position(line, column)

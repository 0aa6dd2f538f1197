"""Shortens a JSON document that is too long to be kept: first its texts, then its lists."""

from __future__ import annotations

import json

from pathgauge.scorers.types import Json

MAX_BYTES = 32_768
"""The size of the JSON of one evidence, beyond which it is shortened."""
_MAX_CHARS = (2_000, 500, 100)
_MAX_ITEMS = (200, 50, 20)
_MAX_DEPTH = 12
_TOO_DEEP = "…"


def shortened(document: dict[str, Json]) -> dict[str, Json]:
    """The document in at most about `MAX_BYTES`, with the longest texts and lists that fit."""
    found = document
    for max_chars, max_items in zip(_MAX_CHARS, _MAX_ITEMS, strict=True):
        found = _cut(document, max_chars, max_items, _MAX_DEPTH)
        if len(json.dumps(found)) <= MAX_BYTES:
            break
    return found


def _cut(value: Json, max_chars: int, max_items: int, depth: int) -> Json:
    if isinstance(value, str):
        return value if len(value) <= max_chars else f"{value[: max_chars - 1]}…"
    if not isinstance(value, dict | list):
        return value
    if not depth:
        return _TOO_DEEP
    if isinstance(value, list):
        return [_cut(item, max_chars, max_items, depth - 1) for item in value[:max_items]]
    pairs = list(value.items())[:max_items]
    return {key[:max_chars]: _cut(item, max_chars, max_items, depth - 1) for key, item in pairs}

"""Answers that were given before: keys and texts come in and out, the least recently used go first."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from collections.abc import Sequence

from pathgauge.scorers.types import Json

MAX_BYTES = 64 * 2**20
_PER_ENTRY_BYTES = 200
"""What an entry takes besides its text."""


def key(parts: Sequence[Json]) -> str:
    """The same for equal parts; members of objects may be in any order."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


class Cache:
    """Bounded in entries and in bytes."""

    def __init__(self, max_entries: int, max_bytes: int = MAX_BYTES) -> None:
        self._max_entries = max_entries
        self._max_bytes = max_bytes
        self._texts: OrderedDict[str, str] = OrderedDict()
        self._bytes = 0

    def get(self, key: str) -> str | None:
        """The text under a key; `None`: there is none."""
        text = self._texts.get(key)
        if text is not None:
            self._texts.move_to_end(key)
        return text

    def put(self, key: str, text: str) -> None:
        """Keep a text, in the place of others where there is no room."""
        self._bytes -= _size(self._texts.pop(key, None))
        self._texts[key] = text
        self._bytes += _size(text)
        while self._texts and (
            len(self._texts) > self._max_entries or self._bytes > self._max_bytes
        ):
            _, dropped = self._texts.popitem(last=False)
            self._bytes -= _size(dropped)


def _size(text: str | None) -> int:
    return 0 if text is None else len(text.encode(errors="replace")) + _PER_ENTRY_BYTES

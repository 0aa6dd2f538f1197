"""A cache of model answers, bounded in entries and in bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import suppress

from cachetools import LRUCache

from pathgauge.scorers.types import Json

MAX_BYTES = 64 * 2**20
_ENTRY_OVERHEAD_BYTES = 200


def key(parts: Sequence[Json]) -> str:
    """A hash of the parts. The order of the members of JSON objects does not matter."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


class Cache:
    """Evicts the least recently used entries. A text larger than `max_bytes` is not stored."""

    def __init__(self, max_entries: int, max_bytes: int = MAX_BYTES) -> None:
        self._max_entries = max_entries
        self._texts: LRUCache[str, str] = LRUCache(max_bytes, getsizeof=_size)

    def get(self, key: str) -> str | None:
        """The text stored under a key, or `None`."""
        return self._texts.get(key)

    def put(self, key: str, text: str) -> None:
        """Store a text, and evict others if necessary."""
        with suppress(ValueError):  # cachetools: "value too large"
            self._texts[key] = text
        while len(self._texts) > self._max_entries:
            self._texts.popitem()


def _size(text: str) -> int:
    return len(text.encode(errors="replace")) + _ENTRY_OVERHEAD_BYTES

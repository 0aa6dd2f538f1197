"""Stores the present values of counts; `restore.py` reads them."""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import Connection, upsert


def write(connection: Connection, counts: Iterable[Row]) -> None:
    """Write the present values of counts, in the caller's transaction."""
    kept, dropped = [], []
    for key, state in counts:
        name = orjson.dumps(list(key)).decode()
        if state is None:
            dropped.append((name,))
        else:
            text = orjson.dumps(list(state)).decode()
            kept.append((name, text, checksum(name, text)))
    upsert(connection, "counts", "name, state, crc", "name", kept)
    connection.executemany("DELETE FROM counts WHERE name = ?", dropped)

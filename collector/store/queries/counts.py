"""Reads stored counts and states of one kind, without those of all others."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.store.sql import Connection


def counts_named(connection: Connection, name: str) -> Iterator[Row]:
    """The counts and states whose keys begin with `name`. A damaged row is left out."""
    begins = orjson.dumps([name]).decode().removesuffix("]") + ","
    # Without numbers as parameters: PostgreSQL has no `substr` with a length of 64 bits.
    rows = connection.execute("SELECT name, state FROM counts WHERE instr(name, ?) = 1", (begins,))
    for key, state in rows:
        try:
            yield Row(orjson.loads(key), orjson.loads(state))
        except orjson.JSONDecodeError:
            continue

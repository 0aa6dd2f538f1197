"""The tables of a store in memory, for tests that run a pipeline without files."""

from __future__ import annotations

import sqlite3

from pathgauge.collector.store.schema import migrate


class _Connection(sqlite3.Connection):
    """Ends with its owner: since Python 3.13, a connection that nobody closes is a warning."""

    def __del__(self) -> None:
        self.close()


def memory_store() -> sqlite3.Connection:
    """An empty store, in which each statement commits."""
    connection = sqlite3.connect(
        ":memory:",
        isolation_level=None,
        check_same_thread=False,  # the thread that collects garbage closes it
        factory=_Connection,
    )
    migrate(connection)
    return connection

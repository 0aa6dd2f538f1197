"""Opens the database of a store for one query, whether or not a collector runs on it."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TypeAlias

from pathgauge.collector.store import StoreError
from pathgauge.collector.store.schema import MIGRATIONS
from pathgauge.collector.store.sql import Connection
from pathgauge.collector.store.sqlite import files

Reading: TypeAlias = Callable[[], AbstractContextManager[Connection]]
"""Opens a database for one query, with a connection that can only read. Raises `StoreError`."""

MAX_SECONDS = 2.0
"""How long a single statement may take before it is interrupted."""
_CHECK_EVERY = 10_000
"""Instructions of SQLite's virtual machine between two looks at the clock: about a millisecond."""


class QueryTooSlowError(StoreError):
    """The query was interrupted because it took too long."""


@contextmanager
def reading(
    folder: Path,
    max_seconds: float = MAX_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[sqlite3.Connection]:
    """A connection that can only read. Raises `StoreError` if there is no store, or if it cannot
    be read.
    """
    path = folder / files.DATABASE
    if not path.exists():
        raise StoreError(f"{path}: found no store, expected the folder of a collector")
    deadline = clock() + max_seconds
    try:
        with closing(files.connect_reader(folder)) as connection:
            connection.set_progress_handler(lambda: clock() > deadline, _CHECK_EVERY)
            _check(connection, path)
            connection.execute("BEGIN")  # one state of the database for all statements
            yield connection
    except sqlite3.OperationalError as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
            raise QueryTooSlowError(f"{path}: the query took more than {max_seconds} s") from error
        raise StoreError(f"{path}: {error}") from error
    except sqlite3.Error as error:
        raise StoreError(f"{path}: {error}") from error


def _check(connection: sqlite3.Connection, path: Path) -> None:
    [version] = connection.execute("PRAGMA user_version").fetchone()
    if version == len(MIGRATIONS):
        return
    found = f"{path}: found schema version {version}, expected {len(MIGRATIONS)}"
    if version > len(MIGRATIONS):
        raise StoreError(f"{found}: a later version of pathgauge wrote it, and can read it")
    raise StoreError(
        f"{found}: an earlier version of pathgauge wrote it; a start of the collector brings it up"
        " to date"
    )

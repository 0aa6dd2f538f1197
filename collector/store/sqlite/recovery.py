"""Copies all readable rows of a damaged database into a fresh one, which replaces it.

pathgauge.db.new        is being filled. A start that finds it must repeat the recovery.
pathgauge.db.salvaged   is complete and synced. It only has to replace the damaged database.
pathgauge.db.damaged-*  is the damaged database, which is kept.

Until the second file exists, the damaged files stay in place. So no crash leaves anything that
looks like a complete store, but is not.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import structlog

from pathgauge.collector.store import StoreError, outbox
from pathgauge.collector.store.schema import (
    APPLICATION_ID,
    NewerSchemaError,
    migrate,
    verify,
)
from pathgauge.collector.store.sql import insert
from pathgauge.collector.store.sqlite import files, header_page
from pathgauge.collector.store.sqlite.damage import copy_table, primary_code, tables
from pathgauge.collector.store.sqlite.files import DATABASE

_log = structlog.get_logger(__name__)


def is_unfinished(folder: Path) -> bool:
    """Whether a recovery was interrupted and has to be finished or repeated."""
    if _complete(folder).exists():
        return True
    return _new(folder).exists() and (folder / DATABASE).exists()


def recover(folder: Path) -> None:
    """Copy every readable row into a fresh database, and replace the damaged one with it. To be
    repeated as a whole until it succeeds.

    Raises `StoreError` if the rows cannot be written; then all files are where they were.
    """
    rows = None
    if not _complete(folder).exists():
        files.give_up_reserve(folder)
        try:
            rows = _fill(folder)
        except (sqlite3.Error, OSError) as error:
            raise _failed(folder, error) from error
    _log.error(
        "the store was damaged; all readable rows were recovered",
        rows=rows,
        damaged_file=f"{folder / DATABASE}.damaged-*",
    )
    try:
        _put_in_place(folder)
    except OSError as error:
        raise StoreError(
            f"{folder / DATABASE}: damaged, and the recovered database cannot replace it: {error}"
        ) from error


def suspect(connection: sqlite3.Connection) -> int:
    """Record that any journal row up to now may be lost, with unknown traces; returns the last of
    these rows.
    """
    [last] = connection.execute(
        "SELECT max(value) FROM (SELECT value FROM meta WHERE name = 'row' UNION SELECT max(id)"
        " FROM journal)"
    ).fetchone()
    insert(connection, "INSERT OR REPLACE INTO meta (name, value)", [("suspect", last or 0)])
    return last or 0


def suspected(connection: sqlite3.Connection) -> int:
    """The last row that `suspect` recorded; 0 without one."""
    found = connection.execute("SELECT value FROM meta WHERE name = 'suspect'").fetchone()
    return found[0] if found else 0


def remove_damaged_files(folder: Path) -> int:
    """Remove the files that recoveries kept; returns their number. Not to be called while a
    recovery is unfinished.
    """
    damaged = list(folder.glob(f"{DATABASE}.damaged-*"))
    for path in damaged:
        path.unlink()
    return len(damaged)


def _new(folder: Path) -> Path:
    return folder / f"{DATABASE}.new"


def _complete(folder: Path) -> Path:
    return folder / f"{DATABASE}.salvaged"


def _fill(folder: Path) -> int:
    new = _new(folder)
    new.unlink(missing_ok=True)
    os.close(files.open_private(new))
    files.sync(folder)  # from here on, a start does not use the damaged database
    fresh = sqlite3.connect(new, isolation_level=None)
    try:
        # After a crash this file is discarded, so it is synced only at the end.
        for pragma in (
            f"page_size = {files.PAGE_BYTES}",
            "journal_mode = MEMORY",
            "synchronous = OFF",
            f"application_id = {APPLICATION_ID}",
        ):
            fresh.execute(f"PRAGMA {pragma}")
        migrate(fresh)
        fresh.execute("BEGIN")
        rows = _copy_all(folder, fresh)
        suspect(fresh)
        outbox.begin_numbers(fresh)
        fresh.execute("COMMIT")
    finally:
        fresh.close()
    files.sync(new)
    new.rename(_complete(folder))
    files.sync(folder)
    return rows


def _copy_all(folder: Path, fresh: sqlite3.Connection) -> int:
    database = folder / DATABASE
    with header_page.repaired(database, _roots(database)), closing(_open(database)) as damaged:
        return sum(copy_table(damaged, fresh, table) for table in tables())


def _roots(database: Path) -> dict[str, int]:
    """The root pages of tables and indexes according to a damaged file; empty if its schema is
    damaged.
    """
    with closing(_open(database)) as damaged:
        try:
            verify(damaged)
            return dict(damaged.execute("SELECT name, rootpage FROM sqlite_schema"))
        except (sqlite3.DatabaseError, NewerSchemaError):
            return {}


def _open(database: Path) -> sqlite3.Connection:
    damaged = sqlite3.connect(database, isolation_level=None, factory=files.Connection)
    # Damaged text is copied too; the checksum of its row does not match.
    damaged.text_factory = lambda text: text.decode("utf-8", "replace")
    return damaged


def _put_in_place(folder: Path) -> None:
    database = folder / DATABASE
    _new(folder).unlink(missing_ok=True)
    if database.exists():
        _keep_damaged(database)
        files.sync(folder)  # the fresh database must not use the log of the damaged one
    _complete(folder).rename(database)
    files.sync(folder)


def _keep_damaged(database: Path) -> None:
    """Rename the damaged files. This can be repeated after a crash, because the name depends only
    on the database file, which is renamed last.
    """
    kept = f"{database}.damaged-{database.stat().st_mtime_ns}"
    for suffix in ("-wal", "-shm", ""):
        with suppress(FileNotFoundError):
            os.rename(f"{database}{suffix}", f"{kept}{suffix}")


def _failed(folder: Path, error: Exception) -> StoreError:
    with suppress(OSError):
        os.truncate(_new(folder), 0)  # frees the space; the empty file still marks the recovery
    database = folder / DATABASE
    message = f"{database}: damaged, and its readable rows cannot be copied: {error}"
    codes = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR}
    if isinstance(error, sqlite3.Error) and primary_code(error) in codes:
        sources = (database, folder / f"{DATABASE}-wal")
        needed = sum(path.stat().st_size for path in sources if path.exists())
        message += f"; found {files.free_bytes(folder)} bytes free, expected {needed}"
    return StoreError(message)

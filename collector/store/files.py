"""The files of a store: a folder comes in, connections to its database go out.

pathgauge.db  (with -wal and -shm)   journal and results
lock                                 held by the one process that may write
reserve                              space that is given up when the disk is full, so that rows can still be given back
pathgauge.db.*                       see `collector/store/recovery.py`
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from pathlib import Path
from typing import Any

import structlog

from pathgauge.collector.store import StoreError, StoreInUseError, wal
from pathgauge.collector.store.schema import (
    APPLICATION_ID,
    DamagedSchemaError,
    NewerSchemaError,
    migrate,
    verify,
)
from pathgauge.collector.store.wal import Log

DATABASE = "pathgauge.db"
SYNCHRONOUS = "FULL"
"""A commit returns when the disk has it; NORMAL loses acknowledged requests when the power fails.
"""
CHECKED_BYTES = 256 << 20
RESERVE_BYTES = 8 << 20
"""More than the write-ahead log grows between checkpoints, and one transaction."""
_WRITE_AHEAD_PAGES = 500
PAGE_BYTES = 8192
_BUSY_S = 1.0
"""How long to wait for another process, which can only be one that reads."""

_log = structlog.get_logger(__name__)


class Connection(sqlite3.Connection):
    """Can say that a file is damaged where Python cannot decode SQLite's message, as it quotes a
    damaged text.
    """

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """As that of sqlite3. Raises `DamagedSchemaError` instead of UnicodeDecodeError."""
        try:
            return super().execute(*arguments)
        except UnicodeDecodeError as error:
            raise DamagedSchemaError(error.object.decode("utf-8", "replace")) from error


def lock(folder: Path) -> int:
    """Create the folder, for this user alone, and become its only writer; returns a descriptor that
    holds the lock. Raises `StoreError`.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_private(folder)
        held = open_private(folder / "lock")
    except OSError as error:
        raise StoreError(
            f"store.path: found {folder}, expected a folder that can be written to:"
            f" {error.strerror}"
        ) from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(held)
        raise StoreInUseError(
            f"store.path: found {folder} in use, expected a folder of its own for every collector"
        ) from error
    return held


def connect(folder: Path) -> sqlite3.Connection:
    """The writing connection. Raises `StoreError` for what an operator has to mend, `sqlite3.Error`
    for a damaged file.
    """
    path = folder / DATABASE
    os.close(open_private(path))  # SQLite would make it readable for others
    log = wal.look(folder / f"{DATABASE}-wal", PAGE_BYTES)
    connection = sqlite3.connect(
        path,
        timeout=_BUSY_S,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=512,
        factory=Connection,
    )
    connection.text_factory = _text
    try:
        verify(connection)
        connection.execute(f"PRAGMA synchronous = {SYNCHRONOUS}")
        _report_lost(log, connection)
        for pragma in (
            f"page_size = {PAGE_BYTES}",
            "journal_mode = WAL",
            f"wal_autocheckpoint = {_WRITE_AHEAD_PAGES}",
            # a purge rewrites the file; to overwrite every row that is given back would double the
            # writing
            "secure_delete = OFF",
            "mmap_size = 0",
            # what a purge puts into temporary files is content, too
            f"temp_store_directory = {_quoted(folder)}",
            f"application_id = {APPLICATION_ID}",
        ):
            connection.execute(f"PRAGMA {pragma}")
        migrate(connection)
    except NewerSchemaError as error:
        connection.close()
        raise StoreError(f"{path}: {error}") from error
    except BaseException as error:
        connection.close()
        if (
            getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY
        ):  # but we may write: it is the file that says so
            raise DamagedSchemaError(str(error)) from error
        raise
    return connection


def identity(folder: Path) -> tuple[int, int] | None:
    """Which file stands where the database should be; `None` when there is none. Raises OSError
    when that cannot be said.
    """
    try:
        status = (folder / DATABASE).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def connect_reader(folder: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    connection = sqlite3.connect(
        f"file:{folder / DATABASE}?mode=ro",
        uri=True,
        isolation_level=None,
        check_same_thread=False,
        factory=Connection,
    )
    connection.text_factory = _text
    return connection


def is_sound(connection: sqlite3.Connection) -> bool:
    """Whether the pages of the database hang together, which SQLite notices by itself only when it
    meets them.

    A large database is not looked at: that would keep senders waiting. Raises `sqlite3.Error` as
    reading it does.
    """
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    return (
        pages * PAGE_BYTES > CHECKED_BYTES
        or connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok"
    )


def _text(raw: bytes) -> str:
    """Text that was damaged so that it is none is for the checksums to find, and not to stop the
    start.
    """
    return raw.decode("utf-8", "replace")


def make_reserve(folder: Path) -> None:
    """Claim space for bad times, unless it is there. Raises OSError when there is none."""
    path = folder / "reserve"
    if path.exists() and path.stat().st_size == RESERVE_BYTES:
        return
    descriptor = open_private(path)
    try:
        os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
    finally:
        os.close(descriptor)


def give_up_reserve(folder: Path) -> bool:
    """Free the space that was claimed; says whether there was any."""
    try:
        (folder / "reserve").unlink()
    except FileNotFoundError:
        return False
    return True


def free_bytes(folder: Path) -> int:
    """What the file system has left for us."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def _make_private(folder: Path) -> None:
    if not (mode := folder.stat().st_mode & 0o777) & 0o077:
        return
    try:
        folder.chmod(0o700)
    except OSError as error:
        _log.warning(
            "others can look into the folder of the store",
            folder=str(folder),
            mode=f"{mode:o}",
            error=error.strerror,
        )


def _report_lost(log: Log, connection: sqlite3.Connection) -> None:
    """Say what SQLite passed over in silence; a checkpoint tells how many frames it took."""
    if not log.commits:
        return
    _, taken, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if lost := log.lost(max(taken, 0)):
        _log.error(
            "the end of the write-ahead log could not be read: what it held is lost",
            transactions=lost,
        )


def open_private(path: Path) -> int:
    """A descriptor of a file that only this user can read; it is created."""
    return os.open(path, os.O_CREAT | os.O_RDWR, 0o600)


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"

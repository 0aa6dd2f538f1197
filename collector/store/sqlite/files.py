"""The files in the folder of a store, and connections to its database.

pathgauge.db  (with -wal and -shm)   journal and results
lock                                 held by the one process that may write; says whether the
                                     database was closed, see `checkpoints.py`
reserve                              space that is freed on a full disk, to delete rows with it
pathgauge.db.*                       see `collector/store/sqlite/recovery.py`
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import structlog

from pathgauge.collector.store import StoreError, StoreFolderError, StoreInUseError
from pathgauge.collector.store.schema import (
    APPLICATION_ID,
    DamagedSchemaError,
    NewerSchemaError,
    migrate,
    verify,
)
from pathgauge.collector.store.sqlite import wal
from pathgauge.collector.store.sqlite.wal import Log

DATABASE = "pathgauge.db"
SYNCHRONOUS = "FULL"
"""A commit returns when it is on the disk; NORMAL would lose acknowledged requests in a power cut.
"""
MAX_CHECKED_BYTES = 256 << 20
"""Size up to which a database is checked when it is opened."""
RESERVE_BYTES = 8 << 20
"""More than the growth of the write-ahead log between checkpoints plus one transaction."""
WAL_PAGES = 500
"""Length of the write-ahead log at which it is moved into the database."""
PAGE_BYTES = 8192
CACHE_KIB = 2_000
"""The pages that the writing connection keeps in memory."""
OPENING_BYTES = 1 << 20
"""More than SQLite needs to open a database: the memory that connections share is a file."""
BUSY_S = 1.0
"""How long to wait for another process, which can only be a reader."""

_log = structlog.get_logger(__name__)


class Connection(sqlite3.Connection):
    """Reports a damaged file even if SQLite's message quotes damaged text that Python cannot
    decode.
    """

    def execute(self, *arguments: Any) -> sqlite3.Cursor:
        """Like that of sqlite3, but raises `DamagedSchemaError` instead of UnicodeDecodeError."""
        try:
            return super().execute(*arguments)
        except UnicodeDecodeError as error:
            raise DamagedSchemaError(error.object.decode("utf-8", "replace")) from error


def lock(folder: Path) -> int:
    """Create the folder, lock it, and make it and the database accessible only for this user;
    returns the descriptor that holds the lock. On a full disk, the reserve makes room to open the
    store. Raises `StoreError`.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        _make_folder_private(folder)
        _check_owner(folder)
        held = open_private(folder / "lock")
    except StoreError:
        raise
    except OSError as error:
        raise StoreFolderError(
            f"found {folder}, expected a folder that can be written to: {error.strerror}"
        ) from error
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(held)
        raise StoreInUseError(
            f"found {folder} in use, expected a separate folder for every collector"
        ) from error
    for path in folder.glob(f"{DATABASE}*"):  # a backup has the mode that its copy was given
        if problem := _make_private(path, 0o600):
            _log.warning("other users can read a file of the store", file=str(path), error=problem)
    if free_bytes(folder) < OPENING_BYTES and give_up_reserve(folder):
        _log.warning("the disk is full: the reserve of the store is used", folder=str(folder))
    return held


def cannot_open(folder: Path, error: Exception) -> StoreError:
    """Why the database cannot be opened. SQLite calls a full disk an I/O error."""
    free = free_bytes(folder)
    hint = f"; found {free} bytes free" if free < OPENING_BYTES else ""
    return StoreError(f"{folder / DATABASE}: cannot be opened: {error}{hint}")


def connect(
    folder: Path, before_writing: Callable[[sqlite3.Connection], None] = lambda _: None
) -> sqlite3.Connection:
    """Open the writing connection. `before_writing` is called when the file is as it was found.
    Raises `StoreError` for problems that need the operator, and `sqlite3.Error` for a damaged file.
    """
    path = folder / DATABASE
    if not path.exists():  # closing a descriptor would drop the locks of other connections
        os.close(open_private(path))  # SQLite would create it readable for others
    log = wal.scan(folder / f"{DATABASE}-wal", PAGE_BYTES)
    connection = sqlite3.connect(
        path,
        timeout=BUSY_S,
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
        before_writing(connection)
        for pragma in (
            f"page_size = {PAGE_BYTES}",
            "auto_vacuum = NONE",
            "journal_mode = WAL",
            "wal_autocheckpoint = 0",  # see `collector/store/sqlite/checkpoints.py`
            # Otherwise the log would keep the size of the largest transaction, and count as used.
            f"journal_size_limit = {WAL_PAGES * PAGE_BYTES}",
            "mmap_size = 0",
            f"cache_size = {-CACHE_KIB}",
            # The temporary files of a purge hold content of the telemetry.
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
        # A damaged header makes SQLite treat a file as read-only that can be written.
        is_read_only = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_READONLY
        if is_read_only and _can_be_written(path):
            raise DamagedSchemaError(str(error)) from error
        raise
    return connection


def _can_be_written(path: Path) -> bool:
    """Whether the disk lets this process write the file. It is not opened: closing a descriptor
    would drop the locks of other connections. After an error, a disk may seem to be writable.
    """
    try:
        os.utime(path)
    except OSError:
        return False
    return True


def identity(folder: Path) -> tuple[int, int] | None:
    """Device and inode of the database file; `None` if it does not exist. Raises OSError if this
    cannot be determined.
    """
    try:
        status = (folder / DATABASE).stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return status.st_dev, status.st_ino


def connect_reader(folder: Path) -> sqlite3.Connection:
    """Open a connection that cannot write."""
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
    """Whether the pages of the database are consistent. SQLite itself notices only the pages that
    it reads.

    A large database is not checked, because senders would have to wait. Raises `sqlite3.Error`.
    """
    pages: int = connection.execute("PRAGMA page_count").fetchone()[0]
    if pages * PAGE_BYTES > MAX_CHECKED_BYTES:
        return True
    return bool(connection.execute("PRAGMA quick_check(1)").fetchone()[0] == "ok")


def _text(raw: bytes) -> str:
    """Damaged text must not stop the start; checksums find it later."""
    return raw.decode("utf-8", "replace")


def make_reserve(folder: Path) -> None:
    """Reserve disk space, unless that was done before. Raises OSError if there is not enough."""
    path = folder / "reserve"
    if path.exists() and path.stat().st_size == RESERVE_BYTES:
        return
    descriptor = open_private(path)
    try:
        os.posix_fallocate(descriptor, 0, RESERVE_BYTES)
    finally:
        os.close(descriptor)


def give_up_reserve(folder: Path) -> bool:
    """Free the reserved space; returns whether there was any."""
    try:
        (folder / "reserve").unlink()
    except FileNotFoundError:
        return False
    return True


def free_bytes(folder: Path) -> int:
    """Free space of the file system."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def _check_owner(folder: Path) -> None:
    """Another user may have run a command on the store, such as root."""
    if not _may(folder, os.W_OK):
        return  # that is said of the folder
    for name in ("lock", DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
        path = folder / name
        if path.exists() and not _may(path, os.R_OK | os.W_OK):
            raise StoreFolderError(
                f"found {path} of user {path.stat().st_uid}, expected a file that user"
                f" {os.geteuid()} can read and write"
            )


def _may(path: Path, mode: int) -> bool:
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def _make_folder_private(folder: Path) -> None:
    mode = folder.stat().st_mode & 0o777
    if error := _make_private(folder, 0o700):
        _log.warning(
            "other users can read the folder of the store",
            folder=str(folder),
            mode=f"{mode:o}",
            error=error,
        )


def _make_private(path: Path, mode: int) -> str | None:
    """Why other users can still use it, if they can."""
    try:
        if path.stat().st_mode & 0o077:
            path.chmod(mode)
    except OSError as error:
        return error.strerror or str(error)
    return None


def _report_lost(log: Log, connection: sqlite3.Connection) -> None:
    """Log the transactions that SQLite silently ignored. A checkpoint returns how many frames it
    has read.
    """
    if not log.commits:
        return
    _, read, _ = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    if lost := log.lost(max(read, 0)):
        _log.error(
            "the end of the write-ahead log is damaged, its transactions are lost",
            transactions=lost,
        )


def open_private(path: Path) -> int:
    """Open a file, and create it readable only for this user; returns the descriptor."""
    return os.open(path, os.O_CREAT | os.O_RDWR, 0o600)


def sync(path: Path) -> None:
    """Make a file, or the entries of a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _quoted(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"

"""How many scorers share the work, and which folders hold their state.

The main file says it: its row `scorers` of `meta` names the folder and the number of scorers;
without it, the one process scores and the main file holds everything. Folders that are being built
and folders that were replaced are listed in the row `scorers removed`. Any other folder may hold
requests that were acknowledged, so it is never removed: the main file may have lost its row.
"""

from __future__ import annotations

import os
import re
import secrets
import shutil
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path

import structlog

from pathgauge.collector.store import StoreError
from pathgauge.collector.store.sql import insert
from pathgauge.collector.store.sqlite import files, recovery
from pathgauge.collector.store.sqlite.files import DATABASE

_log = structlog.get_logger(__name__)

_IN_FORCE, _REMOVED = "scorers", "scorers removed"
_PREFIX = "scorers-"
_ID_BYTES = 4
_ID = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Shape:
    """Where the state of the scorers is."""

    id: str = ""
    """Names the folder of the scorers; never used twice."""
    workers: int = 0
    """Number of processes that score; 0: the one process does, and its state is in the main file.
    """

    @property
    def partitions(self) -> int:
        """The number of parts of the state."""
        return max(1, self.workers)

    def names(self) -> Sequence[str]:
        """The folder of each scorer, relative to the main folder."""
        return [f"{_PREFIX}{self.id}/{number}" for number in range(self.workers)]

    def folders(self, main: Path) -> Sequence[Path]:
        """The folders of the scorers, which must exist. Raises `StoreError`."""
        folders = [main / name for name in self.names()]
        for folder in folders:
            if not folder.is_dir():
                raise StoreError(
                    f"{folder}: found nothing, expected the folder of a scorer; create it to go on"
                    " without the requests that it held"
                )
        return folders


def new_shape(workers: int) -> Shape:
    """A shape with folders that do not exist yet."""
    return Shape(secrets.token_hex(_ID_BYTES) if workers else "", workers)


def peek(main: Path) -> Shape | None:
    """The shape in force, if it can be told without opening the file for writing, and if there are
    no folders but those of this shape. It takes milliseconds, as every start needs it.
    """
    try:
        if recovery.is_unfinished(main):
            return None
        if files.identity(main) is None:
            return None if _ids(main) else Shape()
        with closing(files.connect_reader(main)) as connection:
            shape = in_force(connection)
    except (sqlite3.Error, OSError):
        return None  # opening it for writing recovers it, or tells why it cannot be read
    return shape if _ids(main) <= {shape.id} else None


def in_force(connection: sqlite3.Connection) -> Shape:
    """The shape that the main file names. Raises `StoreError` if its row is damaged."""
    value = _value(connection, _IN_FORCE)
    if value is None:
        return Shape()
    name, _, workers = str(value).partition(" ")
    if not _ID.fullmatch(name) or not re.fullmatch("[1-9][0-9]{0,5}", workers):
        raise StoreError(
            f"{DATABASE}: found {value!r} in row {_IN_FORCE!r} of table meta, expected the id of"
            " the folder of the scorers and their number"
        )
    return Shape(name, int(workers))


def put(connection: sqlite3.Connection, shape: Shape) -> None:
    """Put a shape in force. The folder of the shape before it may be removed then."""
    before = in_force(connection)
    removed = set(_removed(connection)) - {shape.id} | ({before.id} - {""})
    connection.execute("DELETE FROM meta WHERE name = ?", (_IN_FORCE,))
    if shape.workers:
        row = [(_IN_FORCE, f"{shape.id} {shape.workers}")]
        insert(connection, "INSERT INTO meta (name, value)", row)
    _set_removed(connection, removed)


def announce(connection: sqlite3.Connection, shape: Shape) -> None:
    """Record that the folder of `shape` is being built: until it is put in force, the next start
    removes it.
    """
    _set_removed(connection, {*_removed(connection), shape.id})


def remove_unused(connection: sqlite3.Connection, main: Path) -> None:
    """Remove the folders that are not needed any more. Raises `StoreError` if there are others
    that the main file does not know.
    """
    unused, known = set(_removed(connection)), in_force(connection).id
    for name in sorted(unused):
        _remove(main, main / f"{_PREFIX}{name}")
    left = _ids(main)
    if left != unused & left | ({known} & left):
        [unknown, *_] = sorted(left - unused - {known})
        raise StoreError(
            f"{main / _PREFIX}{unknown}: found the state of scorers that {DATABASE} does not know,"
            " expected none; move it away to go on without the requests that it holds"
        )
    if unused != unused & left:
        _set_removed(connection, unused & left)


def discard(main: Path, shape: Shape) -> None:
    """Free the space of a folder that could not be completed."""
    shutil.rmtree(main / f"{_PREFIX}{shape.id}", ignore_errors=True)


def _remove(main: Path, folder: Path) -> None:
    """Remove a folder, but keep the files that recoveries have kept in it."""
    try:
        for kept in folder.glob(f"*/{DATABASE}.damaged-*"):
            os.rename(kept, main / kept.name)
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)
    except OSError as error:
        _log.error(
            "a folder with telemetry that is not needed any more cannot be removed",
            folder=str(folder),
            error=str(error),
        )


def _ids(main: Path) -> set[str]:
    names = (path.name.removeprefix(_PREFIX) for path in main.glob(f"{_PREFIX}*"))
    return {name for name in names if _ID.fullmatch(name)}


def _removed(connection: sqlite3.Connection) -> Sequence[str]:
    ids = str(_value(connection, _REMOVED) or "").split()
    return [one for one in ids if _ID.fullmatch(one)]


def _set_removed(connection: sqlite3.Connection, ids: Iterable[str]) -> None:
    row = [(_REMOVED, " ".join(sorted(ids)))]
    insert(connection, "INSERT OR REPLACE INTO meta (name, value)", row)


def _value(connection: sqlite3.Connection, name: str) -> object:
    found = connection.execute("SELECT value FROM meta WHERE name = ?", (name,)).fetchone()
    return found[0] if found else None

"""What a scorer has committed for others: publications for the gauge, turns for other scorers.

Rows are written in the transaction of the scorer's state, and deleted when their receiver has
stored what they say. The receiver stores the number of the last row together with it. So each row
takes effect once, whatever process crashes when.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, get_args

import structlog

from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.store import Progress
from pathgauge.collector.store.forwarded_turns import encode
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import Connection, insert, upsert
from pathgauge.collector.store.sqlite import files

_log = structlog.get_logger(__name__)

_PUBLISHED = "published "
"""The prefix of positions in the table `meta`: publications that the gauge has read."""
_RECEIVED = "received "
"""The same for turns that other scorers have forwarded."""


Table: TypeAlias = Literal["publications", "forwarded"]
_NUMBERED: tuple[Table, ...] = get_args(Table)


_PUBLICATIONS = "SELECT id, body, NULL, crc FROM publications"
_FORWARDED = "SELECT id, body, target, crc FROM forwarded"


class Acknowledged(NamedTuple):
    """The last rows that their receivers have stored."""

    publication: int = 0
    forwarded: int = 0


class Outgoing(NamedTuple):
    """A row that waits for its receiver."""

    id: int
    body: bytes
    """Empty if it is damaged: what waits for the row must not wait for ever."""
    target: int | None = None
    """The scorer that a turn is for; `None`: all others, or the gauge."""


def write(connection: Connection, progress: Progress) -> None:
    """Write what others will be told, and what the gauge has read, in the caller's transaction."""
    if progress.publication is not None:
        body = progress.publication
        insert(connection, "INSERT INTO publications (body, crc)", [(body, zlib.crc32(body))])
    # Each scorer of a machine has a running time of its own, which says nothing to another one.
    turns = [replace(turn, at=None) for turn in progress.changes.forwarded]
    rows = [(turn.target, encode(turn)) for turn in turns]
    insert(
        connection,
        "INSERT INTO forwarded (target, body, crc)",
        [(target, body, zlib.crc32(body)) for target, body in rows],
    )
    _write_positions(connection, _PUBLISHED, progress.published)


def begin_numbers(connection: Connection) -> None:
    """Have the rows of a new or recovered file begin with numbers that no earlier file had. Their
    receivers would take rows with lower numbers for ones that they have stored.
    """
    connection.execute("DELETE FROM sqlite_sequence WHERE name IN (?, ?)", _NUMBERED)
    insert(
        connection,
        "INSERT INTO sqlite_sequence (name, seq)",
        [(name, time.time_ns() // 1000) for name in _NUMBERED],
    )


def has_numbers(connection: Connection) -> bool:
    """Whether rows of this file have numbers already."""
    found = connection.execute(
        "SELECT count(*) FROM sqlite_sequence WHERE name IN (?, ?)", _NUMBERED
    )
    return bool(found.fetchone()[0])


def is_new(batch: Batch, received: dict[str, int]) -> bool:
    """Whether a batch is not in the journal yet. A turn becomes part of `received`."""
    if batch.relayed is None:
        return True
    scorer, row = batch.relayed
    if row <= received.get(scorer, 0):
        return False
    received[scorer] = row
    return True


def write_received(
    connection: Connection, before: Mapping[str, int], received: Mapping[str, int]
) -> None:
    """Write which turns of other scorers are in the journal now, in the caller's transaction."""
    changed = {scorer: row for scorer, row in received.items() if row != before.get(scorer)}
    _write_positions(connection, _RECEIVED, changed)


def delete(connection: Connection, acknowledged: Acknowledged) -> None:
    """Delete what others have received."""
    connection.execute("DELETE FROM publications WHERE id <= ?", (acknowledged.publication,))
    connection.execute("DELETE FROM forwarded WHERE id <= ?", (acknowledged.forwarded,))


def _write_positions(connection: Connection, prefix: str, positions: Mapping[str, int]) -> None:
    rows = [
        (prefix + scorer, f"{row} {checksum(prefix + scorer, row)}")
        for scorer, row in positions.items()
    ]
    upsert(connection, "meta", "name, value", "name", rows)


def published(connection: Connection) -> Mapping[str, int]:
    """The last publication of each scorer that the gauge has read."""
    return _positions(connection, _PUBLISHED)


def received(connection: Connection) -> Mapping[str, int]:
    """The last turn of each other scorer that was received."""
    return _positions(connection, _RECEIVED)


def forget_published(connection: Connection) -> None:
    """Forget what the gauge has read of all scorers, because others take their place."""
    connection.execute(
        "DELETE FROM meta WHERE substr(name, 1, ?) = ?", (len(_PUBLISHED), _PUBLISHED)
    )


def _positions(connection: Connection, prefix: str) -> Mapping[str, int]:
    found = {}
    for name, value in connection.execute(
        "SELECT name, value FROM meta WHERE substr(name, 1, ?) = ?", (len(prefix), prefix)
    ):
        row, _, crc = str(value).partition(" ")
        if not row.isdigit() or crc != str(checksum(name, int(row))):
            _log.error(
                "the position of a scorer is damaged; what it sent may count twice", name=name
            )
            continue
        found[name.removeprefix(prefix)] = int(row)
    return found


class OutboxReader:
    """Reads the rows that wait, over a connection that cannot write. For one thread."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def publications(self, after: int, max_bytes: int) -> list[Outgoing]:
        """Publications after row `after`, until their bodies reach `max_bytes`."""
        with closing(files.connect_reader(self._folder)) as connection:
            return _read(connection, _PUBLICATIONS, after, max_bytes)

    def forwarded(self, after: int, max_bytes: int) -> list[Outgoing]:
        """The same for forwarded turns."""
        with closing(files.connect_reader(self._folder)) as connection:
            return _read(connection, _FORWARDED, after, max_bytes)

    def waiting(self, after: Acknowledged, max_bytes: int) -> tuple[list[Outgoing], list[Outgoing]]:
        """Publications and forwarded turns after these rows."""
        with closing(files.connect_reader(self._folder)) as connection:
            return (
                _read(connection, _PUBLICATIONS, after.publication, max_bytes),
                _read(connection, _FORWARDED, after.forwarded, max_bytes),
            )

    def last(self) -> Acknowledged:
        """The last rows that wait; 0 if none does."""
        select = "SELECT coalesce(max(id), 0) FROM"
        with closing(files.connect_reader(self._folder)) as connection:
            return Acknowledged(
                *(connection.execute(f"{select} {name}").fetchone()[0] for name in _NUMBERED)
            )


def _read(connection: Connection, select: str, after: int, max_bytes: int) -> list[Outgoing]:
    rows = connection.execute(f"{select} WHERE id > ? ORDER BY id", (after,))
    return list(_until(iter(rows), max_bytes))


def _until(
    rows: Iterator[tuple[int, bytes, int | None, int]], max_bytes: int
) -> Iterator[Outgoing]:
    for row, body, target, crc in rows:
        is_sound = crc == zlib.crc32(body)
        yield Outgoing(row, body if is_sound else b"", target)
        max_bytes -= len(body)
        if max_bytes <= 0:
            return

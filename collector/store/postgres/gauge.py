"""What the gauge does: read the publications of all partitions in their order, and commit what
follows from them.

One process is the gauge, others wait to become it. Which one it is, is decided by an advisory lock
of its connection, over which it also commits. So a gauge whose connection has broken commits
nothing more: it has to take the lock again, and to restore what the last gauge has committed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import psycopg
import structlog

from pathgauge.collector.core.evaluations.recent import Recent, Wants
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.store import StoreError, Transaction, Unread, Usage
from pathgauge.collector.store.counts import write as write_counts
from pathgauge.collector.store.postgres import LockLostError
from pathgauge.collector.store.postgres.claiming import quarantine
from pathgauge.collector.store.postgres.connection import PostgresConnection, connect
from pathgauge.collector.store.postgres.messages import Purge, purges_after
from pathgauge.collector.store.postgres.schema import migrate
from pathgauge.collector.store.postgres.sharing import SharedCleaning
from pathgauge.collector.store.recent_results import WindowBounds, evaluations_since
from pathgauge.collector.store.restore import Tables, counts_of

_log = structlog.get_logger(__name__)

MAX_PUBLICATIONS = 32
"""Publications of one partition that are read at once."""
MAX_BYTES = 8 << 20
"""Size of the publications that are read at once."""
_PUBLISHED = "AND (publication IS NULL OR publication NOT IN (SELECT id FROM publications))"
"""Results whose publication the gauge has read. The others follow with their publications."""
_LAST_APPLIED = """
SELECT coalesce(max(id), 0) FROM purges
WHERE publication < coalesce((SELECT min(id) FROM publications), publication + 1)
"""
"""The last purge that no unread publication precedes; the table has only unread ones."""
_WAITING = """
SELECT partition, id, body FROM (
  SELECT partition, id, body, sum(octet_length(body)) OVER (ORDER BY place, id) AS size,
    row_number() OVER (ORDER BY place, id) AS number
  FROM (
    SELECT p.partition, found.id, found.body, row_number() OVER (
      PARTITION BY p.partition ORDER BY found.id
    ) AS place
    FROM unnest(?::integer[], ?::bigint[]) AS p (partition, position) CROSS JOIN LATERAL (
      SELECT id, body FROM publications WHERE partition = p.partition AND id > p.position
      ORDER BY id LIMIT ?
    ) AS found
  ) AS placed
) AS sized WHERE size <= ? OR number = 1 ORDER BY partition, id
"""
"""The first publications of all partitions, then the second ones, and so on, up to a size."""


class Published(NamedTuple):
    """A publication, encoded."""

    partition: int
    id: int
    body: bytes


@dataclass(frozen=True, slots=True)
class Left:
    """What the last gauge has left."""

    counts: Sequence[Row]
    positions: Mapping[int, int]
    """The last publication of each partition that was read."""


@dataclass(frozen=True, slots=True)
class Arrived:
    """What was published since the last reading."""

    publications: Sequence[Published] = ()
    """Those of one partition in their order."""
    purges: Sequence[Purge] = ()
    """To be applied after the publications."""


class GaugeDatabase:
    """For one thread, except for `usage`. Methods raise `LockLostError` when this process is not
    the gauge: then everything in memory is to be forgotten, and `try_acquire` to be called again.
    """

    def __init__(
        self,
        conninfo: str,
        cleaning: SharedCleaning,
        windows: WindowBounds | None = None,
        on_commit: Callable[[Transaction, float], None] = lambda kind, seconds: None,
    ) -> None:
        """`on_commit` gets the duration of each commit in seconds."""
        self._conninfo = conninfo
        self._cleaning = cleaning
        self._windows = windows or WindowBounds()
        self._on_commit = on_commit
        self._connection: PostgresConnection | None = None
        self._holds_lock = False
        self._positions: dict[int, int] = {}
        """How far publications were read, committed or not."""
        self._purge = 0
        self._held_back: list[Purge] = []
        """Purges that follow publications which were not read yet."""

    def try_acquire(self) -> bool:
        """Become the gauge, unless another process is. Raises `StoreError` if the database cannot
        be reached, and each time if a later version wrote its tables.
        """
        if self._holds_lock:
            return True
        try:
            if self._connection is None or self._connection.is_broken:
                self._connection = connect(self._conninfo)
                migrate(self._connection)
            key = self._connection.lock_key("gauge")
            found = self._connection.execute("SELECT pg_try_advisory_lock(?::integer, 0)", (key,))
            self._holds_lock = bool(found.fetchone()[0])
        except psycopg.Error as error:
            self.close()
            raise StoreError(f"postgres: {error}") from error
        except StoreError:
            self.close()  # otherwise the next attempt would find a connection that looks checked
            raise
        return self._holds_lock

    def restore(self) -> Left:
        """What the last gauge has committed."""
        with self._guarded() as connection, connection.transaction():
            tables = Tables(connection, lambda *row: quarantine(connection, *row))
            found = connection.execute("SELECT partition, position FROM gauge").fetchall()
            # Those that follow publications which nobody has read are still to be applied.
            [self._purge] = connection.execute(_LAST_APPLIED).fetchone()
            left = Left(tuple(counts_of(tables)), dict(found))
        self._positions = dict(left.positions)
        self._held_back = []
        return left

    def recent(self, wants: Wants) -> Iterator[Recent]:
        """The evaluations that windows may hold, newest first, without those whose publication was
        not read yet. To be read to its end.
        """
        since = time.time() - self._windows.max_age_s
        with self._guarded() as connection, connection.transaction():
            for _, evaluation in evaluations_since(
                connection, since, lambda *row: quarantine(connection, *row), wants, _PUBLISHED
            ):
                yield evaluation

    def read(self, max_publications: int = MAX_PUBLICATIONS, max_bytes: int = MAX_BYTES) -> Arrived:
        """What was published since the last call: of each partition at most `max_publications`, in
        all about `max_bytes`, but at least one if there is any.
        """
        with self._guarded() as connection:
            # Before the publications: those that a purge follows are visible then.
            purges = purges_after(connection, self._purge)
            known = connection.execute("SELECT partition FROM partitions ORDER BY partition")
            partitions = [partition for (partition,) in known]
            positions = [self._positions.get(partition, 0) for partition in partitions]
            found = connection.execute(
                _WAITING, (partitions, positions, max_publications, max_bytes)
            )
            publications = [Published._make(row) for row in found]
            self._positions.update({one.partition: one.id for one in publications})
            self._purge = max((purge.id for purge in purges), default=self._purge)
            return Arrived(publications, self._due(connection, purges))

    def commit(self, counts: Sequence[Row], positions: Mapping[int, int], wall: float) -> None:
        """Make the effect of publications durable: the present values of counts, and the last
        publication of each partition that they include; `wall` in Unix seconds. Removes what is no
        longer kept.
        """
        began = time.monotonic()
        with self._guarded() as connection:
            with connection.transaction(), connection.pipelined():
                write_counts(connection, counts)
                for partition, position in sorted(positions.items()):
                    connection.execute(
                        "INSERT INTO gauge (partition, position) VALUES (?, ?)"
                        " ON CONFLICT (partition) DO UPDATE SET position = excluded.position",
                        (partition, position),
                    )
                    connection.execute(
                        "DELETE FROM publications WHERE partition = ? AND id <= ?",
                        (partition, position),
                    )
            self._on_commit("results", time.monotonic() - began)
            self._cleaning.clean(connection, wall)

    def usage(self) -> Usage:
        """How much results and evidence take; for any thread."""
        return self._cleaning.usage

    def unread(self) -> Unread:
        """What no gauge has read. A standby can tell, too. Raises `StoreError`."""
        if self._connection is None:
            return Unread()
        try:
            [number, at] = self._connection.execute(
                "SELECT count(*), min(at) FROM publications"
            ).fetchone()
        except psycopg.Error as error:
            self.close()
            raise StoreError(f"postgres: {error}") from error
        return Unread(number, at)

    def close(self) -> None:
        """Give the lock up. Safe to call twice."""
        held, self._holds_lock = self._holds_lock, False
        if self._connection is None:
            return
        if held and not self._connection.is_broken:
            with suppress(psycopg.Error):  # sooner than the server notices the end
                self._connection.rollback()
                self._connection.execute("SELECT pg_advisory_unlock_all()")
        self._connection.close()

    def _due(self, connection: PostgresConnection, purges: Sequence[Purge]) -> list[Purge]:
        """The purges whose earlier publications were all read."""
        self._held_back += purges
        if not self._held_back:
            return []
        [unread] = connection.execute(
            "SELECT min(w.id) FROM publications AS w LEFT JOIN unnest(?::integer[], ?::bigint[])"
            " AS p (partition, position) ON p.partition = w.partition"
            " WHERE w.id > coalesce(p.position, 0)",
            (list(self._positions), list(self._positions.values())),
        ).fetchone()
        due = [one for one in self._held_back if unread is None or one.publication < unread]
        self._held_back = self._held_back[len(due) :]
        return due

    def _guarded(self) -> _Guarded:
        return _Guarded(self)


class _Guarded:
    """The connection that holds the lock. Any error of it ends the role of the gauge."""

    def __init__(self, database: GaugeDatabase) -> None:
        self._database = database

    def __enter__(self) -> PostgresConnection:
        connection = self._database._connection
        if connection is None or not self._database._holds_lock:
            raise LockLostError("postgres: this process is not the gauge")
        return connection

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if error is None:
            return
        with suppress(psycopg.Error):
            self._database.close()
        if isinstance(error, psycopg.Error):
            _log.error("this process is not the gauge any more", error=str(error).strip())
            raise LockLostError(f"postgres: {error}") from error

"""What a scorer does for one partition: claim it, commit, and see what others have left for it.

Every commit checks the generation of the partition under a lock on its row, in the transaction of
what it writes. So a process that was too slow, and has lost the partition, writes nothing. It also
checks how many commits there were: when the connection breaks in the middle of a commit, the number
tells whether it took place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field, replace

import orjson
import psycopg
import structlog

from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.store import StoreError, Transaction
from pathgauge.collector.store.evidence.table import EvidencePolicy, EvidenceRows
from pathgauge.collector.store.postgres import FencedError, heads, writing
from pathgauge.collector.store.postgres.claiming import Claimed, claim, records_of
from pathgauge.collector.store.postgres.connection import PostgresConnection, connect
from pathgauge.collector.store.postgres.messages import (
    forwarded_to,
    has_forwarded,
    is_purged,
    others_reached,
    purges_after,
)
from pathgauge.collector.store.postgres.schema import migrate
from pathgauge.collector.store.postgres.steps import News, Step
from pathgauge.collector.store.results import write_results
from pathgauge.collector.store.scorer_state import write_changes

_log = structlog.get_logger(__name__)

RETRY_S = 1.0
"""The shortest time between two attempts to connect."""
SETTLE_S = 30.0
"""How long a commit whose answer was lost is asked for."""
DROP_STATES_S = 60.0
KEPT_STATES = 50_000
"""States of traces without requests that a partition keeps: late records are known by them."""


@dataclass(slots=True)
class _Known:
    """What this process knows of the partition."""

    generation: int
    commits: int
    purge: int
    taken: set[int] = field(default_factory=set)
    """Forwarded turns that are being processed."""


class _WaitingError(psycopg.OperationalError):
    """A moment ago there was no connection. Why is known since then."""


class PartitionDatabase:
    """For one thread. While the database cannot be reached, nothing is lost: `commit` returns
    `False`.
    """

    def __init__(
        self,
        conninfo: str,
        partition: int,
        evidence: EvidencePolicy | None = None,
        on_commit: Callable[[Transaction, float], None] = lambda kind, seconds: None,
    ) -> None:
        """`on_commit` gets the duration of each commit in seconds."""
        self.reason: str | None = None
        """Why the database cannot be used; for any thread."""
        self._conninfo = conninfo
        self._partition = partition
        self._evidence = EvidenceRows(evidence or EvidencePolicy())
        self._on_commit = on_commit
        self._connection: PostgresConnection | None = None
        self._retry_at = 0.0
        self._drop_states_at = 0.0
        self._known: _Known | None = None

    def claim(self, owner: str) -> Claimed:
        """Take the partition over and read its state; `owner` is a name for people. The next commit
        of its last owner raises `FencedError`. Raises `StoreError`.
        """
        self._known = None
        try:
            connection = self._connected()
            migrate(connection)
            claimed = claim(connection, self._partition, owner)
        except psycopg.Error as error:
            self._fail(error)
            raise StoreError(f"postgres: {error}") from error
        self._known = _Known(claimed.generation, claimed.commits, claimed.purge)
        return claimed

    def commit(self, step: Step) -> bool:
        """Make a step durable, as a whole. After `False` nothing of it is: try again with the same
        step, or with more; before that, read `news`. Raises `FencedError`.
        """
        known, began = self._claimed(), time.monotonic()
        try:
            connection = self._connected()
            done = self._write(connection, known, step)
        except psycopg.Error as error:
            self._fail(error)
            return False
        if done:
            done = self._finish(connection, known)
        if done:
            known.commits += 1
            known.taken.difference_update(step.consumed)
            if self.reason is not None:
                _log.info("PostgreSQL can be used again", partition=self._partition)
            self.reason = None
            self._on_commit("results", time.monotonic() - began)
        return done

    def news(self, *, with_turns: bool = True) -> News:
        """What others have left since the last call; nothing without a connection. Without
        `with_turns`, forwarded turns are left for a later call.
        """
        known = self._claimed()
        try:
            connection = self._connected()
            found = self._turns(connection, known.taken) if with_turns else News()
            purges = purges_after(connection, known.purge)
        except psycopg.Error as error:
            self._fail(error)
            return News()
        known.taken.update(turn.id for turn in found.forwarded)
        known.purge = max((purge.id for purge in purges), default=known.purge)
        return replace(found, purges=purges)

    def purged(self, traces: Iterable[TraceKey]) -> frozenset[TraceKey] | None:
        """Those of the traces that were purged in the last days; `None` if it cannot be read."""
        try:
            connection = self._connected()
            return frozenset(trace for trace in traces if is_purged(connection, trace))
        except psycopg.Error as error:
            self._fail(error)
            return None

    def records(self) -> Sequence[Row]:
        """What all scorers have learnt of agent versions; empty if it cannot be read."""
        try:
            return records_of(self._connected())
        except psycopg.Error as error:
            self._fail(error)
            return ()

    def close(self) -> None:
        """Close the connection. Safe to call twice."""
        self._known = None
        if self._connection is not None:
            self._connection.close()

    def _turns(self, connection: PostgresConnection, taken: Set[int]) -> News:
        """Forwarded turns, and the time of the others. It is read first: what they have forwarded
        until then is visible afterwards.
        """
        reached = others_reached(connection, self._partition)
        turns = forwarded_to(connection, self._partition, taken)
        taken = {*taken, *(turn.id for turn in turns)}
        if turns and has_forwarded(connection, self._partition, taken):
            return News(turns)
        return News(turns, reached=reached)

    def _write(self, connection: PostgresConnection, known: _Known, step: Step) -> bool:
        """Everything but the end of the transaction; `False`: a purge has to be applied first."""
        connection.raw.execute("BEGIN")
        if not self._is_current(connection, known):
            connection.rollback()
            return False
        progress = step.progress
        with connection.pipelined():
            writing.begin(connection, progress.publication)
            writing.lock_turns(connection, progress.outcomes)
            outdated = write_results(connection, progress)
            self._evidence.write(connection, progress, outdated)
            write_changes(connection, progress)
            heads.write(connection, step.heads, progress.changes.released_rows)
            writing.counts(connection, progress.counts)
            writing.records(connection, step.records)
            writing.forwarded(connection, self._partition, progress.changes.forwarded)
            writing.consumed(connection, step.consumed)
            if time.monotonic() >= self._drop_states_at:
                self._drop_states_at = time.monotonic() + DROP_STATES_S
                writing.drop_states(connection, self._partition, KEPT_STATES)
            connection.execute(
                'UPDATE partitions SET commits = commits + 1, "row" = ?, at = ?, offsets = ?::jsonb'
                " WHERE partition = ?",
                (
                    progress.row,
                    progress.at,
                    orjson.dumps(dict(step.offsets)).decode(),
                    self._partition,
                ),
            )
        return True

    def _is_current(self, connection: PostgresConnection, known: _Known) -> bool:
        """Lock the partition. Raises `FencedError` if it is another's; `False`: a purge has to be
        applied first.
        """
        found = connection.execute(
            "SELECT generation, commits, purge FROM partitions WHERE partition = ? FOR UPDATE",
            (self._partition,),
        ).fetchone()
        if found is None or found[:2] != (known.generation, known.commits):
            connection.rollback()
            self._known = None
            raise FencedError(
                f"partition {self._partition} was claimed by another process: found generation"
                f" {found and found[0]}, expected {known.generation}"
            )
        return bool(found[2] <= known.purge)

    def _finish(self, connection: PostgresConnection, known: _Known) -> bool:
        """End the transaction. If the answer is lost, find out whether it has ended."""
        try:
            connection.raw.execute("COMMIT")
        except psycopg.Error as error:
            if not connection.is_broken:
                self._fail(error)
                return False
            _log.warning("the answer to a commit was lost", partition=self._partition)
            return self._has_committed(known)
        return True

    def _has_committed(self, known: _Known) -> bool:
        """Whether the last transaction took place. Waits while the server still works on it."""
        ends = time.monotonic() + SETTLE_S
        while time.monotonic() < ends:
            with suppress(psycopg.Error):
                connection = self._connected()
                with connection.transaction():
                    found = connection.execute(
                        "SELECT generation, commits FROM partitions WHERE partition = ? FOR UPDATE",
                        (self._partition,),
                    ).fetchone()
                if found == (known.generation, known.commits + 1):
                    return True
                if found == (known.generation, known.commits):
                    return False
                break
            time.sleep(max(0.0, self._retry_at - time.monotonic()))
        self._known = None
        raise FencedError(f"partition {self._partition}: the outcome of a commit is unknown")

    def _claimed(self) -> _Known:
        if self._known is None:
            raise FencedError(f"partition {self._partition} is not claimed by this process")
        return self._known

    def _connected(self) -> PostgresConnection:
        """The connection, or a new one if it is broken. Raises `psycopg.Error`."""
        if self._connection is not None:
            self._connection.rollback()
            if not self._connection.is_broken:
                return self._connection
        if time.monotonic() < self._retry_at:
            raise _WaitingError
        self._retry_at = time.monotonic() + RETRY_S
        self._connection = connect(self._conninfo, {"pathgauge.partition": str(self._partition)})
        self._retry_at = 0.0
        return self._connection

    def _fail(self, error: psycopg.Error) -> None:
        if not isinstance(error, _WaitingError):
            self._report(error)
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.rollback()

    def _report(self, error: psycopg.Error) -> None:
        """Only the name of an error that may quote a row: everybody may read the reason."""
        text = str(error).strip()
        if self.reason is None:
            _log.error(
                "PostgreSQL cannot be used; trying again", partition=self._partition, error=text
            )
        is_of_server = isinstance(error, psycopg.OperationalError)
        why = text.partition("\n")[0] if is_of_server else type(error).__name__
        self.reason = f"PostgreSQL cannot be used: {why}"

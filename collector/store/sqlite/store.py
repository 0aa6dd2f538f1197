"""The store on disk: journal and results in one SQLite file, written by one thread.

An acknowledged request was synced to the disk. When the disk is full or fails, requests are refused
and the process keeps running. When the file is damaged, its readable rows are copied into a fresh
one.
"""

from __future__ import annotations

import math
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

from pathgauge.collector.core.evaluations.recent import Recent, Wants
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.traces import Recalled, TraceKey
from pathgauge.collector.store import (
    Deliver,
    Delivery,
    FeedbackOutcome,
    Part,
    Progress,
    Purged,
    Restored,
    Selection,
    StoreError,
    Transaction,
    Usage,
    counts,
    feedback,
    journal,
    outbox,
    results,
    scorer_state,
)
from pathgauge.collector.store.evidence.table import EvidencePolicy, EvidenceRows
from pathgauge.collector.store.purge import choosing
from pathgauge.collector.store.recent_results import WindowBounds, evaluations_since
from pathgauge.collector.store.restore import restore
from pathgauge.collector.store.retention import Cleaning, Removed, Retention
from pathgauge.collector.store.sqlite import damage, files
from pathgauge.collector.store.sqlite.appending import Appending
from pathgauge.collector.store.sqlite.database import RECOVERY_INTERVAL_S, Database
from pathgauge.collector.store.sqlite.purging import Purging
from pathgauge.collector.store.sqlite.reader import MAX_CACHE_BYTES, JournalReader
from pathgauge.collector.store.sqlite.space import Space

_MAX_ATTEMPTS = 2
"""How often reading results is tried; the first try may recover the file."""


MAX_PURGED = 200_000
"""Purged traces that are remembered, so that no feedback about them is stored."""


class SqliteStore:
    """The store in a folder on disk. `Store` documents its methods."""

    durable = True

    def __init__(
        self,
        folder: Path,
        retention: Retention | None = None,
        windows: WindowBounds | None = None,
        on_commit: Callable[[Transaction, float], None] = lambda kind, seconds: None,
        *,
        max_cached_bytes: int = MAX_CACHE_BYTES,
        evidence: EvidencePolicy | None = None,
        part: Part = "whole",
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`on_commit` gets the duration of each successful transaction in seconds.
        `max_cached_bytes` is the size of the requests of the journal that are kept in memory.
        `clock` returns the Unix time from which `recent` looks back.
        """
        self._clock = clock
        self._folder = folder
        self._part = part
        self._retention = retention or Retention()
        self._windows = windows or WindowBounds()
        self._lock: int | None = None
        self._database = Database(folder, on_commit, self._renew_reader)
        self._evidence = EvidenceRows(evidence or EvidencePolicy())
        self._cleaning = Cleaning(self._retention, self._windows, self._evidence.clean)
        self._space = Space(folder, self._database, self._retention.max_bytes)
        self._appending = Appending(folder, self._database, self._space)
        self._writer = self._appending.writer
        self._max_cached_bytes = max_cached_bytes
        self._recovered_at = -math.inf
        self._acknowledged = outbox.Acknowledged()
        self._purging: Purging | None = None
        self._purged: dict[TraceKey, None] = {}

    def open(self) -> Restored:
        """Read what the last process left. A damaged file is recovered first."""
        self._lock = files.lock(self._folder)
        try:
            restored = self._database.open(
                lambda opened: restore(opened, self._database.quarantine)
            )
            if self._part == "scorer" and not outbox.has_numbers(self._database.connection):
                outbox.begin_numbers(self._database.connection)
            self._reader = self._open_reader()
        except sqlite3.Error as error:
            os.close(self._lock)
            raise files.cannot_open(self._folder, error) from error
        except BaseException:
            os.close(self._lock)
            raise
        self._appending.restore(restored)
        self._space.begin(restored.requests, restored.request_bytes)
        return restored

    def recent(self, wants: Wants) -> Iterator[Recent]:
        since, reached = self._clock() - self._windows.max_age_s, math.inf
        for _ in range(_MAX_ATTEMPTS):
            try:
                for row, evaluation in evaluations_since(
                    self._database.connection, since, self._database.quarantine, wants
                ):
                    if row < reached:
                        reached = row
                        yield evaluation
            except sqlite3.Error as error:
                self._database.handle(error)
            else:
                return

    def start(self, deliver: Deliver, now: Callable[[], float]) -> None:
        self._space.measure(now=True)
        self._appending.start(deliver, now)

    async def append(self, batch: Batch) -> bool:
        return await self._appending.append(batch)

    def read(self, after: int) -> Iterable[Delivery]:
        return self._reader.read(after)

    def recall(self, key: TraceKey, rows: Sequence[int]) -> Iterable[Recalled]:
        return self._reader.recall(key, rows)

    def commit(self, progress: Progress) -> bool:
        return self._writer.call(lambda: self._commit(progress))

    def record_feedback(self, answers: Sequence[Answer]) -> Sequence[FeedbackOutcome]:
        """Make answers of people durable; for any thread. Raises `StoreError`."""
        outcomes: list[FeedbackOutcome] = []

        def work(connection: sqlite3.Connection) -> None:
            is_purged = partial(self._is_purged, connection)
            outcomes[:] = feedback.record(connection, answers, time.time(), is_purged)

        def write() -> bool:
            return self._database.in_place() and self._database.transact("feedback", work)

        if not self._appending.running or not self._writer.call(write):
            raise StoreError(f"{self._database.path}: feedback cannot be stored now")
        return outcomes

    def purge(self, selection: Selection, traces: Set[TraceKey] = frozenset()) -> Purged:
        selected = traces if self._part == "scorer" else None
        purged = self._purge(lambda purging: purging.begin(selection, selected))
        self._remember_purged(traces)
        return purged

    def finish_purge(self) -> Purged:
        return self._purge(lambda purging: None)

    def held(self) -> set[TraceKey]:
        """All traces of which anything but results is stored; for any thread."""
        return self._writer.call(lambda: choosing.held(self._database.connection))

    def selected(self, selection: Selection, among: Set[TraceKey]) -> frozenset[TraceKey]:
        """Those of the traces `among` that a purge selects by their results; for any thread."""

        def find() -> frozenset[TraceKey]:
            return frozenset(among & set(choosing.selected(self._database.connection, selection)))

        return self._writer.call(find)

    def acknowledge(self, acknowledged: outbox.Acknowledged) -> None:
        """Delete what others have received of this scorer, with the next commit; for any thread."""
        self._acknowledged = acknowledged

    def quarantine(self, table: outbox.Table, row: int) -> None:
        """Set a damaged row aside that waits for others; for any thread."""

        def work(connection: sqlite3.Connection) -> None:
            self._database.quarantine(table, row, "checksum")

        self._writer.call(lambda: self._database.transact("quarantine", work))

    def horizon(self) -> float:
        return self._appending.horizon()

    def usage(self) -> Usage:
        usage = self._space.usage(self._appending.in_flight)
        return replace(
            usage,
            results_removed=dict(self._cleaning.results_removed),
            feedback_removed=dict(self._cleaning.feedback_removed),
        )

    def close(self) -> None:
        self._appending.stop()
        if self._lock is not None:
            self._reader.close()
            self._database.close()
            os.close(self._lock)
            self._lock = None

    def _purge(self, begin: Callable[[Purging], None]) -> Purged:
        """Finish a purge that was interrupted, then the one that `begin` records."""
        self._reader.close()  # it keeps requests in memory
        try:
            if not self._writer.call(self._database.in_place):
                raise StoreError(
                    f"{self._database.path}: nothing was removed: {self._database.reason}"
                )
            return self._purge_in_place(begin)
        finally:
            if self._database.reason is None:
                self._reader = self._open_reader()

    def _purge_in_place(self, begin: Callable[[Purging], None]) -> Purged:
        since = time.time() - self._windows.max_age_s
        purging = Purging(self._folder, self._database, self._writer.call, since)
        purging.remove()
        self._purging = purging
        try:
            begin(purging)
            purged = purging.remove()
            self._remember_purged(purged.traces)
        except sqlite3.Error as error:
            raise StoreError(f"{self._database.path}: nothing was removed: {error}") from error
        finally:
            self._purging = None
        self._writer.call(self._space.recount)
        return purged

    def _remember_purged(self, traces: Iterable[TraceKey]) -> None:
        """As the pipeline does: until a restart, and not without bounds."""
        self._purged.update(dict.fromkeys(traces))
        for trace in list(islice(self._purged, max(0, len(self._purged) - MAX_PURGED))):
            del self._purged[trace]

    def _is_purged(self, connection: sqlite3.Connection, trace: TraceKey) -> bool:
        """Whether a trace was purged, or is being purged; in the thread of the database."""
        if trace in self._purged:
            return True
        return self._purging is not None and self._purging.holds(connection, trace)

    def _commit(self, progress: Progress) -> bool:
        released, removed = journal.Released(), Removed()

        def work(connection: sqlite3.Connection) -> None:
            nonlocal released, removed
            if self._part != "scorer":
                outdated = results.write_results(connection, progress)
                self._evidence.write(connection, progress, outdated)
            if self._part != "gauge":
                released = scorer_state.write(connection, progress)
            counts.write(connection, progress.counts)
            outbox.write(connection, progress)
            outbox.delete(connection, self._acknowledged)
            removed = self._cleaning.clean(connection, progress.wall, self.usage())

        done = self._database.transact("results", work)
        if not done and self._database.state == "full" and files.give_up_reserve(self._folder):
            done = self._database.transact("results", work, in_reserve=True)
        if done:
            self._space.release(released)
        self._space.measure(now=done and self._cleaning.committed(removed))
        return done

    def _open_reader(self) -> JournalReader:
        return JournalReader(
            self._folder, self._quarantine, self._handle_read_error, self._max_cached_bytes
        )

    def _renew_reader(self) -> None:
        self._reader.renew()
        self._space.expire()

    def _handle_read_error(self, error: sqlite3.Error) -> None:
        """Recover a damaged file. Other errors may pass by themselves."""
        if not damage.is_damage(error) or not self._appending.running:
            return
        if time.monotonic() >= self._recovered_at + RECOVERY_INTERVAL_S:
            self._recovered_at = time.monotonic()
            self._writer.call(lambda: self._database.handle(error))

    def _quarantine(self, row: int, reason: str) -> None:
        self._writer.call(
            lambda: self._database.transact(
                "quarantine", lambda _: self._database.quarantine("journal", row, reason)
            )
        )

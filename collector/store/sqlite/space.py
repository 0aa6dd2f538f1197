"""Measures how much space the store uses and by what, and keeps the reserve for a full disk.

The database file never shrinks: its free pages are used again, and do not count as used. The
write-ahead log counts with its size on the disk.
"""

from __future__ import annotations

import math
import sqlite3
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from pathgauge.collector.store import Usage, journal
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.database import Database
from pathgauge.collector.store.sqlite.journal_space import row_space

_log = structlog.get_logger(__name__)

MEASURE_S = 0.5
"""The shortest time between two measurements."""
REFUSED_S = 10.0
"""How long a refused request shows that the store is full. Otherwise a collector that is not ready
would stay so, if only large requests are refused and none is sent any more.
"""
LOG_S = 60.0
"""The shortest time between two warnings of a full store."""
FULL = "the store has reached store.max_bytes: senders are told to retry until there is space"
_DISK = {
    "full": "the store cannot be written to, its disk is full: senders are told to retry",
    "failed": "the store cannot be written to, its disk fails, and the log says how: senders are"
    " told to retry",
}
_SIZES = ("page_count", "freelist_count", "page_size")


class _Refused(NamedTuple):
    """The last request that did not fit."""

    size: int = 1
    at: float = -math.inf


class Space:
    """`usage` and `fits` may be called by any thread, everything else by the thread of the
    database.
    """

    def __init__(self, folder: Path, database: Database, max_bytes: int) -> None:
        self.requests = 0
        """The number of journal rows."""
        self._request_bytes = 0
        self._folder = folder
        self._database = database
        self._measured = Usage(capacity=max_bytes)
        self._unmeasured = 0
        self._measured_at = -math.inf
        self._quarantined = 0
        self._refused = _Refused()
        self._shown_full = False
        self._shown_at = -math.inf

    def begin(self, requests: int, request_bytes: int) -> None:
        """Begin with so many rows of the journal, which take so much space."""
        self.requests, self._request_bytes = requests, request_bytes

    def expire(self) -> None:
        """Count the rows of the journal with the next measurement: some were lost."""
        self._quarantined = -1

    def usage(self, in_flight: int) -> Usage:
        """The last measurement, with what was added since, and the state of the database."""
        database, measured = self._database, self._measured
        used = measured.used + self._unmeasured
        state, reason = database.state, database.reason or _DISK.get(database.state)
        if state == "ok" and used + in_flight + self._refused_size() > measured.capacity:
            state, reason = "full", FULL
        return replace(
            measured,
            used=used,
            state=state,
            reason=reason,
            in_flight=in_flight,
            quarantined=database.quarantined,
            suspect=database.suspect,
        )

    def fits(self, size: int, in_flight: int) -> bool:
        """Whether there is space for a request of this size. If not, `usage` says that the store is
        full.
        """
        measured = self._measured
        if measured.used + self._unmeasured + in_flight + size <= measured.capacity:
            self._refused = _Refused()
            return True
        self._refused = _Refused(size, time.monotonic())
        return False

    def add(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Count rows of the journal that were written since the last measurement."""
        sizes = [row_space(journal.row_size(row)) for row in rows]
        self.requests += len(sizes)
        self._request_bytes += sum(sizes)
        self._unmeasured += sum(sizes)

    def release(self, released: journal.Released) -> None:
        """Count rows of the journal that were deleted."""
        self.requests -= released.rows
        self._request_bytes -= released.space

    def recount(self) -> None:
        """Count the rows of the journal, and measure at once."""
        self.requests, self._request_bytes = journal.count(self._database.connection)
        self._quarantined = self._database.quarantined
        self.measure(now=True)

    def measure(self, *, now: bool = False) -> None:
        """Measure the files, unless that was done recently and need not be done `now`."""
        if not now and time.monotonic() < self._measured_at + MEASURE_S:
            return
        self._measured_at = time.monotonic()
        if not self._database.in_place():
            return
        connection = self._database.connection
        try:
            if self._quarantined != self._database.quarantined:
                self._quarantined = self._database.quarantined
                self.requests, self._request_bytes = journal.count(connection)
            pages, free, page_bytes = (
                connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _SIZES
            )
        except sqlite3.Error:
            return
        log = self._folder / f"{files.DATABASE}-wal"
        wal_bytes = log.stat().st_size if log.exists() else 0
        live = (pages - free) * page_bytes
        self._unmeasured = 0
        self._measured = replace(
            self._measured,
            used=live + wal_bytes,
            kept=max(0, live - self._request_bytes),
            write_ahead=wal_bytes,
            requests=self.requests,
        )
        self._log_changes()
        if self._database.state == "ok":
            self._make_reserve()

    def _refused_size(self) -> int:
        refused = self._refused
        return refused.size if time.monotonic() < refused.at + REFUSED_S else 1

    def _log_changes(self) -> None:
        usage = self.usage(in_flight=0)
        is_full = usage.reason == FULL
        if is_full and not self._shown_full and time.monotonic() >= self._shown_at + LOG_S:
            self._shown_full, self._shown_at = True, time.monotonic()
            _log.warning(FULL, used=usage.used, max_bytes=usage.capacity, kept=usage.kept)
        elif self._shown_full and not is_full:
            self._shown_full = False
            _log.info("the store has space again", used=usage.used)

    def _make_reserve(self) -> None:
        try:
            if files.free_bytes(self._folder) > 2 * files.RESERVE_BYTES:
                files.make_reserve(self._folder)
        except OSError:
            files.give_up_reserve(self._folder)

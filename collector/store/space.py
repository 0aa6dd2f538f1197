"""Measures how much space the store uses, and keeps the reserve for a full disk."""

from __future__ import annotations

import math
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

from pathgauge.collector.store import Usage, files
from pathgauge.collector.store.database import Database

MEASURE_S = 0.5
"""The shortest time between two measurements."""
_SIZES = ("page_count", "freelist_count", "page_size")


class Space:
    """Only `usage` may be called by any thread, everything else by the thread of the database."""

    def __init__(self, folder: Path, database: Database, max_bytes: int) -> None:
        self.requests = 0
        """The number of journal rows."""
        self._folder = folder
        self._database = database
        self._measured = Usage(capacity=max_bytes)
        self._unmeasured = 0
        self._measured_at = -math.inf

    def usage(self, in_flight: int) -> Usage:
        """The last measurement, with what was added since, and the state of the database."""
        database = self._database
        return replace(
            self._measured,
            used=self._measured.used + self._unmeasured,
            state=database.state,
            reason=database.reason,
            in_flight=in_flight,
            quarantined=database.quarantined,
            suspect=database.suspect,
        )

    def add(self, requests: int, size: int) -> None:
        """Count requests that were written since the last measurement; `size` in bytes."""
        self.requests += requests
        self._unmeasured += size

    def recount(self, connection: sqlite3.Connection) -> None:
        """Count the journal rows, and measure at once."""
        self.requests = connection.execute("SELECT count(*) FROM journal").fetchone()[0]
        self._measured_at = -math.inf
        self.measure()

    def measure(self) -> None:
        """Measure the files, unless that was done recently."""
        if time.monotonic() < self._measured_at + MEASURE_S:
            return
        self._measured_at = time.monotonic()
        if not self._database.in_place():
            return
        connection = self._database.connection
        try:
            pages, free, page_bytes = (
                connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _SIZES
            )
        except sqlite3.Error:
            return
        log = self._folder / f"{files.DATABASE}-wal"
        wal_bytes = log.stat().st_size if log.exists() else 0
        self._unmeasured = 0
        self._measured = replace(
            self._measured,
            used=(pages - free) * page_bytes + wal_bytes,
            write_ahead=wal_bytes,
            requests=self.requests,
        )
        if self._database.state == "ok":
            self._make_reserve()

    def _make_reserve(self) -> None:
        try:
            if files.free_bytes(self._folder) > 2 * files.RESERVE_BYTES:
                files.make_reserve(self._folder)
        except OSError:
            files.give_up_reserve(self._folder)

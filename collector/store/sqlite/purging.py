"""A purge of the database file, in short steps between which requests are stored.

Afterwards no byte of the removed rows is in the file, and its log is empty: SQLite overwrites what
it deletes, and `checkpoints.py` the rest. Only a file in which an earlier version has deleted rows
without overwriting them is rewritten by `VACUUM`, once.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeVar

from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.store import Purged, Selection
from pathgauge.collector.store.purge import choosing, mark, requests, rows
from pathgauge.collector.store.purge.mark import Mark
from pathgauge.collector.store.purge.removed import Removed
from pathgauge.collector.store.purge.requests import Requests
from pathgauge.collector.store.schema import OVERWRITTEN
from pathgauge.collector.store.sql import delete, upsert
from pathgauge.collector.store.sqlite import files, recovery
from pathgauge.collector.store.sqlite.database import Database

_CHOSEN = 5_000
"""Traces that one transaction adds to those that are removed."""
_TRACES = 500
"""Traces, or results, that one transaction removes."""
_CACHE_KIB = 65_536
_REQUESTS = 20
"""Requests that one transaction rewrites."""
_PAGES = 4_096
"""Pages whose gaps are overwritten at once."""
_READER_S = 3.0
"""How long to wait for others to stop reading an earlier state: queries take up to two seconds."""
_RETRY_S = 0.02

T = TypeVar("T")


class Purging:
    """One purge, for any thread but that of the database."""

    def __init__(
        self,
        folder: Path,
        database: Database,
        call: Callable[[Callable[[], object]], object],
        windows_since: float,
    ) -> None:
        """`call` runs a function in the thread of the database, between requests. Windows may hold
        evaluations since the Unix time `windows_since`.
        """
        self._folder = folder
        self._database = database
        self._call = call
        self._windows_since = windows_since
        self._requests = self._damaged = 0
        self._traces: set[TraceKey] = set()
        self._removed = Removed()

    def begin(self, selection: Selection, selected: Iterable[TraceKey] | None) -> None:
        """Record what is removed. `selected` are the traces that the results select, if these are
        in another database. Raises `sqlite3.Error` if nothing was recorded.
        """
        what = Mark(selection.before, with_results=selected is None)
        if selection.tenant is not None:
            what = Mark(time.time(), with_results=False, tenant=selection.tenant)
        self._transact(mark.clear)
        with closing(files.connect_reader(self._folder)) as reader:
            chosen = _chunks(choosing.choose(reader, selection), _CHOSEN)
            for chunk in chosen:
                self._transact(partial(mark.add, traces=chunk))
        for chunk in _chunks(iter(selected or ()), _CHOSEN):
            self._transact(partial(mark.add, traces=chunk))
        self._transact(lambda connection: mark.write(connection, what))

    def remove(self) -> Purged:
        """Remove what was recorded. What fails is tried again by the next purge or start."""
        try:
            with self._at_length():
                unfinished = self._remove()
        except (sqlite3.Error, OSError) as error:
            unfinished = str(error)
        return Purged(
            self._requests,
            self._removed.results,
            self._damaged,
            unfinished,
            frozenset(self._traces | self._removed.traces),
            frozenset(self._removed.evaluations),
        )

    def holds(self, connection: sqlite3.Connection, trace: TraceKey) -> bool:
        """Whether a trace is removed, or was; for the thread of the database."""
        known = trace in self._traces or trace in self._removed.traces
        return known or mark.holds(connection, trace)

    @contextmanager
    def _at_length(self) -> Iterator[None]:
        """Write pages that many transactions change less often, for more memory and disk space."""
        self._in_thread(lambda: self._set(rare=True, cache_kib=_CACHE_KIB))
        try:
            yield
        finally:
            self._in_thread(lambda: self._set(rare=False, cache_kib=files.CACHE_KIB))

    def _set(self, *, rare: bool, cache_kib: int) -> None:
        self._database.checkpoints.rare = rare
        self._database.connection.execute(f"PRAGMA cache_size = {-cache_kib}")

    def _remove(self) -> str | None:
        with closing(files.connect_reader(self._folder)) as reader:
            what = mark.read(reader)
            if what is None:
                return None
            found = requests.find(reader, what, 0)
        self._remove_requests(what, found)
        self._repeat(
            lambda connection: rows.remove_traces(
                connection, self._removed, self._windows_since, _TRACES
            )
        )
        self._repeat(
            lambda connection: rows.remove_old_results(
                connection, what, self._removed, self._windows_since, _TRACES
            )
        )
        self._transact(lambda connection: rows.remove_rest(connection, what, self._removed))
        return self._finish()

    def _remove_requests(self, what: Mark, found: Requests) -> None:
        self._change_requests(found)

        def arrived(connection: sqlite3.Connection) -> None:
            """Requests that were stored in the meantime."""
            more = requests.find(connection, what, found.last)
            self._count(more)
            delete(connection, "journal", more.old + more.damaged)
            self._requests += requests.remove(connection, more.mixed, more.traces)

        self._transact(arrived)

    def _change_requests(self, found: Requests) -> None:
        self._count(found)
        for chunk in _chunks(iter(found.mixed), _REQUESTS):

            def rewrite(connection: sqlite3.Connection, chunk: list[int] = chunk) -> None:
                self._requests += requests.remove(connection, chunk, found.traces)

            self._transact(rewrite)
        for chunk in _chunks(iter(found.old + found.damaged), _TRACES):
            self._transact(partial(delete, table="journal", ids=chunk))

    def _count(self, found: Requests) -> None:
        self._traces |= found.traces
        self._requests += len(found.old)
        self._damaged += len(found.damaged)

    def _finish(self) -> str | None:
        """Remove all bytes of what was removed; returns why that failed, or `None`."""
        self._damaged += recovery.remove_damaged_files(self._folder)
        if not self._is_overwritten():
            self._in_thread(self._rewrite)
        page = 1
        while page and self._database.checkpoints.unknown:
            page = self._in_thread(partial(self._overwrite_from, page))
        until = time.monotonic() + _READER_S
        while not self._in_thread(self._database.checkpoints.empty):
            if time.monotonic() > until:
                return "another process reads the database"
            time.sleep(_RETRY_S)
        self._transact(mark.remove)
        return None

    def _overwrite_from(self, page: int) -> int:
        return self._database.checkpoints.overwrite_from(page, _PAGES)

    def _is_overwritten(self) -> bool:
        with closing(files.connect_reader(self._folder)) as reader:
            select = "SELECT 1 FROM meta WHERE name = ?"
            return reader.execute(select, (OVERWRITTEN,)).fetchone() is not None

    def _rewrite(self) -> None:
        connection = self._database.connection
        connection.execute("VACUUM")
        upsert(connection, "meta", "name, value", "name", [(OVERWRITTEN, 1)])

    def _repeat(self, work: Callable[[sqlite3.Connection], bool]) -> None:
        while self._transact(work):
            pass

    def _transact(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """The result of `work` in a transaction. Raises `sqlite3.Error`."""

        def run() -> T:
            connection = self._database.connection
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            self._database.checkpoints.committed()
            return result

        return self._in_thread(run)

    def _in_thread(self, function: Callable[[], T]) -> T:
        result: list[T] = []
        self._call(lambda: result.append(function()))
        return result[0]


def _chunks(items: Iterator[T], size: int) -> Iterator[list[T]]:
    while chunk := list(islice(items, size)):
        yield chunk

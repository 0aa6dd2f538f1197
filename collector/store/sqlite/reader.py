"""Reads the journal in the pipeline thread, over a connection that cannot write.

Some decoded requests are cached, because traces that arrived together are read together.
"""

from __future__ import annotations

import sqlite3
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import structlog

from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.traces import Recalled, TraceKey
from pathgauge.collector.store import Delivery, StoreError, journal
from pathgauge.collector.store.journal import DamagedError
from pathgauge.collector.store.sqlite import files

_log = structlog.get_logger(__name__)

READ_BYTES = 512 << 10
"""Compressed bytes of the journal that are read at once."""
MAX_CACHE_BYTES = 16 << 20
"""Size of the bodies whose requests are cached."""
_MAX_ATTEMPTS = 10
_RETRY_S = 0.2

_Row: TypeAlias = "tuple[Any, ...]"
_RecordT = TypeVar("_RecordT", Span, LogRecord)


class _Cached(NamedTuple):
    """A decoded request."""

    delivery: Delivery
    spans: Mapping[str, Sequence[Span]]
    """By trace id. A request may have as many traces as spans."""
    logs: Mapping[str, Sequence[LogRecord]]


class JournalReader:
    """For one thread."""

    def __init__(
        self,
        folder: Path,
        quarantine: Callable[[int, str], None],
        handle: Callable[[sqlite3.Error], None],
        max_cached_bytes: int,
    ) -> None:
        """`quarantine` gets the number of a damaged row and the reason; `handle` gets errors of the
        database.
        """
        self._folder = folder
        self._quarantine = quarantine
        self._handle = handle
        self._connection = files.connect_reader(folder)
        self._cache: OrderedDict[int, _Cached] = OrderedDict()
        self._cached_bytes = 0
        self._max_cached_bytes = max_cached_bytes
        self._stale = self._closed = False

    def read(self, after: int) -> Iterator[Delivery]:
        """Some of the requests after row `after`, in order; none at the end of the journal. Raises
        `StoreError` before the first.

        Requests are decoded one at a time: `READ_BYTES` of the journal may become a hundred times
        larger.
        """
        found = False
        while not found and (rows := self._query(journal.read, after, READ_BYTES)):
            for row in rows:
                if (delivery := self._unpacked(row)) is not None:
                    found = True
                    yield delivery
            after = rows[-1][0]

    def recall(self, key: TraceKey, rows: Sequence[int]) -> Iterator[Recalled]:
        """The records of one trace, without damaged rows. Waits while the file cannot be read."""
        tenant, trace_id = key
        for row in rows:
            cached = self._cache.get(row) or self._fetch_or_wait(row)
            if cached is not None and cached.delivery.batch.origin.tenant == tenant:
                spans, logs = cached.spans.get(trace_id, []), cached.logs.get(trace_id, [])
                yield Recalled(cached.delivery.at, spans, logs)

    def renew(self) -> None:
        """Reopen the file before the next query, because it was replaced. For any thread."""
        self._stale = True

    def close(self) -> None:
        """Close the file and clear the cache."""
        self._closed = True
        self._cache.clear()
        self._cached_bytes = 0
        self._connection.close()

    def _fetch_or_wait(self, row: int) -> _Cached | None:
        while True:
            try:
                return self._fetch(row)
            except StoreError:  # giving up would score half of a trace
                if self._closed:
                    return None

    def _fetch(self, row: int) -> _Cached | None:
        found = self._query(journal.fetch, row)
        delivery = self._unpacked(found[0]) if found else None
        if delivery is None:
            return None
        batch = delivery.batch
        cached = self._cache[row] = _Cached(delivery, _by_trace(batch.spans), _by_trace(batch.logs))
        self._cached_bytes += len(batch.body)
        while self._cached_bytes > self._max_cached_bytes and len(self._cache) > 1:
            _, oldest = self._cache.popitem(last=False)
            self._cached_bytes -= len(oldest.delivery.batch.body)
        return cached

    def _unpacked(self, row: _Row) -> Delivery | None:
        try:
            return journal.unpack(row)
        except DamagedError as error:
            self._quarantine(row[0], str(error))
            return None

    def _query(self, read: Callable[..., list[_Row]], *arguments: int) -> list[_Row]:
        for _ in range(_MAX_ATTEMPTS):
            try:
                if self._stale:
                    self._connect()
                return read(self._connection, *arguments)
            except sqlite3.Error as error:
                _log.warning("the journal could not be read, trying again", error=str(error))
                self._stale = True
                self._handle(error)
                time.sleep(_RETRY_S)
        raise StoreError("the journal cannot be read")

    def _connect(self) -> None:
        self._connection.close()
        self._connection = files.connect_reader(self._folder)
        self._stale = False


def _by_trace(records: Sequence[_RecordT]) -> Mapping[str, Sequence[_RecordT]]:
    found: dict[str, list[_RecordT]] = {}
    for record in records:
        found.setdefault(record.trace_id, []).append(record)
    return found

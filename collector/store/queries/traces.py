"""Finds the spans and log records of a trace in the journal, or else rebuilds them from evidence.

The journal holds the requests of a trace until it was read and late spans are no longer accepted.
Evidence is kept for days.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Literal, TypeVar

import orjson

from pathgauge.collector.core.evidence.trace import trace_of
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.store import StoreError, journal
from pathgauge.collector.store.evidence import table as evidence
from pathgauge.collector.store.journal import DamagedError, RowHead
from pathgauge.collector.store.queries.results import of_trace
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import Connection, SharedConnection

MAX_BYTES = 16 << 20
"""Size of the spans and log records of an exported trace."""
MAX_RECORDS = 10_000
"""Spans and log records of an exported trace. Encoding them takes about a second."""
MAX_REQUESTS = 2_000
"""Requests that are decoded for one trace."""
MAX_HEADS = 20_000
"""How many of the newest requests are searched for a trace that is not known yet."""

Source = Literal["journal", "evidence"]
"""`journal`: as it was sent, after redaction. `evidence`: rebuilt from what the results keep."""

_RecordT = TypeVar("_RecordT", bound=Span | LogRecord)


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """The records of one trace."""

    source: Source
    spans: tuple[Span, ...] = ()
    logs: tuple[LogRecord, ...] = ()
    complete: bool = True
    """Whether nothing was left out because it is too much."""


class AmbiguousTraceError(StoreError):
    """Several tenants have a trace with this id. These are different traces."""


def trace(connection: Connection, trace_id: str, tenant: str | None = None) -> StoredTrace | None:
    """A trace of one tenant, or of the only tenant that has it (`None`); `None` if nothing of it is
    kept. Raises `AmbiguousTraceError`.
    """
    if tenant is None:
        _refuse_several_tenants(connection, trace_id)
    return _in_journal(connection, trace_id, tenant) or _rebuilt(connection, trace_id, tenant)


def _in_journal(connection: Connection, trace_id: str, tenant: str | None) -> StoredTrace | None:
    if isinstance(connection, SharedConnection):  # which has no journal: requests are in Kafka
        return None
    numbers = _known_rows(connection, trace_id, tenant) or _searched(connection, trace_id, tenant)
    records = _records(connection, numbers[:MAX_REQUESTS], trace_id, tenant)
    kept, complete = _bounded(records)
    if not kept:
        return None
    return StoredTrace(
        "journal",
        tuple(record for record in kept if isinstance(record, Span)),
        tuple(record for record in kept if isinstance(record, LogRecord)),
        complete and len(numbers) <= MAX_REQUESTS,
    )


def _refuse_several_tenants(connection: Connection, trace_id: str) -> None:
    found = connection.execute(
        "SELECT tenant FROM results WHERE trace_id = ? UNION SELECT tenant FROM traces"
        " WHERE trace_id = ?",
        (trace_id, trace_id),
    ).fetchall()
    names = sorted({name for (name,) in found} or _of_heads(connection, trace_id))
    if len(names) > 1:
        raise AmbiguousTraceError(
            f"trace {trace_id}: found it for the tenants {_list(names)}, expected the name of"
            " one of them"
        )


def _list(tenants: Iterable[str]) -> str:
    return ", ".join(name or '""' for name in tenants)


def _of_heads(connection: Connection, trace_id: str) -> set[str]:
    if isinstance(connection, SharedConnection):
        return set()
    heads = islice(journal.newest_heads(connection), MAX_HEADS)
    return {head.tenant for head in heads if isinstance(head, RowHead) and trace_id in head.traces}


def _known_rows(connection: Connection, trace_id: str, tenant: str | None) -> list[int]:
    """The rows of the journal that the state of the trace names."""
    rows: set[int] = set()
    for *row, crc in connection.execute(
        "SELECT tenant, trace_id, closed, forgotten, known, crc FROM traces WHERE trace_id = ?",
        (trace_id,),
    ):
        if tenant in (None, row[0]) and crc == checksum(*row):
            rows.update(orjson.loads(row[-1])["rows"])
    return sorted(rows)


def _searched(connection: Connection, trace_id: str, tenant: str | None) -> list[int]:
    """The rows of a trace that has only just arrived."""
    heads = islice(journal.newest_heads(connection), MAX_HEADS)
    return sorted(
        head.row
        for head in heads
        if isinstance(head, RowHead) and trace_id in head.traces and tenant in (None, head.tenant)
    )


def _records(
    connection: Connection, rows: Iterable[int], trace_id: str, tenant: str | None
) -> Iterator[Span | LogRecord]:
    for row in rows:
        for values in journal.fetch(connection, row):
            try:
                batch: Batch = journal.unpack(values).batch
            except DamagedError:
                continue
            if tenant in (None, batch.origin.tenant):
                yield from (span for span in batch.spans if span.trace_id == trace_id)
                yield from (log for log in batch.logs if log.trace_id == trace_id)


def _rebuilt(connection: Connection, trace_id: str, tenant: str | None) -> StoredTrace | None:
    found = (
        evidence.find(connection, stored.key)
        for stored in of_trace(connection, trace_id, tenant=tenant)
    )
    known = [one for one in found if one is not None]
    kept, complete = _bounded(span for one in known for span in trace_of(one))
    if not kept:
        return None
    cut = any(one.cut for one in known)
    return StoredTrace("evidence", tuple(kept), complete=complete and not cut)


def _bounded(records: Iterable[_RecordT]) -> tuple[list[_RecordT], bool]:
    """The first records that are not too many, and whether these are all."""
    kept: list[_RecordT] = []
    size = 0
    for record in records:
        size += len(record.raw)
        if size > MAX_BYTES or len(kept) == MAX_RECORDS:
            return kept, False
        kept.append(record)
    return kept, True

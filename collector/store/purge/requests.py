"""Removes traces from the journal: its requests are rewritten without them."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence, Set
from dataclasses import dataclass, field, replace

from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.store import journal
from pathgauge.collector.store.journal import DamagedError, Packer
from pathgauge.collector.store.purge import mark
from pathgauge.collector.store.purge.mark import Mark
from pathgauge.collector.store.sql import delete


@dataclass(slots=True)
class Requests:
    """The requests that a purge changes."""

    last: int = 0
    """The last journal row that was looked at."""
    old: list[int] = field(default_factory=list)
    """Rows that are deleted because of their age."""
    damaged: list[int] = field(default_factory=list)
    """Rows with unknown traces, which are deleted, too."""
    mixed: list[int] = field(default_factory=list)
    """Rows that hold a trace that is removed."""
    traces: set[TraceKey] = field(default_factory=set)
    """The traces that are removed and are in any of the rows."""

    def __len__(self) -> int:
        return len(self.old) + len(self.damaged) + len(self.mixed)


def find(connection: sqlite3.Connection, purge: Mark, after: int) -> Requests:
    """The requests in rows after `after`."""
    found = Requests(after)
    known: dict[TraceKey, bool] = {}
    for head in journal.heads_after(connection, after):
        if isinstance(head, int):
            found.damaged.append(head)
            found.last = head
            continue
        found.last = head.row
        keys = [(head.tenant, trace_id) for trace_id in head.traces]
        for key in keys:
            if key not in known:
                known[key] = mark.holds(connection, key)
        unwanted = [key for key in keys if known[key]]
        found.traces.update(unwanted)
        if purge.removes(head.tenant, head.wall):
            found.old.append(head.row)
        elif unwanted:
            found.mixed.append(head.row)
    return found


def remove(connection: sqlite3.Connection, rows: Sequence[int], unwanted: Set[TraceKey]) -> int:
    """Rewrite these rows without the traces; returns how many there were. Requests that are
    unreadable, or hold nothing else, are deleted.
    """
    packer, empty, requests = Packer(), [], 0
    for row in rows:
        for values in journal.fetch(connection, row):
            requests += 1
            try:
                _, at, batch = journal.unpack(values)
            except DamagedError:
                empty.append(row)
                continue
            rest = _without(batch, unwanted)
            if rest.spans or rest.logs or rest.without_trace:
                journal.rewrite(connection, packer.pack(row, at, wall=values[2], batch=rest))
            else:
                empty.append(row)
    delete(connection, "journal", empty)
    return requests


def _without(batch: Batch, unwanted: Set[TraceKey]) -> Batch:
    tenant = batch.origin.tenant
    spans = tuple(span for span in batch.spans if (tenant, span.trace_id) not in unwanted)
    logs = tuple(log for log in batch.logs if (tenant, log.trace_id) not in unwanted)
    body = encode_request(spans or logs, batch.without_trace, batch.own_events)
    sent_as = batch.sent_as or batch.origin.encoding
    return replace(
        batch,
        origin=batch.origin._replace(encoding="protobuf"),
        sent_as=sent_as,
        body=body,
        spans=spans,
        logs=logs,
    )

"""Finds results, newest first, by the properties that people filter by."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from pathgauge.collector.core.evaluations.label_values import MAX_NAME_BYTES
from pathgauge.collector.store.queries import rows
from pathgauge.collector.store.queries.filter import Filter, is_named, may_match, oldest_of
from pathgauge.collector.store.queries.rows import Looked
from pathgauge.collector.store.queries.stored_result import Row, StoredResult, read
from pathgauge.collector.store.sql import Connection, settled

DEFAULT_LIMIT = 50
MAX_LIMIT = 500
SEARCH_S = 0.05
"""How long one query searches for rows that match. Another one continues where it ended."""
ROWS_BETWEEN_LOOKS = 64
_COLUMNS = ", ".join(Row._fields)


class Page(NamedTuple):
    """Some of the results."""

    results: Sequence[StoredResult]
    next: int | None
    """The cursor of the next query; `None` when there are no more."""
    searched_to: float | None = None
    """Every newer result was looked at, in Unix seconds; `None` without a `next`."""


def find(
    connection: Connection,
    wanted: Filter,
    limit: int = DEFAULT_LIMIT,
    before: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Page:
    """The newest results, those before the cursor `before`. A page may have fewer results than
    `limit`, even none, although there are more.
    """
    deadline = clock() + SEARCH_S
    oldest = oldest_of(connection, wanted)
    found: list[StoredResult] = []
    for number, row in enumerate(rows.search(connection, wanted, before), 1):
        is_look = isinstance(row, Looked) or number % ROWS_BETWEEN_LOOKS == 0
        if isinstance(row, Row):
            if row.at < oldest:
                break
            result = read(row) if may_match(row, wanted) else None
            if result is not None and _matches(result, wanted):
                found.append(result)
        if len(found) == limit or (is_look and clock() > deadline):
            return Page(found, row.id, _stored_at(connection, row.id))
    return Page(found, None)


def after(connection: Connection, wanted: Filter, row: int, limit: int) -> Page:
    """The results after the cursor `row`, the oldest first; `next` is the cursor for what follows
    and never `None`.
    """
    select = f"SELECT {_COLUMNS} FROM results WHERE id > ? AND id <= ? ORDER BY id LIMIT ?"
    found, last = [], row
    values = row, settled(connection), limit
    for one in map(Row._make, connection.execute(select, values)):
        last = one.id
        result = read(one) if may_match(one, wanted) else None
        if result is not None and _matches(result, wanted):
            found.append(result)
    return Page(found, last)


def newest(connection: Connection) -> int:
    """The cursor after which only new results follow."""
    [row] = connection.execute("SELECT coalesce(max(id), 0) FROM results").fetchone()
    return min(int(row), settled(connection))


def of_trace(
    connection: Connection,
    trace_id: str,
    span_id: str | None = None,
    tenant: str | None = None,
) -> list[StoredResult]:
    """The results of a trace, or of one of its invocations, in the order of their storage."""
    found = [
        result
        for row in rows.rows(connection, Filter(trace_id=trace_id), None)
        if span_id in (None, row.span_id)
        and tenant in (None, row.tenant)
        and (result := read(row)) is not None
    ]
    return found[::-1]


def _stored_at(connection: Connection, row: int) -> float | None:
    found = connection.execute(
        "SELECT at FROM results WHERE id >= ? ORDER BY id LIMIT 1", (row,)
    ).fetchone()
    return found[0] if found else None


def _matches(result: StoredResult, wanted: Filter) -> bool:
    if not is_named(result.agent_version, wanted.version, MAX_NAME_BYTES):
        return False
    if wanted.flag is not None and wanted.flag not in result.flags:
        return False
    if wanted.criterion is None:
        return wanted.reason is None or wanted.reason in (
            result.unmatched,
            *(one.reason for one in result.criteria),
        )
    return any(
        one.name == wanted.criterion
        and wanted.verdict in (None, one.verdict)
        and wanted.reason in (None, one.reason)
        for one in result.criteria
    )

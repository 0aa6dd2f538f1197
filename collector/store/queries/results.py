"""Finds results, newest first, by the properties that people filter by."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pathgauge.collector.core.evaluations.evaluator import VERDICTS, Verdict
from pathgauge.collector.core.evidence.failures import Category
from pathgauge.collector.store.queries.stored_result import Row, StoredResult, read
from pathgauge.collector.store.sql import (
    MAX_ID,
    Connection,
    Query,
    SharedConnection,
    max_skew_s,
    newest_first,
    settled,
)

DEFAULT_LIMIT = 50
MAX_LIMIT = 500
SEARCH_S = 0.05
"""How long one query searches for rows that match. Another one continues where it ended."""
ROWS_BETWEEN_LOOKS = 64
_NEWEST = MAX_ID
_COLUMNS = ", ".join(Row._fields)
_MAX_TENANTS = 1_000


@dataclass(frozen=True, slots=True)
class Filter:
    """Which results are wanted; `None` accepts all."""

    tenant: str | None = None
    agent: str | None = None
    scenario: str | None = None
    criterion: str | None = None
    """A criterion that the result has. With `verdict`, one that has this verdict; with `reason`,
    one that has this reason.
    """
    verdict: Verdict | None = None
    since: float | None = None
    """Unix seconds, included."""
    until: float | None = None
    """Unix seconds, not included."""
    version: str | None = None
    """Of the agent."""
    category: Category | None = None
    signature: str | None = None
    reason: str | None = None
    """Why a criterion has no value, or why there is no reference."""
    flag: str | None = None
    trace_id: str | None = None


class Page(NamedTuple):
    """Some of the results."""

    results: Sequence[StoredResult]
    next: int | None
    """The cursor of the next query; `None` when there are no more."""


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
    for number, row in enumerate(rows(connection, wanted, before), 1):
        if row.at < oldest:
            return Page(found, None)
        if may_match(row, wanted):
            result = read(row)
            if result is not None and _matches(result, wanted):
                found.append(result)
        if len(found) == limit or (number % ROWS_BETWEEN_LOOKS == 0 and clock() > deadline):
            return Page(found, row.id)
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
    every = rows(connection, Filter(trace_id=trace_id), None)
    found = [
        result
        for row in every
        if span_id in (None, row.span_id)
        and tenant in (None, row.tenant)
        and (result := read(row)) is not None
    ]
    return found[::-1]


def rows(connection: Connection, wanted: Filter, before: int | None) -> Iterator[Row]:
    """The rows, newest first, of the index that leaves the fewest. All other conditions are
    checked row by row, so that a search can stop anywhere.
    """
    upper = _NEWEST if before is None else before
    if wanted.until is not None:
        upper = min(upper, _first_at(connection, wanted.until + max_skew_s(connection)))
    if wanted.trace_id is not None:
        # Few rows. `+id` keeps databases from reading all others in the order of `id`.
        return _stream(connection, _query("", {"trace_id": wanted.trace_id}, upper, "+id"))
    return _stream(connection, *_queries(connection, wanted, upper))


def _queries(connection: Connection, wanted: Filter, upper: int) -> list[Query]:
    every = tenants(connection)
    among = every if wanted.tenant is None else [wanted.tenant]
    verdicts = _verdicts(wanted)
    if len(verdicts) > 1 and wanted.scenario is None and among == every:
        return [_query("NOT INDEXED", {}, upper)]
    agent, name = wanted.agent, wanted.scenario
    if len(verdicts) > 1 and len(among) == 1 and agent is not None and name is not None:
        series = {"tenant": among[0], "agent": agent, "scenario": name}
        return [_query("INDEXED BY results_by_series", series, upper)]
    index, scenario = "INDEXED BY results_by_verdict", {}
    if wanted.scenario is not None:
        index, scenario = "INDEXED BY results_by_scenario", {"scenario": wanted.scenario}
    owners = [{"tenant": tenant} for tenant in among]
    if wanted.tenant is None and isinstance(connection, SharedConnection):
        owners = [{}]  # PostgreSQL has an index for all tenants
    return [
        _query(index, {**owner, **scenario, "verdict": verdict}, upper)
        for owner in owners
        for verdict in verdicts
    ]


def tenants(connection: Connection) -> list[str]:
    """The tenants that have results. An index has them first, so only its jumps are read."""
    found = connection.execute(
        "WITH RECURSIVE found(name) AS (SELECT min(tenant) FROM results UNION ALL"
        " SELECT (SELECT min(tenant) FROM results WHERE tenant > name) FROM found"
        " WHERE name IS NOT NULL) SELECT name FROM found WHERE name IS NOT NULL LIMIT ?",
        (_MAX_TENANTS,),
    )
    return [name for (name,) in found]


def _query(index: str, columns: Mapping[str, str], upper: int, order: str = "id") -> Query:
    where = "".join(f" AND {name} = ?" for name in columns)
    return Query(
        f"SELECT {_COLUMNS} FROM results {index} WHERE id < ?{where} ORDER BY {order} DESC",
        (upper, *columns.values()),
    )


def _stream(connection: Connection, *queries: Query) -> Iterator[Row]:
    return map(Row._make, newest_first(connection, queries))


def _verdicts(wanted: Filter) -> Sequence[Verdict]:
    """The verdicts on an invocation that can match. That of a criterion need not be the worst."""
    if wanted.category is not None or wanted.signature is not None or wanted.verdict == "failed":
        return ("failed",)
    if wanted.verdict is not None and wanted.criterion is None:
        return (wanted.verdict,)
    return VERDICTS


def _first_at(connection: Connection, until: float) -> int:
    """The key of the first row that was stored at this time or later."""
    found = connection.execute(
        "SELECT id FROM results WHERE at >= ? ORDER BY at LIMIT 1", (until,)
    ).fetchone()
    return found[0] if found else _NEWEST


def may_match(row: Row, wanted: Filter) -> bool:
    """Whether the columns match, without the body."""
    return (
        bool(row.verdict)
        and not row.withdrawn
        and wanted.tenant in (None, row.tenant)
        and wanted.agent in (None, row.agent)
        and wanted.scenario in (None, row.scenario)
        and wanted.category in (None, row.category)
        and wanted.signature in (None, row.signature)
        and (wanted.verdict in (None, row.verdict) or wanted.criterion is not None)
        and (wanted.until is None or row.at < wanted.until)
        and (wanted.since is None or row.at >= wanted.since)
    )


def oldest_of(connection: Connection, wanted: Filter) -> float:
    """The Unix time before which no row can match; a search ends there."""
    return -math.inf if wanted.since is None else wanted.since - max_skew_s(connection)


def _matches(result: StoredResult, wanted: Filter) -> bool:
    if wanted.version not in (None, result.agent_version):
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

"""Finds results, newest first, by the properties that people filter by."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pathgauge.collector.core.evaluations.evaluator import Verdict
from pathgauge.collector.core.evidence.failures import Category
from pathgauge.collector.store.queries.stored_result import Row, StoredResult, read

DEFAULT_LIMIT = 50
MAX_LIMIT = 500
SEARCH_S = 0.05
"""How long one query searches for rows that match. Another one continues where it ended."""
ROWS_BETWEEN_LOOKS = 64
_NEWEST = 2**63 - 1


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
    connection: sqlite3.Connection,
    wanted: Filter,
    limit: int = DEFAULT_LIMIT,
    before: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Page:
    """The newest results, those before the cursor `before`. A page may have fewer results than
    `limit`, even none, although there are more.
    """
    deadline = clock() + SEARCH_S
    found: list[StoredResult] = []
    for number, row in enumerate(rows(connection, wanted, before), 1):
        if wanted.since is not None and row.at < wanted.since:
            return Page(found, None)
        if may_match(row, wanted):
            result = read(row)
            if result is not None and _matches(result, wanted):
                found.append(result)
        if len(found) == limit or (number % ROWS_BETWEEN_LOOKS == 0 and clock() > deadline):
            return Page(found, row.id)
    return Page(found, None)


def after(connection: sqlite3.Connection, wanted: Filter, row: int, limit: int) -> Page:
    """The results after the cursor `row`, the oldest first; `next` is the cursor for what follows
    and never `None`.
    """
    select = f"SELECT {', '.join(Row._fields)} FROM results WHERE id > ? ORDER BY id LIMIT ?"
    found, last = [], row
    for one in map(Row._make, connection.execute(select, (row, limit))):
        last = one.id
        result = read(one) if may_match(one, wanted) else None
        if result is not None and _matches(result, wanted):
            found.append(result)
    return Page(found, last)


def newest(connection: sqlite3.Connection) -> int:
    """The cursor after which only new results follow."""
    [row] = connection.execute("SELECT ifnull(max(id), 0) FROM results").fetchone()
    return int(row)


def of_trace(
    connection: sqlite3.Connection,
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


def rows(connection: sqlite3.Connection, wanted: Filter, before: int | None) -> Iterator[Row]:
    """The rows, newest first, of the index that leaves the fewest. All other conditions are
    checked row by row, so that a search can stop anywhere.
    """
    upper = _NEWEST if before is None else before
    if wanted.until is not None:
        upper = min(upper, _first_at(connection, wanted.until))
    if wanted.tenant is None:
        wanted = replace(wanted, tenant=_only_tenant(connection))
    index, conditions = _index(wanted)
    select = f"SELECT {', '.join(Row._fields)} FROM results {index} WHERE id < ?"
    where = "".join(f" AND {name} = ?" for name in conditions)
    values = (upper, *conditions.values())
    return map(Row._make, connection.execute(f"{select}{where} ORDER BY id DESC", values))


def _only_tenant(connection: sqlite3.Connection) -> str | None:
    """The tenant of all results; `None` if there are several. An index has it first."""
    [first] = connection.execute("SELECT min(tenant) FROM results").fetchone()
    [last] = connection.execute("SELECT max(tenant) FROM results").fetchone()
    return first if first == last else None


def _index(wanted: Filter) -> tuple[str, Mapping[str, str]]:
    """The index to use, and the values of its columns."""
    if wanted.trace_id is not None:
        return "", {"trace_id": wanted.trace_id}
    if wanted.category is not None or wanted.signature is not None or wanted.verdict == "failed":
        return "INDEXED BY results_by_verdict", {"verdict": "failed"}
    if wanted.verdict is not None and wanted.criterion is None:
        return "INDEXED BY results_by_verdict", {"verdict": wanted.verdict}
    series = {"tenant": wanted.tenant, "agent": wanted.agent, "scenario": wanted.scenario}
    known = {name: value for name, value in series.items() if value is not None}
    if len(known) == len(series):
        return "INDEXED BY results_by_series", known
    return "NOT INDEXED", {}


def _first_at(connection: sqlite3.Connection, until: float) -> int:
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
    )


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

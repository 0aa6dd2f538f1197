"""Finds results, newest first, by the properties that people filter by."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import orjson

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey, Verdict
from pathgauge.collector.core.evidence.failures import Category
from pathgauge.collector.store.schema import checksum
from pathgauge.scorers.authoring.extras import seconds
from pathgauge.scorers.types import Json

DEFAULT_LIMIT = 50
MAX_LIMIT = 500
SEARCH_S = 0.05
"""How long one query searches for rows that match. Another one continues where it ended."""
_ROWS_BETWEEN_LOOKS = 64
_NEWEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """What one criterion said."""

    name: str
    scorer: str
    """Name and version."""
    verdict: Verdict
    value: float | None
    threshold: float | None
    reason: str | None
    """Why there is no value."""
    judge: str = ""


@dataclass(frozen=True, slots=True)
class StoredResult:
    """One result, without its evidence."""

    row: int
    """Grows with time; a cursor for the next query."""
    tenant: str
    trace_id: str
    span_id: str
    at: float
    """When it was stored, in Unix seconds."""
    agent: str | None
    agent_version: str | None
    scenario_id: str | None
    verdict: Verdict
    category: Category | None
    signature: str | None
    """What failed, in one line; see `Failure`."""
    reference_version: str | None
    unmatched: str | None
    """Why there is no reference turn."""
    flags: tuple[str, ...]
    duration_s: float | None
    criteria: tuple[CriterionResult, ...]
    revision: int = 0

    @property
    def key(self) -> EvaluationKey:
        """The identity of the evaluated invocation."""
        return self.tenant, self.trace_id, self.span_id


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
    for number, row in enumerate(_rows(connection, wanted, before), 1):
        if wanted.since is not None and row.at < wanted.since:
            return Page(found, None)
        if _may_match(row, wanted):
            result = _result(row)
            if result is not None and _matches(result, wanted):
                found.append(result)
        if len(found) == limit or (number % _ROWS_BETWEEN_LOOKS == 0 and clock() > deadline):
            return Page(found, row.id)
    return Page(found, None)


def after(connection: sqlite3.Connection, wanted: Filter, row: int, limit: int) -> Page:
    """The results after the cursor `row`, the oldest first; `next` is the cursor for what follows
    and never `None`.
    """
    select = f"SELECT {', '.join(_Row._fields)} FROM results WHERE id > ? ORDER BY id LIMIT ?"
    found, last = [], row
    for one in map(_Row._make, connection.execute(select, (row, limit))):
        last = one.id
        result = _result(one) if _may_match(one, wanted) else None
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
    rows = _rows(connection, Filter(trace_id=trace_id), None)
    found = [
        result
        for row in rows
        if span_id in (None, row.span_id)
        and tenant in (None, row.tenant)
        and (result := _result(row)) is not None
    ]
    return found[::-1]


class _Row(NamedTuple):
    id: int
    tenant: str
    trace_id: str
    span_id: str
    revision: int
    at: float
    agent: str
    scenario: str
    body: str
    crc: int
    withdrawn: int
    verdict: str
    category: str
    signature: str


def _rows(connection: sqlite3.Connection, wanted: Filter, before: int | None) -> Iterator[_Row]:
    """The rows, newest first, of the index that leaves the fewest. All other conditions are
    checked row by row, so that a search can stop anywhere.
    """
    upper = _NEWEST if before is None else before
    if wanted.until is not None:
        upper = min(upper, _first_at(connection, wanted.until))
    if wanted.tenant is None:
        wanted = replace(wanted, tenant=_only_tenant(connection))
    index, conditions = _index(wanted)
    select = f"SELECT {', '.join(_Row._fields)} FROM results {index} WHERE id < ?"
    where = "".join(f" AND {name} = ?" for name in conditions)
    values = (upper, *conditions.values())
    return map(_Row._make, connection.execute(f"{select}{where} ORDER BY id DESC", values))


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


def _may_match(row: _Row, wanted: Filter) -> bool:
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


def _result(row: _Row) -> StoredResult | None:
    """`None` for a damaged row."""
    if row.withdrawn or not row.verdict or row.crc != checksum(*row[1:9]):
        return None
    body: dict[str, Json] = orjson.loads(row.body)
    start, end = body["start_ns"], body["end_ns"]
    category, signature = body.get("failure") or (None, None)
    return StoredResult(
        row.id,
        row.tenant,
        row.trace_id,
        row.span_id,
        row.at,
        row.agent or None,
        body["agent_version"],
        row.scenario or None,
        body["verdict"],
        category,
        signature,
        body["reference"],
        body["unmatched"],
        tuple(body["flags"]),
        seconds(start, end),
        tuple(map(_criterion, body["criteria"])),
        row.revision,
    )


def _criterion(one: dict[str, Json]) -> CriterionResult:
    return CriterionResult(
        one["name"],
        one["scorer"],
        one["verdict"],
        one["value"],
        one["threshold"],
        one["reason"],
        one.get("judge", ""),
    )


class Runs(NamedTuple):
    """Which scenarios were run."""

    last: Mapping[str, float]
    """Unix seconds of the last run of each scenario that was run."""
    matched: int
    """How many of the last `invocations` had a reference."""
    invocations: int


_LAST_INVOCATIONS = 500


def last_runs(connection: sqlite3.Connection, tenant: str | None = None) -> Runs:
    """When each scenario was last run against a reference."""
    last: dict[str, float] = {}
    matched = invocations = 0
    deadline = time.monotonic() + SEARCH_S
    for number, row in enumerate(_rows(connection, Filter(tenant=tenant), None), 1):
        if number % _ROWS_BETWEEN_LOOKS == 0 and time.monotonic() > deadline:
            break
        if not _may_match(row, Filter(tenant=tenant)):
            continue
        has_reference = '"unmatched":null' in row.body
        if invocations < _LAST_INVOCATIONS:
            invocations += 1
            matched += has_reference
        if has_reference:
            last.setdefault(row.scenario, row.at)
    return Runs(last, matched, invocations)

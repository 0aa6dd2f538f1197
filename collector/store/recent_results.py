"""Reads the results that windows of recent scores need after a restart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple

import orjson

from pathgauge.collector.core.evaluations.windows import Recent, Wants
from pathgauge.collector.store.restore import Quarantine, Tables
from pathgauge.collector.store.sql import MAX_KEYS, Connection, each, max_skew_s

MAX_RESULTS = 300_000
"""How many results are looked at to fill windows. They take a second, and senders do not wait much
longer.
"""
_HEAD = "id, tenant, trace_id, span_id, revision, at, agent, scenario"
_TYPES = (int, str, str, str, int, float, str, str)
_EVALUATION = "tenant, trace_id, span_id, revision, at, agent, scenario, body"


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """How far back the windows of recent scores reach."""

    max_age_s: float = 3600.0


class _Found(NamedTuple):
    """An evaluation that a window may hold."""

    row: int
    """The key of its first revision."""
    newest: int
    """The key of its newest one."""
    at: float


def evaluations_since(
    connection: Connection,
    since: float,
    quarantine: Quarantine,
    wants: Wants,
    published: str = "",
) -> Iterator[tuple[int, Recent]]:
    """The evaluations that were first recorded at the Unix time `since` or later, newest first,
    each with the key of its row. An evaluation has the values of its newest revision. `published`
    is a further condition.

    There may be a million, of which windows hold few. So most are not read whole.
    """
    found = _find(connection, since, wants, published)
    while chunk := list(islice(found, MAX_KEYS)):
        rows = [key for one in chunk for key in dict.fromkeys((one.newest, one.row))]
        tables = Tables(connection, quarantine, f"WHERE id IN ({','.join('?' * len(rows))})")
        whole = dict(tables.rows("results", _EVALUATION, values=rows))
        for one in chunk:
            evaluation = whole.get(one.newest) or whole.get(one.row)
            if evaluation is not None:
                yield one.row, _recent(evaluation, one.at)


def _find(connection: Connection, since: float, wants: Wants, published: str) -> Iterator[_Found]:
    reached = since - max_skew_s(connection)
    # Newest revisions whose first one has not been reached yet.
    newest: dict[tuple[str, str, str], int] = {}
    select = f"SELECT {_HEAD} FROM results WHERE withdrawn = 0 {published} ORDER BY id DESC"
    for columns in each(connection, f"{select} LIMIT {MAX_RESULTS}"):
        if tuple(map(type, columns)) != _TYPES:
            row = columns[0]
            yield _Found(row, row, since)  # damaged: its checksum will tell
            continue
        row, tenant, trace_id, span_id, revision, at, agent, scenario = columns
        if at < reached:
            break
        if at < since:
            continue
        if revision > 0:
            newest.setdefault((tenant, trace_id, span_id), row)
            continue
        # A revision may have other names and more scores than anybody has counted.
        revised = newest.pop((tenant, trace_id, span_id), None) if newest else None
        if revised is not None or wants(tenant, agent, scenario):
            yield _Found(row, row if revised is None else revised, at)


def _recent(evaluation: Sequence[Any], at: float) -> Recent:
    tenant, trace_id, span_id, _, _, agent, scenario, text = evaluation
    body = orjson.loads(text)
    scored = [result for result in body["criteria"] if result["value"] is not None]
    return Recent(
        (tenant, trace_id, span_id),
        agent,
        scenario,
        body["reference"],
        at,
        {result["name"]: result["value"] for result in scored},
        body["agent_version"],
        {result["name"]: result["judge"] for result in scored if "judge" in result},
    )

"""Groups failures by what failed: the same signature is the same kind of failure."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pathgauge.collector.core.evidence.failures import Category
from pathgauge.collector.store.queries.results import Filter

_COLUMNS = "id, tenant, agent, scenario, category, signature, at, trace_id, span_id, withdrawn"
MAX_FAILURES = 10_000
"""How many of the newest failures are grouped."""
MAX_CLUSTERS = 200


@dataclass(frozen=True, slots=True)
class Cluster:
    """The failures with the same agent, scenario and signature."""

    tenant: str
    agent: str | None
    scenario_id: str | None
    category: Category
    signature: str
    failures: int
    first_at: float
    """Unix seconds."""
    last_at: float
    trace_id: str
    """The newest of them."""
    span_id: str


class Clusters(NamedTuple):
    """The largest clusters, the largest first."""

    clusters: Sequence[Cluster]
    failures: int
    """How many failures were grouped, also in clusters that are left out."""
    complete: bool
    """Whether these were all failures that were asked for."""


def clusters(connection: sqlite3.Connection, wanted: Filter) -> Clusters:
    """Group the newest failures. Of the filter, tenant, agent, scenario, category, signature, since
    and until count.
    """
    conditions, values = ["withdrawn = 0"], []
    for name in ("tenant", "agent", "scenario", "category", "signature"):
        if (value := getattr(wanted, name)) is not None:
            conditions.append(f"{name} = ?")
            values.append(value)
    for time, comparison in ((wanted.since, ">="), (wanted.until, "<")):
        if time is not None:
            conditions.append(f"at {comparison} ?")
            values.append(time)
    # With max(id), SQLite takes the other columns from the row with the highest id.
    rows = connection.execute(
        "SELECT tenant, agent, scenario, category, signature, count(*), min(at), max(at), trace_id,"
        f" span_id, max(id) FROM (SELECT {_COLUMNS} FROM results INDEXED BY results_by_verdict"
        " WHERE verdict = 'failed' ORDER BY id DESC LIMIT ?)"
        f" WHERE {' AND '.join(conditions)} GROUP BY tenant, agent, scenario, signature"
        " ORDER BY count(*) DESC, max(id) DESC",
        (MAX_FAILURES, *values),
    ).fetchall()
    return Clusters(
        [
            Cluster(row[0], row[1] or None, row[2] or None, *row[3:10])
            for row in rows[:MAX_CLUSTERS]
        ],
        sum(row[5] for row in rows),
        _complete(connection, wanted.since),
    )


def _complete(connection: sqlite3.Connection, since: float | None) -> bool:
    """Whether no failure that was asked for is older than those that were grouped."""
    next_older = connection.execute(
        "SELECT at FROM results INDEXED BY results_by_verdict WHERE verdict = 'failed'"
        " ORDER BY id DESC LIMIT 1 OFFSET ?",
        (MAX_FAILURES,),
    ).fetchone()
    return next_older is None or (since is not None and next_older[0] < since)

"""When each scenario was last run, and how many of the newest invocations had a reference."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import NamedTuple

from pathgauge.collector.core.evaluations.evaluator import VERDICTS
from pathgauge.collector.store.queries.results import Filter, may_match, rows, tenants
from pathgauge.collector.store.queries.stored_result import Row
from pathgauge.collector.store.schema import name_of

_LAST_INVOCATIONS = 500
_SEARCH_S = 0.1


class Runs(NamedTuple):
    """Which scenarios were run."""

    last: Mapping[str, float]
    """Unix seconds of the last run of each scenario that was run."""
    matched: int
    """How many of the last `invocations` had a reference."""
    invocations: int
    complete: bool = True
    """Whether all scenarios were looked for."""


def last_runs(connection: sqlite3.Connection, tenant: str | None, scenarios: Iterable[str]) -> Runs:
    """When each of these scenarios was last run."""
    among = tenants(connection) if tenant is None else [tenant]
    deadline = time.monotonic() + _SEARCH_S
    newest = list(islice(_recent(connection, tenant), _LAST_INVOCATIONS))
    matched = sum('"unmatched":null' in row.body for row in newest)
    last: dict[str, float] = {}
    for scenario in scenarios:
        if time.monotonic() > deadline:
            return Runs(last, matched, len(newest), complete=False)
        if at := [at for one in among for at in _times(connection, one, scenario)]:
            last[scenario] = max(at)
    return Runs(last, matched, len(newest))


def _recent(connection: sqlite3.Connection, tenant: str | None) -> Iterator[Row]:
    wanted = Filter(tenant=tenant)
    return (row for row in rows(connection, wanted, None) if may_match(row, wanted))


def _times(connection: sqlite3.Connection, tenant: str, scenario: str) -> Iterator[float]:
    """When the newest run with each verdict was stored."""
    for verdict in VERDICTS:
        found = connection.execute(
            "SELECT at FROM results INDEXED BY results_by_scenario WHERE tenant = ?"
            " AND scenario = ? AND verdict = ? ORDER BY id DESC LIMIT 1",
            (tenant, name_of(scenario), verdict),
        ).fetchone()
        if found is not None:
            yield found[0]

"""When each scenario was last run, and how many of the newest invocations had a reference."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, product
from typing import NamedTuple

from pathgauge.collector.store.queries.filter import Filter, may_match
from pathgauge.collector.store.queries.rows import rows, tenants, verdicts
from pathgauge.collector.store.queries.stored_result import Row
from pathgauge.collector.store.schema import name_of
from pathgauge.collector.store.sql import Connection, with_keys

_LAST_INVOCATIONS = 500
_SEARCH_S = 0.1
_AT_ONCE = 16
"""Scenarios between two looks at the clock."""


class Runs(NamedTuple):
    """Which scenarios were run."""

    last: Mapping[str, float]
    """Unix seconds of the last run of each scenario that was run."""
    matched: int
    """How many of the last `invocations` had a reference."""
    invocations: int
    complete: bool = True
    """Whether all scenarios were looked for."""


def last_runs(connection: Connection, tenant: str | None, scenarios: Iterable[str]) -> Runs:
    """When each of these scenarios was last run."""
    among = verdicts(connection, tenants(connection) if tenant is None else [tenant])
    deadline = time.monotonic() + _SEARCH_S
    newest = list(islice(_recent(connection, tenant), _LAST_INVOCATIONS))
    matched = sum('"unmatched":null' in row.body for row in newest)
    last: dict[str, float] = {}
    wanted = list(scenarios)
    for start in range(0, len(wanted), _AT_ONCE):
        if time.monotonic() > deadline:
            return Runs(last, matched, len(newest), complete=False)
        some = wanted[start : start + _AT_ONCE]
        found = _last(connection, among, {name_of(scenario) for scenario in some})
        last |= {one: found[name_of(one)] for one in some if name_of(one) in found}
    return Runs(last, matched, len(newest))


def _recent(connection: Connection, tenant: str | None) -> Iterator[Row]:
    wanted = Filter(tenant=tenant)
    return (row for row in rows(connection, wanted, None) if may_match(row, wanted))


def _last(
    connection: Connection, among: Iterable[tuple[str | None, str]], scenarios: Iterable[str]
) -> dict[str, float]:
    """When the newest run of each scenario was stored, with any of these verdicts of tenants. The
    index has the verdict before the order of storage.
    """
    keys = [(tenant, one, verdict) for (tenant, verdict), one in product(among, scenarios)]
    last: dict[str, float] = {}
    found = with_keys(
        connection,
        "tenant, scenario, verdict",
        keys,
        "SELECT scenario, (SELECT r.at FROM results AS r INDEXED BY results_by_scenario"
        " WHERE r.tenant = keys.tenant AND r.scenario = keys.scenario"
        " AND r.verdict = keys.verdict ORDER BY r.id DESC LIMIT 1) FROM keys",
    )
    for scenario, at in found:
        if at is not None:
            last[scenario] = max(at, last.get(scenario, at))
    return last

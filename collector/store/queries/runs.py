"""When each scenario was last run, and how many of the newest invocations had a reference."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Mapping
from typing import NamedTuple

from pathgauge.collector.store.queries.results import (
    ROWS_BETWEEN_LOOKS,
    SEARCH_S,
    Filter,
    may_match,
    rows,
)

_LAST_INVOCATIONS = 500


class Runs(NamedTuple):
    """Which scenarios were run."""

    last: Mapping[str, float]
    """Unix seconds of the last run of each scenario that was run."""
    matched: int
    """How many of the last `invocations` had a reference."""
    invocations: int


def last_runs(connection: sqlite3.Connection, tenant: str | None = None) -> Runs:
    """When each scenario was last run against a reference."""
    last: dict[str, float] = {}
    matched = invocations = 0
    deadline = time.monotonic() + SEARCH_S
    for number, row in enumerate(rows(connection, Filter(tenant=tenant), None), 1):
        if number % ROWS_BETWEEN_LOOKS == 0 and time.monotonic() > deadline:
            break
        if not may_match(row, Filter(tenant=tenant)):
            continue
        has_reference = '"unmatched":null' in row.body
        if invocations < _LAST_INVOCATIONS:
            invocations += 1
            matched += has_reference
        if has_reference:
            last.setdefault(row.scenario, row.at)
    return Runs(last, matched, invocations)

"""Groups failures by what failed: the same signature is the same kind of failure."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pathgauge.collector.store.queries.filter import Filter, may_match, oldest_of
from pathgauge.collector.store.queries.results import ROWS_BETWEEN_LOOKS
from pathgauge.collector.store.queries.rows import Looked, search
from pathgauge.collector.store.queries.stored_result import Row
from pathgauge.collector.store.sql import Connection

MAX_FAILURES = 10_000
"""How many of the newest failures are grouped."""
MAX_CLUSTERS = 200
GROUP_S = 0.05
"""How long failures are searched, unless the caller has more time: others may wait."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """The failures with the same agent, scenario and signature."""

    tenant: str
    agent: str | None
    scenario_id: str | None
    category: str
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
    """Whether these were all failures that were asked for; else only the newest ones."""


def clusters(
    connection: Connection,
    wanted: Filter,
    seconds: float | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Clusters:
    """Group the newest failures. Of the filter, tenant, agent, scenario, category, signature, since
    and until count.
    """
    deadline = clock() + (GROUP_S if seconds is None else seconds)
    groups: dict[tuple[str, str, str, str], list[Row]] = defaultdict(list)
    failures, complete = 0, True
    failed, oldest = replace(wanted, verdict="failed"), oldest_of(connection, wanted)
    for number, row in enumerate(search(connection, failed, None), 1):
        is_look = isinstance(row, Looked) or number % ROWS_BETWEEN_LOOKS == 0
        if isinstance(row, Row):
            if row.at < oldest:
                break
            if may_match(row, failed):
                groups[row.tenant, row.agent, row.scenario, row.signature].append(row)
                failures += 1
        if failures == MAX_FAILURES or (is_look and clock() > deadline):
            complete = False
            break
    largest = sorted(groups.values(), key=lambda group: (-len(group), -group[0].id))
    return Clusters([_cluster(group) for group in largest[:MAX_CLUSTERS]], failures, complete)


def _cluster(group: Sequence[Row]) -> Cluster:
    """The rows of a group, the newest first."""
    newest, oldest = group[0], group[-1]
    return Cluster(
        newest.tenant,
        newest.agent or None,
        newest.scenario or None,
        newest.category,
        newest.signature,
        len(group),
        oldest.at,
        newest.at,
        newest.trace_id,
        newest.span_id,
    )

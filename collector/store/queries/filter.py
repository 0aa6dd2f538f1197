"""Which results are wanted."""

from __future__ import annotations

import math
from dataclasses import dataclass

from pathgauge.collector.core.evaluations.accounting import CANARY_TENANT
from pathgauge.collector.core.evaluations.label_values import (
    MAX_NAME_BYTES,
    MAX_SCENARIO_BYTES,
    has_label,
)
from pathgauge.collector.store.queries.stored_result import Row
from pathgauge.collector.store.sql import Connection, max_skew_s


@dataclass(frozen=True, slots=True)
class Filter:
    """Which results are wanted; `None` accepts all."""

    tenant: str | None = None
    """`None` leaves out canaries, which are no results of agents, unless the trace is named."""
    agent: str | None = None
    """A name, as those of scenarios and versions, or the label that metrics have for it."""
    scenario: str | None = None
    criterion: str | None = None
    """A criterion that the result has. With `verdict`, one that has this verdict; with `reason`,
    one that has this reason.
    """
    verdict: str | None = None
    since: float | None = None
    """Unix seconds, included."""
    until: float | None = None
    """Unix seconds, not included."""
    version: str | None = None
    """Of the agent."""
    category: str | None = None
    signature: str | None = None
    reason: str | None = None
    """Why a criterion has no value, or why there is no reference."""
    flag: str | None = None
    trace_id: str | None = None


def may_match(row: Row, wanted: Filter) -> bool:
    """Whether the columns match, without the body."""
    return (
        bool(row.verdict)
        and not row.withdrawn
        and _is_of(row.tenant, wanted)
        and is_named(row.agent, wanted.agent, MAX_NAME_BYTES)
        and is_named(row.scenario, wanted.scenario, MAX_SCENARIO_BYTES)
        and wanted.category in (None, row.category)
        and wanted.signature in (None, row.signature)
        and (wanted.verdict in (None, row.verdict) or wanted.criterion is not None)
        and (wanted.until is None or row.at < wanted.until)
        and (wanted.since is None or row.at >= wanted.since)
    )


def _is_of(tenant: str, wanted: Filter) -> bool:
    if wanted.tenant is not None:
        return tenant == wanted.tenant
    return tenant != CANARY_TENANT or wanted.trace_id is not None


def is_named(name: str | None, wanted: str | None, max_bytes: int) -> bool:
    """Whether this is the wanted name, or the wanted label of metrics stands for it."""
    return wanted is None or has_label(name or "", wanted, max_bytes)


def oldest_of(connection: Connection, wanted: Filter) -> float:
    """The Unix time before which no row can match; a search ends there."""
    return -math.inf if wanted.since is None else wanted.since - max_skew_s(connection)

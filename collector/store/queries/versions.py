"""Compares the versions of an agent: verdicts and mean scores over its newest results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.queries.results import MAX_LIMIT, find
from pathgauge.collector.store.queries.stored_result import CriterionResult, StoredResult
from pathgauge.collector.store.sql import Connection

MAX_RESULTS = 2_000
"""How many of the newest results are compared."""
MAX_VERSIONS = 50
_MAX_SEARCHES = 5
"""Each is bounded in time, see `SEARCH_S`."""


@dataclass(slots=True)
class CriterionRuns:
    """The values of one criterion."""

    threshold: float | None
    """That of the newest result."""
    total: float = 0.0
    samples: int = 0
    failed: int = 0

    def add(self, result: CriterionResult) -> None:
        """Count one result."""
        if result.value is not None:
            self.total += result.value
            self.samples += 1
        self.failed += result.verdict == "failed"


@dataclass(slots=True)
class VersionRuns:
    """The results of one version."""

    version: str | None
    """`None`: the telemetry has no version."""
    last_at: float
    """Unix seconds."""
    first_at: float
    verdicts: Counter[str] = field(default_factory=Counter)
    criteria: dict[str, CriterionRuns] = field(default_factory=dict)

    def add(self, result: StoredResult) -> None:
        """Count one result, older than those before."""
        self.first_at = result.at
        self.verdicts[result.verdict] += 1
        for one in result.criteria:
            self.criteria.setdefault(one.name, CriterionRuns(one.threshold)).add(one)


class Versions(NamedTuple):
    """The versions, the newest first."""

    versions: Sequence[VersionRuns]
    complete: bool
    """Whether all results were compared; else only the newest, or those of `MAX_VERSIONS`."""


def by_version(connection: Connection, wanted: Filter) -> Versions:
    """Group the newest results by the version of the agent."""
    found: dict[str | None, VersionRuns] = {}
    results, left_out, before = 0, False, None
    for _ in range(_MAX_SEARCHES):
        page = find(connection, wanted, min(MAX_LIMIT, MAX_RESULTS - results), before)
        for result in page.results:
            if result.agent_version not in found and len(found) == MAX_VERSIONS:
                left_out = True
                continue
            runs = VersionRuns(result.agent_version, result.at, result.at)
            found.setdefault(result.agent_version, runs).add(result)
        results, before = results + len(page.results), page.next
        if before is None or results == MAX_RESULTS:
            break
    return Versions(list(found.values()), before is None and not left_out)

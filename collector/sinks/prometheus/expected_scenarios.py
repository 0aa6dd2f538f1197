"""How often scenarios should be evaluated, and since when that is known.

A scenario that was never evaluated has no time of a last score. Silence about it counts from the
start or the reload that brought it: a collector may run for weeks before somebody adds a scenario.
The time is stored: a collector that is restarted more often than the interval would never tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pathgauge.collector.core.evaluations.series import Series
from pathgauge.collector.sinks.prometheus.durable_family import Family
from pathgauge.collector.sinks.prometheus.durable_series import StoredValues
from pathgauge.collector.sinks.prometheus.exposition.gauge_family import GaugeFamily
from pathgauge.collector.sinks.prometheus.labels import TenantLabel
from pathgauge.scorers.types import Reference


class Expected(NamedTuple):
    """What is expected of a scenario."""

    interval: float
    """The longest time between two evaluations, in seconds."""
    since: float
    """Unix time at which it came into force."""


def expected_scenarios(
    references: Mapping[str, Reference], before: Mapping[str, Expected], now: float
) -> dict[str, Expected]:
    """By scenario, what is expected of it from `now` on. One that was expected before still counts
    from then, also if its interval is another one.
    """
    return {
        scenario: Expected(
            reference.expected_interval,
            before[scenario].since if scenario in before else now,
        )
        for scenario, reference in references.items()
        if reference.expected_interval is not None
    }


def store_since(expected: Mapping[str, Expected], since: Family[StoredValues]) -> None:
    """Have the next commit store since when scenarios are expected, and forget all others."""
    for scenario, one in expected.items():
        stored = since.of(scenario)
        if stored.numbers != (one.since,):
            stored.put(one.since)
    since.keep({(scenario,) for scenario in expected})


def restored_since(
    expected: Mapping[str, Expected], since: Family[StoredValues]
) -> dict[str, Expected]:
    """What is expected, since the time that an earlier process has stored. The virtual clock of a
    backfill begins at 0, which is no time.
    """
    stored = {one.labels[0]: one.numbers[0] for one in since if one.numbers and one.numbers[0]}
    return {
        scenario: one._replace(since=min(one.since, stored.get(scenario, one.since)))
        for scenario, one in expected.items()
    }


def expectation_gauges(
    expected: Mapping[str, Expected], known: Iterable[Series], tenant: TenantLabel
) -> tuple[GaugeFamily, GaugeFamily]:
    """The gauges of each scenario, for each tenant that has it. A scenario that no tenant has yet
    is exported without a tenant.
    """
    intervals = GaugeFamily(
        "pathgauge_expected_interval_seconds",
        "Maximum time between two evaluations of a scenario.",
        labels=tenant.names("scenario"),
    )
    times = GaugeFamily(
        "pathgauge_expected_since_timestamp_seconds",
        "Unix time since which a scenario is expected: of the start, or of the reload, that brought"
        " it.",
        labels=tenant.names("scenario"),
    )
    tenants: dict[str, set[str]] = {}
    for series in known:
        tenants.setdefault(series.scenario, set()).add(series.tenant)
    for scenario, (interval, since) in expected.items():
        for name in sorted(tenants.get(scenario, {""})):
            of = tenant.values(name, scenario)
            intervals.add_metric(of, interval)
            times.add_metric(of, since)
    return intervals, times

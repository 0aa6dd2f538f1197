"""How long the scorers of each criterion took, to find the one that holds up all others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from pathgauge.collector.core.evaluations.scorer_watch import ScorerWatch


@dataclass(frozen=True, slots=True, eq=False)
class ScoringTime(Collector):
    """All series start at 0 with the process. Scoring and scrapes may run in different threads."""

    active: ScorerWatch
    shadow: ScorerWatch

    def collect(self) -> Iterator[Metric]:
        """All series. prometheus_client calls this at a scrape."""
        yield _seconds(
            "pathgauge_scoring_seconds", "Time that the scorer of a metric took.", self.active
        )
        if self.shadow.seconds:
            yield _seconds(
                "pathgauge_shadow_scoring_seconds",
                "Time that the scorer of a metric in shadow took.",
                self.shadow,
            )


def _seconds(name: str, documentation: str, watch: ScorerWatch) -> Metric:
    family = CounterMetricFamily(name, documentation, labels=("metric",))
    for metric, seconds in list(watch.seconds.items()):
        family.add_metric((metric,), seconds)
    return family

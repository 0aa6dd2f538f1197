"""Counts failed invocations by the category of their failure.

An invocation is counted once, by its first verdict `failed`. A judge that fails it later adds
nothing, unless all criteria before had passed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation
from pathgauge.collector.core.evidence.failures import CATEGORIES
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.durable_series import Source
from pathgauge.collector.sinks.prometheus.labels import Labels, TenantLabel
from pathgauge.scorers.session_protocol import scores_sessions


class FailureMetrics:
    """The counters of failures. Only one thread at a time may use them."""

    def __init__(self, metrics: DurableMetrics, tenant: TenantLabel) -> None:
        self._tenant = tenant
        self._failures = metrics.counter(
            "pathgauge_failures",
            "Invocations that failed a criterion, by the category of the failure. Each invocation"
            " has one category.",
            tenant.names("agent", "scenario", "category"),
        )

    def expect(self, labels: Labels, criteria: Iterable[Criterion]) -> None:
        """Start all categories at 0 if an invocation can fail one of these criteria, so that
        `increase` sees the first failure.
        """
        values = self._values(labels)
        if self._failures.get(*values, CATEGORIES[0]) is None and any(map(_can_fail, criteria)):
            for category in CATEGORIES:
                self._failures.of(*values, category)

    def count(self, evaluation: Evaluation, labels: Labels, source: Source) -> None:
        """Count the invocation if it failed; a later revision is not counted."""
        self.expect(labels, (result.criterion for result in evaluation.results))
        failure = evaluation.failure
        if failure is not None:
            self._failures.of(*self._values(labels), failure.category).add(1, source)

    def keep(self, live: Collection[Labels]) -> None:
        """Drop the series of agents and scenarios that are not among these labels."""
        self._failures.keep({self._values(labels) for labels in live})

    def _values(self, labels: Labels) -> tuple[str, ...]:
        return self._tenant.values(labels.tenant, labels.agent, labels.scenario)


def _can_fail(criterion: Criterion) -> bool:
    """Whether an invocation can fail it: a session that fails is no failed invocation."""
    is_of_results = criterion.threshold is not None and criterion.aggregation is None
    return is_of_results and not scores_sessions(criterion.scorer)

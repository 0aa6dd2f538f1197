"""Counts failed invocations by the category of their failure.

An invocation is counted once, by its first verdict `failed`. A judge that fails it later adds
nothing, unless all criteria before had passed.
"""

from __future__ import annotations

from collections.abc import Collection

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation
from pathgauge.collector.core.evidence.possible_categories import possible_categories
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

    def expect(self, labels: Labels, criterion: Criterion) -> None:
        """Start the categories at 0 that an invocation can have which fails this criterion, so that
        `increase` sees the first failure.
        """
        if _can_fail(criterion):
            values = self._values(labels)
            for category in possible_categories(criterion.scorer):
                self._failures.of(*values, category)

    def count(self, evaluation: Evaluation, labels: Labels, source: Source) -> None:
        """Count the invocation if it failed; a later revision is not counted."""
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

"""Gauges about the agreement of criteria with people.

They are set from the store from time to time, not from events: both sides of a pair may arrive in
any order, days apart, and be revised.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from pathgauge.collector.core.evaluations.label_values import label_value
from pathgauge.collector.core.feedback.kappa import agreement
from pathgauge.collector.core.feedback.pairs import AnswerState, Pairs
from pathgauge.collector.sinks.prometheus.judge_label import JUDGE, judge_value
from pathgauge.collector.sinks.prometheus.labels import TenantLabel

_KAPPA = "pathgauge_feedback_kappa"


class AgreementGauges(Collector):
    """Shows what was set last; nothing before."""

    def __init__(self, tenant: TenantLabel, min_kappa: float, min_pairs: int) -> None:
        self._tenant = tenant
        self._min_kappa = min_kappa
        self._min_pairs = min_pairs
        self._pairs: Pairs | None = None

    def set(self, pairs: Pairs | None) -> None:
        """Show these pairs; `None`: another process knows them. For any thread."""
        self._pairs = pairs

    def collect(self) -> Iterator[Metric]:
        """All gauges. prometheus_client calls this at a scrape."""
        pairs = self._pairs
        if pairs is None:
            return
        yield from self._agreement(pairs)
        answers = GaugeMetricFamily(
            "pathgauge_feedback_answers",
            "Answers of people in the window of the agreement, by what became of them.",
            labels=("state",),
        )
        for state in get_args(AnswerState):
            answers.add_metric((state,), pairs.answers[state])
        yield answers
        yield GaugeMetricFamily(
            "pathgauge_feedback_min_kappa",
            "The kappa below which a judge departs from people.",
            value=self._min_kappa,
        )
        yield GaugeMetricFamily(
            "pathgauge_feedback_min_pairs",
            "The number of invocations below which no alert about the agreement is raised.",
            value=self._min_pairs,
        )

    def _agreement(self, pairs: Pairs) -> Iterator[Metric]:
        labels = self._tenant.names("metric", JUDGE)
        kappa = GaugeMetricFamily(
            _KAPPA,
            "Cohen's kappa of the verdicts of a metric and of people; absent if it is undefined.",
            labels=labels,
        )
        lower = GaugeMetricFamily(
            f"{_KAPPA}_lower", "Lower bound of the kappa, with a confidence of 95 %.", labels=labels
        )
        upper = GaugeMetricFamily(
            f"{_KAPPA}_upper", "Upper bound of the kappa, with a confidence of 95 %.", labels=labels
        )
        number = GaugeMetricFamily(
            "pathgauge_feedback_pairs",
            "Invocations or sessions with a verdict of a metric and of people, in the window.",
            labels=labels,
        )
        for key, table in sorted(pairs.tables.items()):
            values = self._tenant.values(
                key.tenant, label_value(key.metric), judge_value(key.judge) if key.judge else ""
            )
            number.add_metric(values, table.pairs)
            found = agreement(table)
            if found is not None:
                kappa.add_metric(values, found.kappa)
                lower.add_metric(values, found.lower)
                upper.add_metric(values, found.upper)
        yield from (kappa, lower, upper, number)

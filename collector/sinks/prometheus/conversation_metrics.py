"""Counters and histograms of finished conversations."""

from __future__ import annotations

from collections.abc import Collection

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Criterion, Verdict
from pathgauge.collector.sinks.outcomes import CONVERSATION_OUTCOMES, OUTCOMES
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.durable_series import CounterSeries, HistogramSeries
from pathgauge.collector.sinks.prometheus.judge_label import JUDGE, drop_other_judges, with_judge
from pathgauge.collector.sinks.prometheus.labels import Labels, TenantLabel
from pathgauge.collector.sinks.prometheus.score_range import (
    GRADED,
    SCORE_BUCKETS,
    is_bounded,
    normalized,
)
from pathgauge.scorers.authoring.ranges import worst


class ConversationMetrics:
    """Verdicts and scores of conversations. Only one thread at a time may use them."""

    def __init__(self, metrics: DurableMetrics, tenant: TenantLabel) -> None:
        self._tenant = tenant
        names = tenant.names("agent", "scenario", "agent_version", "metric")
        self._score = metrics.histogram(
            "pathgauge_case_score",
            "Score of a finished conversation, normalized to 0..1 like `pathgauge_score`.",
            names,
            JUDGE,
            bounds=SCORE_BUCKETS,
            shown=GRADED,
        )
        self._conversations = metrics.counter(
            "pathgauge_cases",
            "Verdicts on finished conversations, by outcome.",
            (*names, "outcome"),
            JUDGE,
        )

    def expect(self, labels: Labels, criterion: Criterion) -> None:
        """Start the series of a criterion at 0."""
        self._series_of(labels, criterion)

    def count(self, result: ConversationResult, labels: Labels) -> None:
        """Count all scores of a finished conversation."""
        for score in result.scores:
            outcomes, means = self._series_of(labels, score.criterion)
            outcomes[score.criterion.verdict(score.value)].add()
            if means is not None and score.value is not None:
                means.observe(normalized(score.value, score.criterion.scorer))

    def keep(self, live: Collection[Labels]) -> None:
        """Drop the series of all other labels."""
        wanted = {self._tenant.place_values(labels) for labels in live}
        self._score.keep(wanted)
        self._conversations.keep(wanted)

    def keep_judges(self, judges: Collection[str]) -> None:
        """Drop the series of judges that are not among these label values."""
        drop_other_judges(self._score, judges)
        drop_other_judges(self._conversations, judges)

    def _series_of(
        self, labels: Labels, criterion: Criterion
    ) -> tuple[dict[Verdict, CounterSeries], HistogramSeries | None]:
        values, judge = self._tenant.place_values(labels, criterion.name), criterion.judge
        possible = dict(CONVERSATION_OUTCOMES)
        if worst(criterion.scorer) is None:
            possible["not_evaluated"] = OUTCOMES["not_evaluated"]
        outcomes = {
            verdict: self._conversations.of(*with_judge((*values, outcome), judge))
            for verdict, outcome in possible.items()
        }
        if not is_bounded(criterion.scorer):
            return outcomes, None
        return outcomes, self._score.of(*with_judge(values, judge))

"""Counters and histograms of evaluations.

Each evaluation is counted once. Exemplars name its entry span, so that a point on a graph leads to
its trace.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Result, Verdict
from pathgauge.collector.sinks.outcomes import OUTCOMES
from pathgauge.collector.sinks.prometheus.conversation_metrics import ConversationMetrics
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.durable_series import (
    CounterSeries,
    HistogramSeries,
    Source,
)
from pathgauge.collector.sinks.prometheus.failure_metrics import FailureMetrics
from pathgauge.collector.sinks.prometheus.invocation_metrics import InvocationMetrics
from pathgauge.collector.sinks.prometheus.judge_label import (
    JUDGE,
    drop_other_judges,
    judge_value,
    with_judge,
)
from pathgauge.collector.sinks.prometheus.labels import OTHER, Labels, TenantLabel
from pathgauge.collector.sinks.prometheus.score_range import (
    BINARY,
    GRADED,
    SCORE_BUCKETS,
    is_bounded,
    normalized,
)
from pathgauge.scorers.authoring.ranges import is_binary
from pathgauge.scorers.session_protocol import scores_sessions
from pathgauge.scorers.trajectories.adk import TrajectoryScorer
from pathgauge.scorers.types import Reason, Score, Scorer

REASONS: frozenset[str] = frozenset(get_args(Reason))
CALL_COUNTS = ("matched", "actual", "expected")
"""Tool calls behind a trajectory score. With them, Prometheus can compute means over calls instead
of means over invocations.
"""

_WITHOUT_SCORE: frozenset[Verdict] = frozenset({"not_evaluated", "error"})
_JUDGED: frozenset[Verdict] = _WITHOUT_SCORE | {"passed", "failed"}
_INFORMATIONAL: frozenset[Verdict] = _WITHOUT_SCORE | {"informational"}
_SCORED = (_JUDGED | _INFORMATIONAL) - _WITHOUT_SCORE
LAG_BUCKETS = (0.5, 1, 2, 4, 6, 8, 10, 15, 30, 60, 120, 300, 600)
AGREEMENT_BUCKETS = (0, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1)


@dataclass(frozen=True, slots=True)
class _CriterionSeries:
    """The series of one criterion under one set of labels."""

    scorer: Scorer
    judge: str
    score: HistogramSeries | None
    """`None` if the scorer's range is infinite: its scores cannot be normalized."""
    outcomes: dict[Verdict, CounterSeries]
    calls: dict[str, CounterSeries]
    """By `CALL_COUNTS`; empty if the scorer does not compare tool calls."""

    def is_of(self, criterion: Criterion) -> bool:
        """Whether the series belong to this criterion, not to an earlier one with its name."""
        return (
            self.scorer is criterion.scorer
            and self.judge == criterion.judge
            and self.outcomes.keys() >= _possible(criterion)
        )


class EvaluationMetrics:
    """All counters and histograms of evaluations. Only one thread at a time may use them."""

    def __init__(self, metrics: DurableMetrics, tenant: TenantLabel) -> None:
        self._tenant = tenant
        names = tenant.names("agent", "scenario", "agent_version", "metric")
        self._score = metrics.histogram(
            "pathgauge_score",
            "Score normalized to 0..1. `pathgauge_metric_info` gives the direction (higher or lower"
            " is better).",
            names,
            JUDGE,
            bounds=SCORE_BUCKETS,
            shown=GRADED,
        )
        self._evaluations = metrics.counter(
            "pathgauge_evaluations",
            "Verdicts on invocations, by outcome.",
            (*names, "outcome"),
            JUDGE,
        )
        self._calls = metrics.counter(
            "pathgauge_trajectory_calls",
            "Tool calls that trajectory scores were computed from: matched with each other, actual,"
            " and expected.",
            (*names, "count"),
        )
        self._conversations = ConversationMetrics(metrics, tenant)
        self._not_evaluated = metrics.counter(
            "pathgauge_not_evaluated",
            "Results without a score, by reason.",
            tenant.names("agent", "metric", "reason"),
        )
        self._agreement = metrics.histogram(
            "pathgauge_judge_agreement",
            "Share of a judge's answers to the same question that agree with its verdict. Only"
            " judges that ask more than once have it.",
            ("metric",),
            bounds=AGREEMENT_BUCKETS,
        )
        self._lag = metrics.histogram(
            "pathgauge_evaluation_lag_seconds",
            "Time from the end of an invocation until its scores can be scraped.",
            bounds=LAG_BUCKETS,
        ).of()
        self._invocations = InvocationMetrics(metrics, tenant)
        self._failures = FailureMetrics(metrics, tenant)
        self._series: dict[Labels, dict[str, _CriterionSeries]] = {}

    def expect(self, labels: Labels, criteria: Iterable[Criterion]) -> None:
        """Start the series of these criteria at 0, so that `rate` and `increase` see the first
        failure.
        """
        for criterion in criteria:
            self._series_of(labels, criterion)

    def count(self, evaluation: Evaluation, labels: Labels, now: float) -> None:
        """Count the invocation and all its results; `now` is in Unix seconds."""
        source = _source(evaluation, now)
        self._count_results(evaluation, labels, source)
        self._failures.count(evaluation, labels, source)
        self._invocations.count(evaluation, labels)
        ended = evaluation.invocation.end_ns
        if ended:
            self._lag.observe(max(0.0, now - ended / 1e9), source)

    def count_results(self, evaluation: Evaluation, labels: Labels, now: float) -> None:
        """Count all results of an evaluation; `now` is in Unix seconds."""
        self._count_results(evaluation, labels, _source(evaluation, now))

    def _count_results(self, evaluation: Evaluation, labels: Labels, source: Source) -> None:
        reference = evaluation.match.reference
        is_of_conversation = reference is not None and len(reference.turns) > 1
        for result in evaluation.results:
            self._count_result(result, labels, source)
            scorer = result.criterion.scorer
            if is_of_conversation and scorer.needs_reference and not scores_sessions(scorer):
                self._conversations.expect(labels, result.criterion)

    def has_scores(self, labels: Labels, criterion: Criterion) -> bool:
        """Whether a criterion ever gave a score to what was counted with these labels."""
        values = self._tenant.place_values(labels, criterion.name)
        counted = (
            self._evaluations.get(*with_judge((*values, OUTCOMES[verdict]), criterion.judge))
            for verdict in _SCORED
        )
        return any(one is not None and one.numbers[0] > 0 for one in counted)

    def count_failure(self, evaluation: Evaluation, labels: Labels, now: float) -> None:
        """Count the invocation by the category of its failure, if it failed."""
        self._failures.count(evaluation, labels, _source(evaluation, now))

    def count_conversation(self, result: ConversationResult, labels: Labels) -> None:
        """Count all scores of a finished conversation."""
        self._conversations.count(result, labels)

    def keep(self, live: Collection[Labels]) -> None:
        """Drop the series of all other labels."""
        self._series = {labels: series for labels, series in self._series.items() if labels in live}
        wanted = {self._tenant.place_values(labels) for labels in live}
        for family in (self._score, self._evaluations, self._calls):
            family.keep(wanted)
        self._not_evaluated.keep({self._agent(labels) for labels in live})
        self._conversations.keep(live)
        self._invocations.keep(live)
        self._failures.keep(live)

    def keep_judges(self, judges: Collection[str]) -> None:
        """Drop the series of judges that are not among these label values."""
        for by_metric in self._series.values():
            replaced = [
                metric
                for metric, series in by_metric.items()
                if series.judge and judge_value(series.judge) not in judges
            ]
            for metric in replaced:
                del by_metric[metric]
        drop_other_judges(self._evaluations, judges)
        drop_other_judges(self._score, judges)
        self._conversations.keep_judges(judges)

    def _series_of(self, labels: Labels, criterion: Criterion) -> _CriterionSeries:
        by_metric = self._series.setdefault(labels, {})
        series = by_metric.get(criterion.name)
        if series is None or not series.is_of(criterion):
            series = by_metric[criterion.name] = self._start_series(labels, criterion)
        return series

    def _start_series(self, labels: Labels, criterion: Criterion) -> _CriterionSeries:
        values, judge = self._tenant.place_values(labels, criterion.name), criterion.judge
        self._failures.expect(labels, criterion)
        score = None
        if is_bounded(criterion.scorer):
            score = self._score.of(*with_judge(values, judge))
            self._score.show_buckets(score, BINARY if is_binary(criterion.scorer) else None)
        outcomes = {
            verdict: self._outcome(values, verdict, judge) for verdict in _possible(criterion)
        }
        calls = {}
        if isinstance(criterion.scorer, TrajectoryScorer):
            calls = {count: self._calls.of(*values, count) for count in CALL_COUNTS}
        return _CriterionSeries(criterion.scorer, judge, score, outcomes, calls)

    def _outcome(self, values: tuple[str, ...], verdict: Verdict, judge: str) -> CounterSeries:
        return self._evaluations.of(*with_judge((*values, OUTCOMES[verdict]), judge))

    def _count_result(self, result: Result, labels: Labels, source: Source) -> None:
        series = self._series_of(labels, result.criterion)
        metric, value = result.criterion.name, result.score.value
        outcome = series.outcomes.get(result.verdict)
        if outcome is None:
            outcome = self._outcome(
                self._tenant.place_values(labels, metric), result.verdict, series.judge
            )
            series.outcomes[result.verdict] = outcome
        outcome.add(1, source)
        if result.verdict == "not_evaluated":
            reason = result.score.reason
            known = reason if reason in REASONS else OTHER
            self._not_evaluated.of(*self._agent(labels), metric, known).add()
        if value is None:
            return
        if series.judge and (agreement := _agreement(result.score)) is not None:
            self._agreement.of(metric).observe(agreement, source)
        if series.score is not None:
            series.score.observe(normalized(value, series.scorer), source)
        for count, calls in series.calls.items():
            calls.add(result.score.details["counts"][count])

    def dialects(self) -> Mapping[tuple[str, ...], str]:
        """The dialect of the latest invocation, by the values of `tenant` and `agent`."""
        return self._invocations.dialects()

    def _agent(self, labels: Labels) -> tuple[str, ...]:
        return self._tenant.values(labels.tenant, labels.agent)


def _possible(criterion: Criterion) -> frozenset[Verdict]:
    """The verdicts that a criterion can give, whose series start at 0."""
    is_judged = criterion.threshold is not None and criterion.aggregation is None
    return _JUDGED if is_judged else _INFORMATIONAL


def _source(evaluation: Evaluation, now: float) -> Source:
    invocation = evaluation.invocation
    return Source({"trace_id": invocation.trace_id[:32], "span_id": invocation.span_id[:16]}, now)


def _agreement(score: Score) -> float | None:
    """Agreement between the samples of a judge; `None` with fewer than two samples."""
    details = score.details.get("judge")
    if not isinstance(details, Mapping):
        return None
    share, samples = details.get("agreement"), details.get("samples")
    if not isinstance(share, int | float) or not isinstance(samples, int) or samples < 2:
        return None
    return float(share) if 0 <= share <= 1 else None

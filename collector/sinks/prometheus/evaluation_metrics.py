"""The counters and histograms of evaluations: labels and an evaluation come in, `DurableMetrics` hold the
numbers.

Each evaluation is counted once. Exemplars name the anchor span, so that a point on a graph leads to
its trace.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import get_args

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Result, Verdict
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.durable_series import Count, Distribution, Source
from pathgauge.collector.sinks.prometheus.judge_label import ByJudge, judge_value
from pathgauge.collector.sinks.prometheus.labels import OTHER, Labels, TenantLabel
from pathgauge.scorers.trajectories.adk import TrajectoryScorer
from pathgauge.scorers.types import Invocation, Reason, Score, Scorer

OUTCOMES: dict[Verdict, str] = {
    "passed": "pass",
    "failed": "fail",
    "not_evaluated": "not_evaluated",
    "error": "error",
    "informational": "informational",
}
CASE_OUTCOMES: dict[Verdict, str] = {
    "passed": "pass",
    "failed": "fail",
    "informational": "informational",
}
"""Of a conversation, which has a score or is not counted."""
REASONS: frozenset[str] = frozenset(get_args(Reason))
COUNTS = ("matched", "actual", "expected")
"""The tool calls behind a trajectory score, from which Prometheus can compute means over calls
instead of over invocations.
"""

SCORE_BUCKETS = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
LAG_BUCKETS = (0.5, 1, 2, 4, 6, 8, 10, 15, 30, 60, 120, 300, 600)
DURATION_BUCKETS = tuple(0.01 * 2**i for i in range(14))
"""Those of the OpenTelemetry metrics `gen_ai.*.duration`, as are the next ones of
`gen_ai.client.token.usage`.
"""
TOKEN_BUCKETS = tuple(4**i for i in range(14))
AGREEMENT_BUCKETS = (0, 0.25, 0.5, 0.6, 0.7, 0.8, 0.9, 1)
CALL_BUCKETS = (0, 1, 2, 3, 4, 5, 8, 13, 21, 34, 55)


@dataclass(frozen=True, slots=True)
class _CriterionSeries:
    """The series of one criterion under one set of labels."""

    scorer: Scorer
    judge: str
    score: Distribution | None
    """`None`: the scorer's range is infinite, so that there is no 0 and 1 to put its scores
    between.
    """
    outcomes: dict[Verdict, Count]
    calls: dict[str, Count]
    """By the names of `COUNTS`; empty where the scorer does not compare calls."""


class Instruments:
    """Everything that is counted per evaluation. Only one thread at a time may call its methods."""

    def __init__(self, metrics: DurableMetrics, tenant: TenantLabel) -> None:
        self._tenant = tenant
        by_criterion = tenant.names("agent", "scenario", "agent_version", "metric")
        by_agent = tenant.names("agent", "agent_version")
        by_outcome = (*by_criterion, "outcome")
        score = metrics.histogram(
            "pathgauge_score",
            "Scores brought from the range of their metric to 0..1; which end is good,"
            " pathgauge_metric_info says.",
            by_criterion,
            bounds=SCORE_BUCKETS,
        )
        self._score = ByJudge(metrics, score)
        evaluations = metrics.counter(
            "pathgauge_evaluations", "Verdicts on invocations, by outcome.", by_outcome
        )
        self._evaluations = ByJudge(metrics, evaluations)
        self._calls = metrics.counter(
            "pathgauge_trajectory_calls",
            "Tool calls that trajectory scores were computed from: matched with each other, made,"
            " and expected.",
            (*by_criterion, "count"),
        )
        case_score = metrics.histogram(
            "pathgauge_case_score",
            "Scores of finished conversations, brought from the range of their metric to 0..1.",
            by_criterion,
            bounds=SCORE_BUCKETS,
        )
        self._case_score = ByJudge(metrics, case_score)
        cases = metrics.counter(
            "pathgauge_cases", "Verdicts on finished conversations, by outcome.", by_outcome
        )
        self._cases = ByJudge(metrics, cases)
        self._not_evaluated = metrics.counter(
            "pathgauge_not_evaluated", "Scores without a value, by reason.", ("metric", "reason")
        )
        self._agreement = metrics.histogram(
            "pathgauge_judge_agreement",
            "Share of a judge's answers to one question that agree with its verdict, where it was"
            " asked more than once.",
            ("metric",),
            bounds=AGREEMENT_BUCKETS,
        )
        self._lag = metrics.histogram(
            "pathgauge_evaluation_lag_seconds",
            "Time from the end of an invocation until its scores are visible here.",
            bounds=LAG_BUCKETS,
        ).of()
        self._invocations = metrics.counter(
            "pathgauge_invocations",
            "Evaluated invocations, by whether a reference was found and whether they ended in an"
            " error.",
            (*by_agent, "match", "status"),
        )
        self._duration = metrics.histogram(
            "pathgauge_invocation_duration_seconds",
            "Duration of invocations.",
            by_agent,
            bounds=DURATION_BUCKETS,
        )
        self._tokens = metrics.histogram(
            "pathgauge_invocation_tokens",
            "Tokens of an invocation.",
            (*by_agent, "type"),
            bounds=TOKEN_BUCKETS,
        )
        self._tool_calls = metrics.histogram(
            "pathgauge_invocation_tool_calls",
            "Tool calls of an invocation.",
            by_agent,
            bounds=CALL_BUCKETS,
        )
        self._series: dict[Labels, dict[str, _CriterionSeries]] = {}

    def expect(self, labels: Labels, criteria: Iterable[Criterion]) -> None:
        """Begin the series of these criteria at 0, so that `rate` and `increase` see the first
        failure.
        """
        by_metric = self._series.setdefault(labels, {})
        for criterion in criteria:
            self._of(by_metric, labels, criterion)

    def count(self, evaluation: Evaluation, labels: Labels, now: float) -> None:
        """Count the invocation and every verdict on it; `now` is in Unix seconds."""
        invocation = evaluation.invocation
        self.count_results(evaluation, labels, now)
        self._count_invocation(invocation, labels, _match(evaluation))
        if invocation.end_ns:
            self._lag.observe(max(0.0, now - invocation.end_ns / 1e9), _source(invocation, now))

    def count_results(self, evaluation: Evaluation, labels: Labels, now: float) -> None:
        """Count every verdict of an evaluation; `now` is in Unix seconds."""
        source = _source(evaluation.invocation, now)
        by_metric = self._series.setdefault(labels, {})
        of_conversation = (
            evaluation.match.reference is not None and len(evaluation.match.reference.turns) > 1
        )
        for result in evaluation.results:
            self._count_result(result, self._of(by_metric, labels, result.criterion), source)
            if of_conversation and result.criterion.scorer.needs_reference:
                self._case_of(labels, result.criterion)  # begins at 0 with the first turn

    def count_case(self, case: ConversationResult, labels: Labels) -> None:
        """Count every verdict on a finished conversation."""
        for score in case.scores:
            outcomes, means = self._case_of(labels, score.criterion)
            outcomes[score.criterion.verdict(score.value)].add()
            if means is not None:
                means.observe(_normalised(score.value, score.criterion.scorer))

    def keep(self, live: Collection[Labels]) -> None:
        """Drop the series of all other labels, and those of agents and versions that are not among
        them.
        """
        self._series = {labels: series for labels, series in self._series.items() if labels in live}
        wanted = {
            self._tenant.values(labels.tenant, labels.agent, labels.scenario, labels.agent_version)
            for labels in live
        }
        for by_judge in (self._score, self._evaluations, self._case_score, self._cases):
            by_judge.keep(wanted)
        self._calls.keep(wanted)
        agents = {
            self._tenant.values(labels.tenant, labels.agent, labels.agent_version)
            for labels in live
        }
        for family in (self._invocations, self._duration, self._tokens, self._tool_calls):
            family.keep(agents)

    def keep_judges(self, judges: Collection[str]) -> None:
        """Drop the series of judges that are not among these values of their label."""
        for by_metric in self._series.values():
            for metric in [
                name
                for name, series in by_metric.items()
                if series.judge and judge_value(series.judge) not in judges
            ]:
                del by_metric[metric]
        for by_judge in (self._score, self._evaluations, self._case_score, self._cases):
            by_judge.keep_judges(judges)

    def _of(
        self, by_metric: dict[str, _CriterionSeries], labels: Labels, criterion: Criterion
    ) -> _CriterionSeries:
        series = by_metric.get(criterion.name)
        if (
            series is None
            or series.scorer is not criterion.scorer
            or series.judge != criterion.judge
        ):
            values, judge = self._values(labels, criterion.name), criterion.judge
            score = self._score.of(judge, *values) if _is_bounded(criterion.scorer) else None
            outcomes = {
                verdict: self._evaluations.of(judge, *values, outcome)
                for verdict, outcome in OUTCOMES.items()
            }
            counts = COUNTS if isinstance(criterion.scorer, TrajectoryScorer) else ()
            calls = {count: self._calls.of(*values, count) for count in counts}
            series = by_metric[criterion.name] = _CriterionSeries(
                criterion.scorer, judge, score, outcomes, calls
            )
        return series

    def _case_of(
        self, labels: Labels, criterion: Criterion
    ) -> tuple[dict[Verdict, Count], Distribution | None]:
        values, judge = self._values(labels, criterion.name), criterion.judge
        outcomes = {
            verdict: self._cases.of(judge, *values, outcome)
            for verdict, outcome in CASE_OUTCOMES.items()
        }
        return outcomes, (
            self._case_score.of(judge, *values) if _is_bounded(criterion.scorer) else None
        )

    def _count_result(self, result: Result, series: _CriterionSeries, source: Source) -> None:
        value = result.score.value
        series.outcomes[result.verdict].add(1, source)
        if result.verdict == "not_evaluated":
            reason = result.score.reason
            self._not_evaluated.of(
                result.criterion.name, reason if reason in REASONS else OTHER
            ).add()
        if value is None:
            return
        if series.judge and (agreement := _agreement(result.score)) is not None:
            self._agreement.of(result.criterion.name).observe(agreement, source)
        if series.score is not None:
            series.score.observe(_normalised(value, series.scorer), source)
        for count, calls in series.calls.items():
            calls.add(result.score.details["counts"][count])

    def _count_invocation(self, invocation: Invocation, labels: Labels, match: str) -> None:
        agent = self._tenant.values(labels.tenant, labels.agent, labels.agent_version)
        self._invocations.of(*agent, match, "error" if invocation.error else "ok").add()
        if invocation.duration_s is not None:
            self._duration.of(*agent).observe(invocation.duration_s)
        if invocation.input_tokens is not None:
            self._tokens.of(*agent, "input").observe(invocation.input_tokens)
        if invocation.output_tokens is not None:
            self._tokens.of(*agent, "output").observe(invocation.output_tokens)
        if "no_tool_spans" not in invocation.flags:
            self._tool_calls.of(*agent).observe(len(invocation.tool_calls))

    def _values(self, labels: Labels, metric: str) -> tuple[str, ...]:
        return self._tenant.values(
            labels.tenant, labels.agent, labels.scenario, labels.agent_version, metric
        )


def _source(invocation: Invocation, now: float) -> Source:
    return Source({"trace_id": invocation.trace_id[:32], "span_id": invocation.span_id[:16]}, now)


def _match(evaluation: Evaluation) -> str:
    match evaluation.match.unmatched:
        case None:
            return "scenario"
        case "scenario_conflict":
            return "ambiguous"
        case _:
            return "unmatched"


def _agreement(score: Score) -> float | None:
    """Between the samples of a judge; `None` when there were no two to agree."""
    said = score.details.get("judge")
    if not isinstance(said, Mapping):
        return None
    share, samples = said.get("agreement"), said.get("samples")
    if not isinstance(share, int | float) or not isinstance(samples, int) or samples < 2:
        return None
    return float(share) if 0 <= share <= 1 else None


def _is_bounded(scorer: Scorer) -> bool:
    return math.isfinite(scorer.high - scorer.low) and scorer.high > scorer.low


def _normalised(value: float, scorer: Scorer) -> float:
    return min(1.0, max(0.0, (value - scorer.low) / (scorer.high - scorer.low)))

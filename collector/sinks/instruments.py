"""The counters and histograms of evaluations: labels and an evaluation come in, prometheus_client's registry holds the numbers.

Each evaluation is counted once. Exemplars name the anchor span, so that a point on a graph leads to its trace.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import get_args

from prometheus_client import CollectorRegistry, Counter, Histogram

from collector.conversations import Case
from collector.evaluator import Criterion, Evaluation, Result, Verdict
from collector.sinks.labels import OTHER, Labels
from scorers.trajectories.trajectory import TrajectoryScorer
from scorers.types import Invocation, Reason, Scorer

OUTCOMES: dict[Verdict, str] = {
    "passed": "pass",
    "failed": "fail",
    "not_evaluated": "not_evaluated",
    "error": "error",
    "informational": "informational",
}
REASONS = frozenset(get_args(Reason))
COUNTS = ("matched", "actual", "expected")
"""The tool calls behind a trajectory score, from which Prometheus can compute means over calls instead of over invocations."""

SCORE_BUCKETS = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
LAG_BUCKETS = (0.5, 1, 2, 4, 6, 8, 10, 15, 30, 60, 120, 300, 600)
DURATION_BUCKETS = tuple(0.01 * 2**i for i in range(14))
"""Those of the OpenTelemetry metrics `gen_ai.*.duration`, as are the next ones of `gen_ai.client.token.usage`."""
TOKEN_BUCKETS = tuple(4**i for i in range(14))
CALL_BUCKETS = (0, 1, 2, 3, 4, 5, 8, 13, 21, 34, 55)
EXEMPLAR_S = 1.0
"""How long an exemplar stands at least. A scrape sees only the latest, and each costs more than the count that it belongs to."""


class _Exemplars:
    """Says which observations of one series are due to be its exemplars: the first of each kind, then one in `EXEMPLAR_S`."""

    def __init__(self) -> None:
        self._since: dict[tuple[str, int], float] = {}

    def due(self, kind: str, value: float, buckets: Sequence[float], now: float) -> bool:
        """Whether one is due for the bucket of `value`; it is taken to be given then."""
        place = kind, bisect_left(buckets, value)
        since = self._since.get(place)
        if since is not None and abs(now - since) < EXEMPLAR_S:
            return False
        self._since[place] = now
        return True


@dataclass(frozen=True, slots=True)
class _CriterionSeries:
    """The series of one criterion under one set of labels."""

    score: Histogram | None
    """`None`: the scorer's range is infinite, so that there is no 0 and 1 to put its scores between."""
    outcomes: dict[Verdict, Counter]
    calls: dict[str, Counter]
    """By the names of `COUNTS`; empty where the scorer does not compare calls."""
    exemplars: _Exemplars


class Instruments:
    """Everything that is counted per evaluation. Only one thread may call its methods; scrapes may run beside it."""

    def __init__(self, registry: CollectorRegistry) -> None:
        by_criterion = ("agent", "scenario", "metric", "agent_version")
        by_agent = ("agent", "agent_version")
        self._score = Histogram(
            "pathgauge_score",
            "Scores brought from the range of their metric to 0..1; which end is good, pathgauge_metric_info says.",
            by_criterion,
            buckets=SCORE_BUCKETS,
            registry=registry,
        )
        self._evaluations = Counter(
            "pathgauge_evaluations", "Verdicts on invocations, by outcome.", (*by_criterion, "outcome"), registry=registry
        )
        self._calls = Counter(
            "pathgauge_trajectory_calls",
            "Tool calls that trajectory scores were computed from: matched with each other, made, and expected.",
            (*by_criterion, "count"),
            registry=registry,
        )
        self._case_score = Histogram(
            "pathgauge_case_score",
            "Scores of finished conversations, brought from the range of their metric to 0..1.",
            by_criterion,
            buckets=SCORE_BUCKETS,
            registry=registry,
        )
        self._cases = Counter(
            "pathgauge_cases", "Verdicts on finished conversations, by outcome.", (*by_criterion, "outcome"), registry=registry
        )
        self._not_evaluated = Counter(
            "pathgauge_not_evaluated", "Scores without a value, by reason.", ("metric", "reason"), registry=registry
        )
        self._lag = Histogram(
            "pathgauge_evaluation_lag_seconds",
            "Time from the end of an invocation until its scores are visible here.",
            buckets=LAG_BUCKETS,
            registry=registry,
        )
        self._invocations = Counter(
            "pathgauge_invocations",
            "Evaluated invocations, by whether a reference was found and whether they ended in an error.",
            (*by_agent, "match", "status"),
            registry=registry,
        )
        self._duration = Histogram(
            "pathgauge_invocation_duration_seconds", "Duration of invocations.", by_agent, buckets=DURATION_BUCKETS, registry=registry
        )
        self._tokens = Histogram(
            "pathgauge_invocation_tokens", "Tokens of an invocation.", (*by_agent, "type"), buckets=TOKEN_BUCKETS, registry=registry
        )
        self._tool_calls = Histogram(
            "pathgauge_invocation_tool_calls", "Tool calls of an invocation.", by_agent, buckets=CALL_BUCKETS, registry=registry
        )
        self._lag_exemplars = _Exemplars()
        self._series: dict[Labels, dict[str, _CriterionSeries]] = {}
        self._case_series: dict[Labels, set[str]] = {}

    def expect(self, labels: Labels, criteria: Iterable[Criterion]) -> None:
        """Begin the series of these criteria at 0, so that `rate` and `increase` see the first failure."""
        for criterion in criteria:
            self._of(labels, criterion)

    def count(self, evaluation: Evaluation, labels: Labels, now: float) -> None:
        """Count the invocation and every verdict on it; `now` is in Unix seconds."""
        invocation = evaluation.invocation
        exemplar = {"trace_id": invocation.trace_id[:32], "span_id": invocation.span_id[:16]}
        for result in evaluation.results:
            self._count_result(result, self._of(labels, result.criterion), exemplar, now)
        self._count_invocation(invocation, labels, _match(evaluation))
        if invocation.end_ns:
            lag = max(0.0, now - invocation.end_ns / 1e9)
            self._lag.observe(lag, exemplar if self._lag_exemplars.due("", lag, LAG_BUCKETS, now) else None)

    def count_case(self, case: Case, labels: Labels) -> None:
        """Count every verdict on a finished conversation."""
        for score in case.scores:
            values = _values(labels, score.criterion.name)
            self._case_series.setdefault(labels, set()).add(score.criterion.name)
            self._cases.labels(*values, OUTCOMES[score.criterion.verdict(score.value)]).inc()
            if _is_bounded(score.criterion.scorer):
                self._case_score.labels(*values).observe(_normalised(score.value, score.criterion.scorer))

    def remove(self, gone: Iterable[Labels], live: Iterable[Labels]) -> None:
        """Drop the series of `gone`, and those of agents and versions that are not among `live` any more."""
        kept = {(labels.agent, labels.agent_version) for labels in live}
        for labels in gone:
            for metric in self._series.pop(labels, ()):
                _remove(self._score, self._evaluations, _values(labels, metric))
                for count in COUNTS:
                    self._calls.remove(*_values(labels, metric), count)
            for metric in self._case_series.pop(labels, ()):
                _remove(self._case_score, self._cases, _values(labels, metric))
            if (labels.agent, labels.agent_version) not in kept:
                for instrument in (self._invocations, self._duration, self._tokens, self._tool_calls):
                    instrument.remove_by_labels({"agent": labels.agent, "agent_version": labels.agent_version})

    def _of(self, labels: Labels, criterion: Criterion) -> _CriterionSeries:
        by_metric = self._series.setdefault(labels, {})
        series = by_metric.get(criterion.name)
        if series is None:
            values = _values(labels, criterion.name)
            score = self._score.labels(*values) if _is_bounded(criterion.scorer) else None
            outcomes = {verdict: self._evaluations.labels(*values, outcome) for verdict, outcome in OUTCOMES.items()}
            counts = COUNTS if isinstance(criterion.scorer, TrajectoryScorer) else ()
            calls = {count: self._calls.labels(*values, count) for count in counts}
            series = by_metric[criterion.name] = _CriterionSeries(score, outcomes, calls, _Exemplars())
        return series

    def _count_result(self, result: Result, series: _CriterionSeries, exemplar: dict[str, str], now: float) -> None:
        value = result.score.value
        score = 0.0 if value is None or series.score is None else _normalised(value, result.criterion.scorer)
        due = exemplar if series.exemplars.due(result.verdict, score, SCORE_BUCKETS, now) else None
        series.outcomes[result.verdict].inc(exemplar=due)
        if result.verdict == "not_evaluated":
            reason = result.score.reason if result.score.reason in REASONS else OTHER
            self._not_evaluated.labels(result.criterion.name, reason).inc()
        if value is None:
            return
        if series.score is not None:
            series.score.observe(score, due)
        for count, calls in series.calls.items():
            calls.inc(result.score.details["counts"][count])

    def _count_invocation(self, invocation: Invocation, labels: Labels, match: str) -> None:
        agent = labels.agent, labels.agent_version
        self._invocations.labels(*agent, match, "error" if invocation.error else "ok").inc()
        if invocation.duration_s is not None:
            self._duration.labels(*agent).observe(invocation.duration_s)
        if invocation.input_tokens is not None:
            self._tokens.labels(*agent, "input").observe(invocation.input_tokens)
        if invocation.output_tokens is not None:
            self._tokens.labels(*agent, "output").observe(invocation.output_tokens)
        if "no_tool_spans" not in invocation.flags:
            self._tool_calls.labels(*agent).observe(len(invocation.tool_calls))


def _values(labels: Labels, metric: str) -> tuple[str, str, str, str]:
    return labels.agent, labels.scenario, metric, labels.agent_version


def _remove(score: Histogram, verdicts: Counter, values: tuple[str, str, str, str]) -> None:
    score.remove(*values)
    for outcome in OUTCOMES.values():
        verdicts.remove(*values, outcome)


def _match(evaluation: Evaluation) -> str:
    match evaluation.match.unmatched:
        case None:
            return "scenario"
        case "scenario_conflict":
            return "ambiguous"
        case _:
            return "unmatched"


def _is_bounded(scorer: Scorer) -> bool:
    return math.isfinite(scorer.high - scorer.low) and scorer.high > scorer.low


def _normalised(value: float, scorer: Scorer) -> float:
    return min(1.0, max(0.0, (value - scorer.low) / (scorer.high - scorer.low)))

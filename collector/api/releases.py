"""Answers whether one version of an agent is better or worse than another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping
from itertools import chain

from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.api.queries import VerdictQuery
from pathgauge.collector.api.release_models import (
    MetricVerdict,
    NothingCompared,
    ReleaseVerdict,
    ScenarioDifference,
)
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluator
from pathgauge.collector.core.verdicts.comparison import Comparison, Scores, Stratum, Terms
from pathgauge.collector.core.verdicts.release import decide
from pathgauge.collector.core.verdicts.scale import scale_of
from pathgauge.collector.store.queries.stored_result import CriterionResult, StoredResult
from pathgauge.collector.store.queries.two_versions import READ_S, ReleaseResults
from pathgauge.collector.store.schema import name_of
from pathgauge.scorers.session_protocol import scores_sessions

MAX_SCENARIOS = 50
"""Scenarios that an answer lists for each metric."""


def verdict(
    sources: Sources, tenant: str | None, query: VerdictQuery, read_s: float = READ_S
) -> ReleaseVerdict:
    """Compare two versions by their stored results, which are read for at most `read_s` seconds.
    Raises `ProblemError` for a metric that no active criterion has, and without a store: there are
    no results then, however long somebody waits.
    """
    if sources.reading is None:
        detail = "store: found memory, expected a store on disk: without one no results are kept"
        raise ProblemError(409, detail)
    criteria = ComparedCriteria(sources.evaluator(), query.metric)
    read: Counter[str | None] = Counter()
    versions = query.version, query.against
    with sources.reading() as connection:
        found = ReleaseResults(connection, query.filter(tenant), versions, read_s)
        for result in found.newest_first():
            read[result.agent_version] += 1
            criteria.add(result, candidate=name_of(query.version))
        complete = found.complete
    for scores in criteria.scores.values():
        scores.reverse()
    terms = Terms(query.confidence, query.margin, query.min_effect)
    release = decide(criteria.scores, terms)
    of_version, of_baseline = read[name_of(query.version)], read[name_of(query.against)]
    return ReleaseVerdict(
        agent=query.agent,
        version=query.version,
        against=query.against,
        verdict=release.outcome,
        reason=_reason(of_version, of_baseline, len(criteria.scores), complete=complete),
        confidence=query.confidence,
        margin=query.margin,
        min_effect=query.min_effect,
        version_results=of_version,
        against_results=of_baseline,
        complete=complete,
        metrics=list(map(metric_verdict, release.comparisons)),
    )


class ComparedCriteria:
    """Sorts results by metric."""

    def __init__(
        self, evaluator: Evaluator, metrics: Iterable[str], *, of_sessions: bool = True
    ) -> None:
        """Without `metrics` and without `of_sessions`, none of the criteria of sessions."""
        self._common = _by_name(evaluator.criteria)
        self._overrides = {name: _by_name(own) for name, own in evaluator.overrides.items()}
        metrics = tuple(metrics)
        self.scores = {
            name: Scores(scale_of(criterion).measure)
            for name, criterion in self._wanted(metrics).items()
            if metrics or of_sessions or not scores_sessions(criterion.scorer)
        }

    def _wanted(self, metrics: tuple[str, ...]) -> Mapping[str, Criterion]:
        """Without `metrics`, those with a threshold, as in the gate; all if there is none."""
        every = {
            name: one
            for own in (*self._overrides.values(), self._common)
            for name, one in own.items()
        }
        metrics = tuple(chain.from_iterable(_split(name, every) for name in metrics))
        if unknown := [name for name in metrics if name not in every]:
            raise ProblemError(404, f"metric: found {unknown[0]}, expected {_some(every)}")
        if metrics:
            return {name: every[name] for name in metrics}
        owners = chain(self._overrides.values(), [self._common])
        judged = {name for own in owners for name in own if own[name].threshold is not None}
        return {name: one for name, one in every.items() if name in judged or not judged}

    def of(self, scenario: str | None) -> Mapping[str, Criterion]:
        """The criteria of a scenario, by name."""
        return self._overrides.get(scenario or "", self._common)

    def add(self, result: StoredResult, *, candidate: str) -> None:
        """Add a result, older than those of its scenario before."""
        active = self.of(result.scenario_id)
        for one in result.criteria:
            criterion = active.get(one.name)
            if criterion is not None and one.name in self.scores:
                self.scores[one.name].add(
                    _stratum(result, one, criterion),
                    one.value,
                    is_candidate=result.agent_version == candidate,
                )


def _split(given: str, known: Container[str]) -> list[str]:
    """The names that one parameter has. Names of criteria may have commas, too."""
    return [given] if given in known else list(filter(None, given.split(",")))


def _by_name(criteria: Iterable[Criterion]) -> Mapping[str, Criterion]:
    return {one.name: one for one in criteria}


def _stratum(result: StoredResult, one: CriterionResult, criterion: Criterion) -> Stratum:
    reference = result.reference_version if criterion.scorer.needs_reference else None
    measured_by = one.scorer, one.judge, reference or ""
    return Stratum(result.tenant, result.scenario_id or "", scale_of(criterion), measured_by)


def _some(names: Iterable[str]) -> str:
    return f"one of {', '.join(names)}" if names else "an active criterion, but there is none"


def _reason(
    of_version: int, of_baseline: int, metrics: int, *, complete: bool
) -> NothingCompared | None:
    if not complete and not (of_version and of_baseline):
        return "not_all_read"
    if not of_version:
        return "no_results_of_version"
    if not of_baseline:
        return "no_results_of_baseline"
    return None if metrics else "no_metric"


def metric_verdict(found: Comparison) -> MetricVerdict:
    """What a comparison has found, as the API says it."""
    return MetricVerdict(
        metric=found.metric,
        verdict=found.outcome,
        reason=found.reason,
        measure=found.measure,
        difference=found.mean("difference"),
        low=found.interval.low,
        high=found.interval.high,
        pairs=found.pairs,
        version_mean=found.mean("candidate"),
        against_mean=found.mean("baseline"),
        version_scored=found.candidate.scored,
        version_not_scored=found.candidate.not_scored,
        against_scored=found.baseline.scored,
        against_not_scored=found.baseline.not_scored,
        scenarios=[
            ScenarioDifference(
                tenant=one.tenant,
                scenario_id=one.scenario or None,
                pairs=one.pairs,
                difference=one.difference,
                version_mean=one.candidate,
                against_mean=one.baseline,
            )
            for one in found.scenarios[:MAX_SCENARIOS]
        ],
    )

"""The answer of the API about a release: a verdict, and how it was reached."""

from __future__ import annotations

from typing import Literal

from pathgauge.collector.api.models import Model
from pathgauge.collector.core.verdicts.comparison import Outcome, Reason
from pathgauge.collector.core.verdicts.scale import Measure

NothingCompared = Literal[
    "no_results_of_version", "no_results_of_baseline", "no_metric", "not_all_read"
]


class ScenarioDifference(Model):
    """The pairs of one scenario."""

    tenant: str
    scenario_id: str | None
    pairs: int
    difference: float
    version_mean: float
    against_mean: float


class MetricVerdict(Model):
    """Two versions, compared by one metric."""

    metric: str
    verdict: Outcome
    reason: Reason | None
    """Why it is undecided."""
    measure: Measure
    """`mean`: differences are shares of the range of the scores. `order`: the probability that the
    version is better, less that of the opposite.
    """
    difference: float | None
    """The mean over all pairs; positive is better."""
    low: float
    """Lower end of the confidence interval of the difference."""
    high: float
    pairs: int
    version_mean: float | None
    """The mean score in the pairs."""
    against_mean: float | None
    version_scored: int
    """Results with a score."""
    version_not_scored: int
    against_scored: int
    against_not_scored: int
    scenarios: list[ScenarioDifference]
    """The worst first, at most 50."""


class ReleaseVerdict(Model):
    """Whether a version of an agent is better or worse than another."""

    agent: str
    version: str
    against: str
    verdict: Outcome
    reason: NothingCompared | None
    """Why nothing was compared."""
    confidence: float
    """The probability that all intervals hold, at all times of looking together."""
    margin: float
    min_effect: float
    version_results: int
    against_results: int
    complete: bool
    """Whether all results were read; else only the newest of each scenario, because of the time."""
    metrics: list[MetricVerdict]
    """The worst first."""

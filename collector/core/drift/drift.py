"""What is known about a stream of scores: the values behind gauges, alerts and pages."""

from __future__ import annotations

from typing import Literal, NamedTuple

from pathgauge.collector.core.drift.adjusting import adjusted
from pathgauge.collector.core.drift.series import Series
from pathgauge.collector.core.drift.watch import Watch

Against = Literal["threshold", "learned", "version", "scenarios"]
"""What scores are compared with: the threshold or objective of their series, its learned baseline,
the previous version of the agent, or, for all scenarios of an agent together, the baseline of each
scenario.
"""


class SeriesKey(NamedTuple):
    """What scores have in common."""

    agent: str
    scenario: str
    """Empty for all scenarios of an agent together."""
    metric: str
    judge: str = ""
    tenant: str = ""


class Drift(NamedTuple):
    """A stream of scores and the evidence that it became worse.

    Means and baselines are in the scale of the metric. Those of all scenarios of an agent together
    are scores from 0 to 1, where more is better.
    """

    key: SeriesKey
    against: Against
    version: str | None
    """The version that is compared with the previous one."""
    evidence: float
    """In days: how rarely chance alone brings so much."""
    adjusted: float
    """The same, adjusted for the number of streams of the tenant."""
    alarm: bool
    """Whether the adjusted evidence is above the limit, since a change."""
    baseline: float | None
    """`None`: it is being learned, so there is no evidence."""
    since: float | None
    """When scores became worse, in Unix seconds; `None` if nothing points to a change."""
    raised: float | None
    """When the evidence of the stream alone raised an alarm that is still open, in Unix seconds."""
    samples: int
    """Number of scores since the change."""
    mean: float | None
    """Mean since the change."""
    mean_before: float | None
    episodes: int
    """How often the evidence of the stream alone raised an alarm so far."""
    last: float | None
    """When the last score was compared, in Unix seconds."""
    replaced: bool = False
    """Whether other versions have had scores since then. Always false but against a version."""


def with_adjusted_evidence(drifts: list[Drift], limit_days: float) -> list[Drift]:
    """The same, with the evidence adjusted for the number of streams that were compared at all. It
    decides about alarms, as it does about alerts.

    Each tenant counts apart, so that none learns from its alarms what happens to others. So do
    comparisons of versions: they have an alert of their own, which would come later for each series
    that has one anyway.
    """
    families: dict[tuple[str, bool], list[int]] = {}
    for index, one in enumerate(drifts):
        if one.last is not None:
            family = one.key.tenant, one.against == "version"
            families.setdefault(family, []).append(index)
    found = [0.0] * len(drifts)
    for members in families.values():
        evidence = adjusted([drifts[index].evidence for index in members])
        for index, value in zip(members, evidence, strict=True):
            found[index] = value
    return [
        one._replace(adjusted=value, alarm=one.alarm and value > limit_days)
        for one, value in zip(drifts, found, strict=True)
    ]


def of_series(key: SeriesKey, series: Series) -> Drift:
    """A series against its baseline."""
    against: Against = "learned" if series.measure.target is None else "threshold"
    score = series.baseline
    baseline = None if score is None else series.value(score)
    return _drift(key, against, series.watch, baseline, mean_before=series.mean_before)


def of_version(key: SeriesKey, series: Series) -> Drift | None:
    """The newest version against the previous one; `None` if there is only one."""
    versions = series.versions
    if versions is None or versions.previous is None:
        return None
    baseline, before = (
        None if mean is None else series.value(mean)
        for mean in (versions.baseline, versions.mean_before)
    )
    found = _drift(
        key, "version", versions.watch, baseline, mean_before=before, version=versions.newest
    )
    return found._replace(replaced=found.last is not None and series.last > found.last)


def of_agent(key: SeriesKey, watch: Watch) -> Drift:
    """All scenarios of an agent against their baselines. The baseline shown is the mean of those of
    the scores since the change.
    """
    change = watch.change()
    return _drift(key, "scenarios", watch, change.expected if change else None)


def _drift(
    key: SeriesKey,
    against: Against,
    watch: Watch,
    baseline: float | None,
    *,
    mean_before: float | None = None,
    version: str | None = None,
) -> Drift:
    change, episode = watch.change(), watch.episode
    return Drift(
        key=key,
        against=against,
        version=version,
        evidence=watch.evidence,
        adjusted=0.0,
        alarm=episode is not None,
        baseline=baseline,
        since=change.since if change else None,
        raised=episode.raised if episode else None,
        samples=change.samples if change else 0,
        mean=change.value if change else None,
        mean_before=mean_before,
        episodes=watch.episodes,
        last=watch.last,
    )

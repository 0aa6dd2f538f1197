"""The series about drift. Alerts compare the adjusted evidence with a number of days.

The series that describe a change exist only while there is noticeable evidence for one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from pathgauge.collector.core.drift.drift import Drift
from pathgauge.collector.core.drift.policy import DAY_S
from pathgauge.collector.sinks.prometheus.drift.recording import Explained
from pathgauge.collector.sinks.prometheus.exposition.gauge_family import GaugeFamily
from pathgauge.collector.sinks.prometheus.judge_label import JUDGE, with_judge
from pathgauge.collector.sinks.prometheus.labels import TenantLabel

NOTICEABLE_DAYS = 30.0
"""Changes with less evidence are not described, in days."""
SILENT_S = 3 * DAY_S
"""Streams without a score for so long are not shown, since nothing could end their alarm. An alarm
outlasts a weekend without traffic.
"""
ROLLED_BACK_S = DAY_S
"""A version without a score for so long was rolled back, if others have had scores since."""
MAX_MISSES = 10
"""Rows of one series: five if its newest version has an alarm, too."""
_LABELS = ("agent", "scenario", "metric", "against")
_STREAM = {
    "evidence_days": (
        "Evidence that scores became worse, in days. N means: by chance alone, this much evidence"
        " is reached once in N days."
    ),
    "adjusted_evidence_days": (
        "Evidence that scores became worse, adjusted for the number of streams of the tenant."
    ),
    "baseline": "Mean score that recent ones are compared with, in the scale of the metric.",
}
_CHANGE = {
    "mean": "Mean score since the change, in the scale of the metric.",
    "mean_before": "Mean score before the change, in the scale of the metric.",
    "samples": "Number of scores since the change.",
}


def drift_gauges(
    streams: Iterable[Explained],
    now: float,
    tenant: TenantLabel,
    *,
    limit_days: float | None,
) -> Iterator[GaugeFamily]:
    """All series about drift; `now` is in Unix seconds. An alert is raised above `limit_days`;
    `None`: no drift is detected.
    """
    if limit_days is None:
        return
    limit = GaugeFamily("pathgauge_drift_limit", "Evidence that raises an alert, in days.")
    limit.add_metric((), limit_days)
    yield limit
    names = tenant.names(*_LABELS, JUDGE)
    families = {
        name: GaugeFamily(f"pathgauge_drift_{name}", text, labels=names)
        for name, text in (_STREAM | _CHANGE).items()
    }
    since = GaugeFamily(
        "pathgauge_drift_since_timestamp_seconds",
        "Unix time since when scores are worse. `agent_version` was first seen about then.",
        labels=tenant.names(*_LABELS, "agent_version", JUDGE),
    )
    misses = GaugeFamily(
        "pathgauge_drift_misses",
        "Share of the additional loss since the change that a kind of miss explains, from 0 to 1.",
        labels=tenant.names(
            "agent", "scenario", "metric", "against", "kind", "tool", "argument", JUDGE
        ),
    )
    streams = list(streams)
    explained = Counter(one.drift.key for one in streams if one.changes)
    for drift, changes, version in streams:
        if drift.last is None or is_silent(drift.last, now, replaced=drift.replaced):
            continue
        key = drift.key
        metric = tenant.values(key.tenant, key.agent, key.scenario, key.metric)
        labels = with_judge((*metric, drift.against), key.judge)
        _add(families, labels, _of_stream(drift))
        if not (drift.alarm or drift.evidence >= NOTICEABLE_DAYS):
            continue
        _add(families, labels, _of_change(drift))
        if drift.since is not None:
            since.add_metric(with_judge((*metric, drift.against, version), key.judge), drift.since)
        for change in changes[: MAX_MISSES // max(1, explained[key])]:
            of = (*metric, drift.against, *change.miss)
            misses.add_metric(with_judge(of, key.judge), change.share)
    yield from families.values()
    yield since
    yield misses


def is_silent(last: float, now: float, *, replaced: bool) -> bool:
    """Whether a stream with its last score at `last` is not shown at `now`, in Unix seconds.
    `replaced`: other versions have had scores since.
    """
    return now - last > (ROLLED_BACK_S if replaced else SILENT_S)


def _of_stream(drift: Drift) -> dict[str, float | None]:
    return {
        "evidence_days": drift.evidence,
        "adjusted_evidence_days": drift.adjusted,
        "baseline": drift.baseline,
    }


def _of_change(drift: Drift) -> dict[str, float | None]:
    return {"mean": drift.mean, "mean_before": drift.mean_before, "samples": drift.samples}


def _add(
    families: Mapping[str, GaugeFamily],
    labels: tuple[str, ...],
    values: Mapping[str, float | None],
) -> None:
    for name, value in values.items():
        if value is not None:
            families[name].add_metric(labels, value)

"""The series about drift without references. An alert compares the evidence with the same limit as
that of scores.

What changed has series only during an episode, at most ten for each stream: names of paths are not
bounded over time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pathgauge.collector.core.evaluations.label_values import label_value
from pathgauge.collector.core.traffic.changes import Change
from pathgauge.collector.core.traffic.drift import IDLE, TrafficStatus
from pathgauge.collector.sinks.prometheus.drift.gauges import SILENT_S
from pathgauge.collector.sinks.prometheus.exposition.gauge_family import GaugeFamily
from pathgauge.collector.sinks.prometheus.labels import TenantLabel

MAX_NAME_BYTES = 200
"""Longer names of paths are cut."""
_STREAM = ("agent", "agent_version")


def traffic_gauges(
    streams: Iterable[TrafficStatus], now: float, tenant: TenantLabel
) -> Iterator[GaugeFamily]:
    """All of these series; `now` is in Unix seconds."""
    names = tenant.names(*_STREAM)
    evidence = GaugeFamily(
        "pathgauge_traffic_drift_evidence_days",
        "Evidence that an agent calls other tools than before, in days. N means: by chance alone,"
        " this much evidence is reached once in N days.",
        labels=names,
    )
    since = GaugeFamily(
        "pathgauge_traffic_drift_since_timestamp_seconds",
        "Unix time since when an agent calls other tools.",
        labels=names,
    )
    changes = GaugeFamily(
        "pathgauge_traffic_drift_changes",
        "Share of the difference that a tool, transition, path or number of calls explains, 0 to 1."
        " They overlap.",
        labels=(*names, "kind", "what", "direction"),
    )
    status = GaugeFamily(
        "pathgauge_traffic_drift_status",
        "1 for the status of the drift detection without references.",
        labels=(*names, "status"),
    )
    invocations = GaugeFamily(
        "pathgauge_traffic_drift_invocations",
        "Invocations to learn from so far; once learned, those of the last seven days, at most"
        " 512.",
        labels=names,
    )
    missing = GaugeFamily(
        "pathgauge_traffic_drift_missing_invocations",
        "How many more invocations are needed to learn what is usual, or to see changes.",
        labels=names,
    )
    for stream in streams:
        if now - stream.last > IDLE:
            continue
        labels = tenant.values(stream.tenant, stream.agent, stream.version or "")
        status.add_metric((*labels, stream.status), 1.0)
        invocations.add_metric(labels, stream.invocations)
        missing.add_metric(labels, stream.missing_invocations)
        if not stream.baseline_invocations or now - stream.last > SILENT_S:
            continue
        evidence.add_metric(labels, stream.evidence_days)
        if stream.episode is not None:
            since.add_metric(labels, stream.episode.since)
            for of_change, share in _shares(stream.episode.changes).items():
                changes.add_metric((*labels, *of_change), share)
    yield from (evidence, since, changes, status, invocations, missing)


def _shares(changes: Iterable[Change]) -> dict[tuple[str, str, str], float]:
    """Shares by label values. Of names that are equal after the cut, the first one stays."""
    shares: dict[tuple[str, str, str], float] = {}
    for one in changes:
        name = label_value(one.name, MAX_NAME_BYTES)
        shares.setdefault((one.kind, name, one.direction), one.share)
    return shares

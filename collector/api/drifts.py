"""Answers which scores became worse, and what changed with them."""

from __future__ import annotations

from pathgauge.collector.api.drift_models import ChangedMiss, DriftReport, ScoreDrift
from pathgauge.collector.api.models import time_of
from pathgauge.collector.api.queries import DriftQuery
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.api.traffic import traffic
from pathgauge.collector.sinks.prometheus.drift.recording import Explained

MAX_STREAMS = 200
"""Of one answer."""


def report(sources: Sources, tenant: str | None, query: DriftQuery) -> DriftReport:
    """The streams that the query selects."""
    tenant = query.tenant if tenant is None else tenant
    found = [one for one in sources.drifts() if _is_wanted(one, tenant, query)]
    found.sort(key=lambda one: one.drift.adjusted, reverse=True)
    return DriftReport(
        streams=list(map(_stream, found[:MAX_STREAMS])),
        further_streams=max(0, len(found) - MAX_STREAMS),
        traffic=traffic(sources, tenant, query),
    )


def _is_wanted(one: Explained, tenant: str | None, query: DriftQuery) -> bool:
    key = one.drift.key
    wanted = {"agent": query.agent, "scenario": query.scenario, "metric": query.metric}
    return tenant in (None, key.tenant) and all(
        value is None or getattr(key, name) == value for name, value in wanted.items()
    )


def _stream(one: Explained) -> ScoreDrift:
    drift = one.drift
    key = drift.key
    return ScoreDrift(
        tenant=key.tenant,
        agent=key.agent,
        scenario_id=key.scenario or None,
        metric=key.metric,
        judge=key.judge or None,
        against=drift.against,
        version=drift.version,
        alarm=drift.alarm,
        evidence_days=drift.evidence,
        adjusted_evidence_days=drift.adjusted,
        baseline=drift.baseline,
        mean=drift.mean,
        mean_before=drift.mean_before,
        samples=drift.samples,
        since=None if drift.since is None else time_of(drift.since),
        after_version=one.after_version or None,
        last=None if drift.last is None else time_of(drift.last),
        replaced=drift.replaced,
        changes=[
            ChangedMiss(
                **change.miss._asdict(),
                rate=change.rate,
                rate_before=change.rate_before,
                share=change.share,
            )
            for change in one.changes
        ],
    )

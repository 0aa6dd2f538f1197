"""Answers which agents call other tools than before, without references."""

from __future__ import annotations

from pathgauge.collector.api.models import time_of
from pathgauge.collector.api.queries import DriftQuery
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.api.traffic_models import ChangedBehaviour, TrafficDrift
from pathgauge.collector.core.traffic.drift import TrafficStatus


def traffic(sources: Sources, tenant: str | None, query: DriftQuery) -> list[TrafficDrift]:
    """The streams that the query selects, those with the most evidence first; none for a scenario
    or metric.
    """
    if query.scenario is not None or query.metric is not None:
        return []
    found = [
        one
        for one in sources.traffic()
        if tenant in (None, one.tenant) and query.agent in (None, one.agent)
    ]
    found.sort(key=lambda one: (one.episode is None, -one.evidence_days))
    return list(map(_answer, found))


def _answer(one: TrafficStatus) -> TrafficDrift:
    episode = one.episode
    return TrafficDrift(
        tenant=one.tenant,
        agent=one.agent,
        version=one.version,
        status=one.status,
        alarm=episode is not None,
        evidence_days=one.evidence_days,
        invocations=one.invocations,
        missing_invocations=one.missing_invocations,
        missing_hours=one.missing_hours,
        since=None if episode is None else time_of(episode.since),
        last=time_of(one.last),
        changes=[
            ChangedBehaviour(
                kind=change.kind,
                name=change.name,
                direction=change.direction,
                rate=change.since,
                rate_before=change.before,
                share=change.share,
            )
            for change in (() if episode is None else episode.changes)
        ],
    )

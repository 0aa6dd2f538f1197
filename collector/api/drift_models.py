"""The answer of the API about drift: which streams of scores became worse, which agents call
other tools, and what changed.
"""

from __future__ import annotations

from datetime import datetime

from pathgauge.collector.api.models import Model
from pathgauge.collector.api.traffic_models import TrafficDrift
from pathgauge.collector.core.drift.drift import Against
from pathgauge.collector.core.evidence.miss import Kind


class ChangedMiss(Model):
    """A tool call that costs more of the score since the change than before."""

    kind: Kind
    tool: str
    argument: str
    rate: float
    """How often per evaluation, since the change."""
    rate_before: float
    share: float
    """Its share of the additional loss, from 0 to 1."""


class ScoreDrift(Model):
    """A stream of scores, and the evidence that it became worse. Means are in the scale of the
    metric.
    """

    tenant: str
    agent: str
    scenario_id: str | None
    """`None`: all scenarios of the agent together, as scores from 0 to 1."""
    metric: str
    judge: str | None
    against: Against
    """What scores are compared with."""
    version: str | None
    """The version that is compared with the previous one."""
    alarm: bool
    evidence_days: float
    """N means: by chance alone, this much evidence is reached once in N days."""
    adjusted_evidence_days: float
    """The same, adjusted for the number of streams of the tenant. It decides about `alarm`."""
    baseline: float | None
    """`None`: it is being learned."""
    mean: float | None
    """Since the change."""
    mean_before: float | None
    samples: int
    """Scores since the change, without the newest ones while these suggest a recovery."""
    since: datetime | None
    """When scores became worse."""
    after_version: str | None
    """The version of the agent that was first seen within six hours of that time. In a comparison
    of versions, `version` or none.
    """
    last: datetime | None
    """The last score that was compared."""
    replaced: bool = False
    """Whether other versions have had scores since then, so that the version may have been rolled
    back.
    """
    changes: list[ChangedMiss]
    """What changed, while an alarm is open; the most costly first, at most ten."""


class DriftReport(Model):
    """Streams of scores, those with the most evidence first."""

    streams: list[ScoreDrift]
    further_streams: int
    """Streams that are not listed."""
    traffic: list[TrafficDrift]
    """The tool calls of agents without references, open alarms first; none for a scenario or a
    metric.
    """

"""The answer of the API about drift without references: which agents call other tools."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from pathgauge.collector.api.models import Model
from pathgauge.collector.core.traffic.drift import Status
from pathgauge.collector.core.traffic.events import Kind


class ChangedBehaviour(Model):
    """Something that invocations do more or less often since the change."""

    kind: Kind
    name: str
    """A tool, two tools that follow each other, a path, or a range of numbers of calls."""
    direction: Literal["new", "more", "fewer", "vanished"]
    rate: float
    """Share of the invocations since the change."""
    rate_before: float
    share: float
    """Share of the difference that it explains; they overlap."""


class TrafficDrift(Model):
    """The tool calls of an agent, and the evidence that they changed."""

    tenant: str
    agent: str
    version: str | None
    """A version on trial, compared with the earlier traffic; `None`: all others."""
    status: Status
    alarm: bool
    evidence_days: float
    """N means: by chance alone, this much evidence is reached once in N days."""
    invocations: int
    """To learn from so far; once learned, those of the last seven days, at most 512."""
    missing_invocations: int
    """How many more are needed to learn what is usual, or to see changes."""
    missing_hours: float
    """Time that learning still takes at least."""
    since: datetime | None
    """When the change of the open episode began."""
    last: datetime
    """The last invocation."""
    changes: list[ChangedBehaviour]
    """What changed most, while an alarm is open, at most ten."""

"""The section `drift`: when scores that became worse, or other tool calls, raise an alarm."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from pathgauge.collector.config.section import Section
from pathgauge.collector.core.documents.quantities import Count, Duration, at_least, parse_duration
from pathgauge.collector.core.drift.policy import DAY_S, DriftPolicy


class Drift(Section):
    """The drift detection. Times in seconds."""

    false_alarm_interval: Annotated[Duration, at_least(parse_duration, "1d")] = 365.0 * DAY_S
    """The mean time between two false alarms of one series, and of one agent, is at least this."""
    margin: Annotated[float, Field(gt=0, le=0.5, allow_inf_nan=False)] = 0.01
    """The least distance of a learned baseline from the mean, as a share of the range."""
    min_scores: Count = 50
    """A baseline is not learned from fewer scores."""
    max_series: Count = 10_000
    """Of one agent, scenario, metric and judge. The one that was idle for longest gives way."""
    baseline_versions: dict[str, str] = Field(default_factory=dict)
    """The version that the newest one is compared with, by agent. For other agents it is the
    previous version.
    """
    max_agents: Count = 100
    """Whose tool calls are watched without references. One that was idle for 28 days gives way."""

    @property
    def limit_days(self) -> float:
        """The evidence that raises an alarm."""
        return self.false_alarm_interval / DAY_S

    def policy(self) -> DriftPolicy:
        """The options of the detectors."""
        return DriftPolicy(
            evidence_days=self.limit_days,
            margin=self.margin,
            min_scores=self.min_scores,
        )

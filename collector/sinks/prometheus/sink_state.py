"""What a sink holds. The thread that publishes and those that scrape share it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

from pathgauge.collector.sinks.prometheus.active_criteria import ActiveCriteria
from pathgauge.collector.sinks.prometheus.drift.recording import DriftRecording
from pathgauge.collector.sinks.prometheus.durable_family import Family
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.durable_series import StoredValues
from pathgauge.collector.sinks.prometheus.evaluation_metrics import EvaluationMetrics
from pathgauge.collector.sinks.prometheus.expected_scenarios import Expected
from pathgauge.collector.sinks.prometheus.live_series import LiveSeries
from pathgauge.collector.sinks.prometheus.recent_scores import RecentScores
from pathgauge.collector.sinks.prometheus.traffic.recording import TrafficRecording


@dataclass(slots=True)
class SinkState:
    """Evaluations, reloads and scrapes change or read it together, while they hold `lock`. A scrape
    holds it while it copies, not while it writes text.
    """

    criteria: ActiveCriteria
    scores: RecentScores
    series: LiveSeries
    metrics: DurableMetrics
    evaluation_metrics: EvaluationMetrics
    drift: DriftRecording
    traffic: TrafficRecording
    expected_since: Family[StoredValues]
    """Of each expected scenario, for the store."""
    expected: Mapping[str, Expected] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def set_back(self, now: float) -> None:
        """The clock was ahead: times after `now` count as `now`."""
        self.scores.set_back(now)
        self.series.set_back(now)
        self.expected = {
            scenario: one._replace(since=min(one.since, now))
            for scenario, one in self.expected.items()
        }

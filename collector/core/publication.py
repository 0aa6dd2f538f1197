"""What a scorer tells the gauge with each commit.

With one process the pipeline thread hands events to the sinks directly. Otherwise a scorer stores a
publication in the transaction of its results, and the gauge reads the publications of each scorer
in their order, each once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pathgauge.collector.core.pipeline_events import PublishedEvent
from pathgauge.collector.core.stored_series import Row


@dataclass(frozen=True, slots=True)
class Publication:
    """The events of one commit, and what was counted since the commit before it."""

    wall: float
    """Unix time of the commit."""
    events: Sequence[PublishedEvent] = ()
    """Their invocations have no content."""
    counts: Sequence[Row] = ()
    """Increments of counters: name and label values, and one number."""
    records: Sequence[Row] = ()
    """What the telemetry of agent versions has shown, as `AgentRecords.pending` returns it."""
    evidence: Mapping[int, bytes] = field(default_factory=dict)
    """Encoded evidence, by the index of its event. Not every event has one."""

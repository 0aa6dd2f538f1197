"""Decides when a trace, or a single invocation in it, can be read.

A trace is complete when no parent is missing: every top-most span has no parent, or was called from
another process, which may never send its own spans. An ended root span is not enough: it may have
answered its request while the agent below it is still working.

A long trace may never be quiet. An invocation in it is read separately as soon as its entry agent
is certainly the top-most one and no record arrived below it for the quiet period (`settle`). See
`Ancestry.known_tops` for the case that the parent of the entry agent has not arrived.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pathgauge.collector.core.otlp.spans import ClosedBy, Trace
from pathgauge.collector.core.traces.ancestry import Ancestry, is_complete
from pathgauge.collector.core.traces.open_trace import OpenTrace


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of the assembler. Times in seconds, sizes in bytes."""

    settle: float = 6.0
    """Quiet period after which a complete trace is read."""
    idle: float = 30.0
    """Quiet period after which an incomplete trace is read."""
    max_age: float = 600.0
    """Age at which a trace is read even if spans still arrive."""
    late_ttl: float = 300.0
    """Allowed lateness: how long a read trace is kept for late spans."""
    max_trace_spans: int = 10_000
    max_trace_bytes: int = 16 << 20
    max_open_bytes: int = 192 << 20
    max_retained_bytes: int = 32 << 20
    """Memory of traces that are kept for late spans."""
    max_forgotten: int = 200_000
    """Number of trace ids that are remembered after `late_ttl`."""


def closed_by(trace: OpenTrace, bounds: Bounds, now: float) -> ClosedBy | None:
    """Why the trace can be read at `now`; `None` while it must wait."""
    if now >= trace.last + bounds.settle and is_complete(trace.spans):
        return "root_ended"
    if now >= trace.last + bounds.idle:
        return "idle"
    return "too_old" if now >= trace.first + bounds.max_age else None


def quiet_invocations(trace: OpenTrace, bounds: Bounds, now: float) -> Iterator[Trace]:
    """Complete invocations of a busy trace that have been quiet for `settle`. Each is returned
    once, and again if further records arrived for it.
    """
    if not trace.entry_agents:
        return
    ancestry = Ancestry(trace.spans, trace.entry_agents)
    for entry_agent in ancestry.known_tops():
        below = ancestry.below(entry_agent)
        last = max(trace.arrived[span.span_id] for span in below)
        if now >= last + bounds.settle and trace.early_reads.get(entry_agent.span_id) != last:
            trace.early_reads[entry_agent.span_id] = last
            yield trace.readable([*below, *ancestry.above(entry_agent)], "root_ended")

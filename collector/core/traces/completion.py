"""When a trace, or an invocation in it, can be read: an open trace, the bounds and the time come
in, the reason goes out.

A trace is complete when every known part of it begins with a span without parent, or was entered
from another process, which may never tell of the caller. A root alone is not enough: it may have
answered its request while the agent below it still works. In a trace that never falls silent an
invocation is read on its own as soon as its anchor is known to be the top-most one and nothing
arrived below it for `settle`. Under a parent that has not arrived, that is known only when the
anchors there bear one name and a later one exists: the parent is then a session or a batch, not a
workflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pathgauge.collector.core.otlp.spans import ClosedBy, Trace
from pathgauge.collector.core.traces.ancestry import Ancestry, is_complete
from pathgauge.collector.core.traces.open_trace import OpenTrace


@dataclass(frozen=True, slots=True)
class Bounds:
    """Times in seconds, sizes in bytes."""

    settle: float = 6.0
    idle: float = 30.0
    max_age: float = 600.0
    late_ttl: float = 300.0
    max_trace_spans: int = 10_000
    max_trace_bytes: int = 16 << 20
    max_open_bytes: int = 192 << 20
    max_retained_bytes: int = 32 << 20
    max_forgotten: int = 200_000


def closed_by(trace: OpenTrace, bounds: Bounds, now: float) -> ClosedBy | None:
    """What makes the trace readable at `now`; `None` while it has to wait."""
    if now >= trace.last + bounds.settle and is_complete(trace.spans):
        return "root_ended"
    if now >= trace.last + bounds.idle:
        return "idle"
    return "too_old" if now >= trace.first + bounds.max_age else None


def settled_invocations(trace: OpenTrace, bounds: Bounds, now: float) -> Iterator[Trace]:
    """Invocations of a busy trace that are known to be whole and have been quiet long enough; each
    is given once.
    """
    if not trace.entry_agents:
        return
    lineage = Ancestry(trace.spans, trace.entry_agents)
    for entry_agent in lineage.known_tops():
        below = lineage.below(entry_agent)
        last = max(trace.arrived[span.span_id] for span in below)
        if now >= last + bounds.settle and trace.settled.get(entry_agent.span_id) != last:
            trace.settled[entry_agent.span_id] = last
            yield trace.readable([*below, *lineage.above(entry_agent)], "root_ended")

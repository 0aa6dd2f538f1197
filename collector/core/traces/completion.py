"""Decides when a trace, or a single invocation in it, can be read.

A trace is complete when no parent is missing: every top-most span has no parent, or was called from
another process, which may never send its own spans. An ended root span is not enough: it may have
answered its request while the agent below it is still working.

Late records have the whole trace read again, so the cost of each is in proportion to the size of
the trace. The first ones have it read again as soon as it is quiet. After that, it is read again
only after a pause in proportion to its size, at most `late_ttl`.

A long trace may never be quiet. An invocation in it is read separately as soon as its entry agent
is certainly the top-most one and no record arrived below it for the quiet period (`settle`). See
`Ancestry.known_tops` for the case that the parent of the entry agent has not arrived. A span that
ran meanwhile, and whose parent has not arrived, may be part of the invocation: half of a trajectory
must not be scored as if it were the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pathgauge.collector.core.otlp.spans import ClosedBy, Trace
from pathgauge.collector.core.traces.ancestry import Ancestry, is_complete
from pathgauge.collector.core.traces.open_trace import SPAN_OVERHEAD, OpenTrace


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
    max_reading_cpu: float = 10.0
    """CPU time for reading one trace."""
    max_forgotten: int = 200_000
    """Number of trace ids that are remembered after `late_ttl`."""


REREADING_BYTES_PER_S = 14_000
"""How fast one trace may be read again: 4 MiB in five minutes. Reading them takes about 0.4 s of
CPU time.
"""


def pause_after_reading(size: int, bounds: Bounds) -> float:
    """How long a trace of `size` bytes that was read again must wait for the next time."""
    return min(bounds.late_ttl, size / REREADING_BYTES_PER_S)


def is_too_big(trace: OpenTrace, bounds: Bounds) -> bool:
    """Whether a trace exceeds its limits, so that it is closed at once."""
    return len(trace.spans) > bounds.max_trace_spans or trace.size > bounds.max_trace_bytes


def closed_by(trace: OpenTrace, bounds: Bounds, now: float) -> ClosedBy | None:
    """Why the trace can be read at `now`; `None` while it must wait."""
    if now >= trace.last + bounds.settle and is_complete(trace.spans):
        return "root_ended"
    if now >= trace.last + bounds.idle:
        return "idle"
    return "too_old" if now >= trace.first + bounds.max_age else None


def quiet_invocations(trace: OpenTrace, bounds: Bounds, now: float) -> Iterator[Trace]:
    """Complete invocations of a busy trace that have been quiet for `settle`. Each is returned
    once, and again if further records arrived for it, but not before `trace.next_reading`.
    """
    if not trace.entry_agents:
        return
    ancestry = Ancestry(trace.spans, trace.entry_agents)
    logs = trace.logs_by_span()
    read = dict.fromkeys(trace.entry_agents[: trace.read_entry_agents], trace.read_until)
    read |= trace.early_reads
    for entry_agent in ancestry.known_tops():
        read_until = read.get(entry_agent.span_id)
        if read_until is not None and now < trace.next_reading:
            continue
        if ancestry.may_lack_spans(entry_agent):
            continue  # the whole trace waits for the missing parent, at most until `idle`
        below = ancestry.below(entry_agent)
        last = max(trace.arrived[span.span_id] for span in below)
        if now >= last + bounds.settle and (read_until is None or last > read_until):
            trace.early_reads[entry_agent.span_id] = last
            if read_until is not None:
                size = sum(len(span.raw) + SPAN_OVERHEAD for span in below)
                trace.next_reading = now + pause_after_reading(size, bounds)
            yield trace.part([*below, *ancestry.above(entry_agent)], logs, "root_ended")

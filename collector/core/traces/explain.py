"""Explains why a trace is still open, for `/debug/traces`.

The explanation contains ids and numbers only, no names or attributes of spans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pathgauge.collector.core.traces.ancestry import is_complete, missing_parents
from pathgauge.collector.core.traces.completion import Bounds
from pathgauge.collector.core.traces.open_trace import OpenTrace

_MAX_IDS = 5
_BEHIND_S = 1.0
"""A larger delay of the pipeline is mentioned as a reason."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An open trace. All times in seconds."""

    tenant: str
    trace_id: str
    age: float
    """Since its first record, or since the first late record after it was read."""
    silence: float
    """Since its newest record."""
    spans: int | None
    """`None`: the trace was spilled to the journal."""
    log_records: int | None
    journal_rows: int
    damaged: bool
    """Whether one of its journal rows could not be read."""
    read_before: bool
    """Whether it was read before, so that the next reading may cause revisions."""
    looked_at_in: float
    """Time until the assembler checks it again; negative when overdue."""
    waits_for: tuple[str, ...]


def explain(trace: OpenTrace, bounds: Bounds, now: float) -> Waiting:
    """The state of `trace` at `now`, and what it still waits for."""
    return Waiting(
        tenant=trace.key[0],
        trace_id=trace.key[1],
        age=now - trace.first,
        silence=now - trace.last,
        spans=None if trace.spilled else len(trace.spans),
        log_records=None if trace.spilled else len(trace.logs),
        journal_rows=len(trace.rows),
        damaged=trace.damaged,
        read_before=trace.completed,
        looked_at_in=trace.due - now,
        waits_for=tuple(_reasons(trace, bounds, now)),
    )


def _reasons(trace: OpenTrace, bounds: Bounds, now: float) -> Iterator[str]:
    if now - trace.due >= _BEHIND_S:
        yield f"the pipeline, which is {now - trace.due:.1f} s behind"
    if trace.unchanged_since is not None:
        yield "nothing: since it was read, only copies of its records arrived"
        return
    if trace.is_paused(now):
        pause = trace.next_reading - now
        yield f"the end of the pause after it was read again: in {pause:.1f} s (late_ttl)"
        return
    silence, age = now - trace.last, now - trace.first
    settle = f"quiet: {silence:.1f} of {bounds.settle:g} s (settle)"
    idle = f"quiet: {silence:.1f} of {bounds.idle:g} s (idle)"
    if trace.spilled:
        yield "its spans to be read back from the journal"
        yield f"{settle} if it is complete, else of {bounds.idle:g} s (idle)"
        return
    missing = list(_missing(trace))
    yield from missing
    yield from _unfinished(trace)
    yield idle if missing else settle
    yield f"or age: {age:.1f} of {bounds.max_age:g} s (max_age)"


def _missing(trace: OpenTrace) -> Iterator[str]:
    """Reasons why the trace is incomplete, so that it waits for `idle` instead of `settle`."""
    parents = missing_parents(trace.spans)
    if not trace.spans:
        yield "a span: only log records have arrived"
    elif parents:
        yield f"a parent that has not arrived: {_ids(parents)}"
    elif not is_complete(trace.spans):
        yield "a span without parent: the parents form a cycle"


def _unfinished(trace: OpenTrace) -> Iterator[str]:
    """Missing parts that do not delay the reading."""
    running = [span_id for span_id in trace.entry_agents if not trace.spans[span_id].end_ns]
    if not trace.entry_agents:
        yield "a span of an agent; without one, the trace is skipped"
    elif running:
        yield f"the end of an agent span: {_ids(running)}; without it there is no duration"


def _ids(ids: Sequence[str]) -> str:
    shown = ", ".join(ids[:_MAX_IDS])
    more = len(ids) - _MAX_IDS
    return f"{shown} and {more} more" if more > 0 else shown

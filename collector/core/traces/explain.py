"""Why a trace is still open: an open trace, the bounds and the time come in; ids, numbers and words
go out, for people to read.

Nothing of what the spans say is told, neither their names nor their attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pathgauge.collector.core.traces.ancestry import is_complete, missing_parents
from pathgauge.collector.core.traces.completion import Bounds
from pathgauge.collector.core.traces.open_trace import OpenTrace

_MAX_IDS = 5
_BEHIND_S = 1.0
"""A pipeline that comes later than that to a trace has something to say."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """An open trace. All times in seconds."""

    tenant: str
    trace_id: str
    age: float
    """Since its first record, or since the first one after it was read."""
    silence: float
    """Since its last record."""
    spans: int | None
    """`None`: the trace was spilled, and only the journal knows."""
    log_records: int | None
    journal_rows: int
    damaged: bool
    """Whether a journal row of it could not be read."""
    read_before: bool
    """Whether it was read already, and what came since makes a revision."""
    looked_at_in: float
    """Until the assembler looks at it again; negative when that is overdue."""
    waits_for: tuple[str, ...]


def explain(trace: OpenTrace, bounds: Bounds, now: float) -> Waiting:
    """What is known of `trace` at `now`, and what has to happen before it is read."""
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
        yield f"its turn: the pipeline is {now - trace.due:.1f} s behind"
    silence, age = now - trace.last, now - trace.first
    settle, idle = (
        f"silence: {silence:.1f} of {bounds.settle:g} s (settle)",
        f"silence: {silence:.1f} of {bounds.idle:g} s (idle)",
    )
    if trace.spilled:
        yield "its turn to be read from the journal, which alone holds its spans"
        yield f"{settle} if it is complete, else of {bounds.idle:g} s (idle)"
        return
    missing = list(_missing(trace))
    yield from missing
    yield from _unfinished(trace)
    yield idle if missing else settle
    yield f"or age: {age:.1f} of {bounds.max_age:g} s (max_age)"


def _missing(trace: OpenTrace) -> Iterator[str]:
    """What `settle` alone does not mend."""
    parents = missing_parents(trace.spans)
    if not trace.spans:
        yield "a span: only log records have arrived"
    elif parents:
        yield f"a parent that has not arrived: {_ids(parents)}"
    elif not is_complete(trace.spans):
        yield "a span without parent: those that have arrived are each other's parents"


def _unfinished(trace: OpenTrace) -> Iterator[str]:
    """What does not hold the trace up, but would be missed."""
    running = [span_id for span_id in trace.entry_agents if not trace.spans[span_id].end_ns]
    if not trace.entry_agents:
        yield "a span of an agent; without one it is skipped"
    elif running:
        yield f"the end of a span of an agent: {_ids(running)}; without it there is no duration"


def _ids(ids: Sequence[str]) -> str:
    more = len(ids) - _MAX_IDS
    return ", ".join(ids[:_MAX_IDS]) + (f" and {more} more" if more > 0 else "")

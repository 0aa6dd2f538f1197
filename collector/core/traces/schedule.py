"""When the assembler checks which trace next.

A trace that is scheduled again keeps its former entry in the heap. That entry is void, because the
trace knows its own time; removing it would cost a search.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

from pathgauge.collector.core.traces.open_trace import OpenTrace, TraceKey


class Schedule:
    """The traces by the time of their next check."""

    def __init__(self, traces: Mapping[TraceKey, OpenTrace]) -> None:
        """`traces`: all that exist; the assembler adds and removes them."""
        self._traces = traces
        self._due: list[tuple[float, TraceKey]] = []

    def at(self, trace: OpenTrace, due: float) -> None:
        """Check a trace at `due`, and no more at the time that was set before."""
        trace.due = due
        heapq.heappush(self._due, (due, trace.key))

    def next_due(self) -> float | None:
        """The earliest time of a check; `None` without one. The entry may be void."""
        return self._due[0][0] if self._due else None

    def due_by(self, now: float) -> Iterator[OpenTrace]:
        """Take the traces whose time has come, in order of time. Traces that are scheduled
        meanwhile count, too.
        """
        while self._due and self._due[0][0] <= now:
            due, key = heapq.heappop(self._due)
            trace = self._traces.get(key)
            if trace is not None and trace.due == due:
                yield trace

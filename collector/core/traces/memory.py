"""Memory accounting of traces; spills the traces that have been quiet longest when over budget.

Spilled records are dropped from memory and can be read back from the journal.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.traces.completion import Bounds
from pathgauge.collector.core.traces.open_trace import OpenTrace, Recall, TraceKey

_SPILL_DOWN_TO = 0.9
"""Share of `max_open_bytes` at which spilling stops, so that it does not run for every record."""


class Memory:
    """The memory of open and retained traces."""

    def __init__(
        self,
        bounds: Bounds,
        telemetry: InternalTelemetry,
        may_be_entry: Callable[[Span], bool],
        recall: Recall | None,
    ) -> None:
        """`recall` reads spilled records from the journal; `None`: no journal, so nothing is
        spilled.
        """
        self._bounds = bounds
        self._telemetry = telemetry
        self._may_be_entry = may_be_entry
        self._recall = recall
        self._resident: OrderedDict[TraceKey, OpenTrace] = OrderedDict()
        """Open traces that can be spilled, the one that has been quiet longest first."""
        self._reloaded: dict[TraceKey, OpenTrace] = {}
        """Retained traces that were loaded because a record arrived, which may be a duplicate."""
        self._bytes = 0
        self.retained_bytes = 0

    @property
    def open_bytes(self) -> int:
        """Memory of open traces in bytes. Retained traces do not count, as they can be dropped."""
        return self._bytes - self.retained_bytes

    @property
    def full(self) -> bool:
        """Whether open traces have reached their memory limit."""
        return self.open_bytes >= self._bounds.max_open_bytes

    @property
    def spillable(self) -> int:
        """Number of open traces in memory that can be spilled."""
        return len(self._resident)

    def grew(self, trace: OpenTrace, before: int) -> None:
        """Account for new records of a trace that had `before` bytes; it is open from now on."""
        self._bytes += trace.size - before
        if trace.closed_at is not None:
            self.retained_bytes -= before
        if self._recall is not None:
            self._resident[trace.key] = trace
            self._resident.move_to_end(trace.key)

    def retain(self, trace: OpenTrace) -> None:
        """Account for a trace that was read. It is spilled if there is a journal."""
        if self._recall is not None:
            self.spill(trace)
        self.retained_bytes += trace.size

    def forget(self, trace: OpenTrace, *, retained: bool) -> None:
        """Account for a trace that is dropped."""
        self._bytes -= trace.size
        if retained:
            self.retained_bytes -= trace.size
        self._resident.pop(trace.key, None)
        self._reloaded.pop(trace.key, None)

    def load(self, trace: OpenTrace) -> None:
        """Load the records of a spilled trace from the journal."""
        assert self._recall is not None
        before = trace.size
        trace.fill(self._recall(trace.key, trace.rows), self._may_be_entry)
        self._resized(trace, before)
        if trace.closed_at is None:
            self._resident[trace.key] = trace
        else:
            self._reloaded[trace.key] = trace

    def spill(self, trace: OpenTrace) -> None:
        """Drop the records of a trace from memory; the journal has them."""
        before = trace.size
        trace.spill()
        self._resident.pop(trace.key, None)
        self._resized(trace, before)

    def spill_excess(self) -> None:
        """Spill reloaded traces that got nothing new, then the quietest open traces while over
        budget.
        """
        while self._reloaded:
            _, trace = self._reloaded.popitem()
            if trace.closed_at is not None and not trace.spilled:
                self.spill(trace)
        if self.full:
            while self._resident and self.open_bytes > self._bounds.max_open_bytes * _SPILL_DOWN_TO:
                self.spill(next(iter(self._resident.values())))
                self._telemetry.traces_spilled.add()

    def _resized(self, trace: OpenTrace, before: int) -> None:
        self._bytes += trace.size - before
        if trace.closed_at is not None:
            self.retained_bytes += trace.size - before

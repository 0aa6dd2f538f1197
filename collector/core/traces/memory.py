"""What of the traces is in memory: their sizes are added up, and what can be had from the journal
again is left to it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.traces.completion import Bounds
from pathgauge.collector.core.traces.open_trace import OpenTrace, Recall, TraceKey

_SPILL_DOWN_TO = 0.9


class Memory:
    """The records of the traces of one partition, those that wait and those that were read."""

    def __init__(
        self,
        bounds: Bounds,
        telemetry: InternalTelemetry,
        may_be_entry: Callable[[Span], bool],
        recall: Recall | None,
    ) -> None:
        """Without `recall` there is no journal, and nothing can be spilled."""
        self._bounds = bounds
        self._telemetry = telemetry
        self._may_be_entry = may_be_entry
        self._recall = recall
        self._resident: OrderedDict[TraceKey, OpenTrace] = OrderedDict()
        """Open traces that can be spilled, the longest silent first."""
        self._looked_up: dict[TraceKey, OpenTrace] = {}
        """Retained traces that were loaded because something came; it may have been nothing new."""
        self._bytes = 0
        self.retained_bytes = 0

    @property
    def open_bytes(self) -> int:
        """What the open traces hold; retained ones give way and do not count."""
        return self._bytes - self.retained_bytes

    @property
    def full(self) -> bool:
        """Whether open traces have used up their memory."""
        return self.open_bytes >= self._bounds.max_open_bytes

    @property
    def spillable(self) -> int:
        """How many open traces could be spilled."""
        return len(self._resident)

    def grew(self, trace: OpenTrace, before: int) -> None:
        """Something new came for a trace of so many bytes, which is open from now on if it was not."""
        self._bytes += trace.size - before
        if trace.closed_at is not None:
            self.retained_bytes -= before
        if self._recall is not None:
            self._resident[trace.key] = trace
            self._resident.move_to_end(trace.key)

    def retain(self, trace: OpenTrace) -> None:
        """A trace was read. What the journal has of it need not be here."""
        if self._recall is not None:
            self.spill(trace)
        self.retained_bytes += trace.size

    def forget(self, trace: OpenTrace, *, retained: bool) -> None:
        """A trace is given up."""
        self._bytes -= trace.size
        if retained:
            self.retained_bytes -= trace.size
        self._resident.pop(trace.key, None)
        self._looked_up.pop(trace.key, None)

    def load(self, trace: OpenTrace) -> None:
        """Have the records of a spilled trace here again."""
        assert self._recall is not None
        before = trace.size
        trace.fill(self._recall(trace.key, trace.rows), self._may_be_entry)
        self._resized(trace, before)
        if trace.closed_at is None:
            self._resident[trace.key] = trace
        else:
            self._looked_up[trace.key] = trace

    def spill(self, trace: OpenTrace) -> None:
        """Leave the records of a trace to the journal."""
        before = trace.size
        trace.spill()
        self._resident.pop(trace.key, None)
        self._resized(trace, before)

    def tidy(self) -> None:
        """Spill what need not be here, and when memory is used up, what has been silent longest."""
        while self._looked_up:
            _, trace = self._looked_up.popitem()
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

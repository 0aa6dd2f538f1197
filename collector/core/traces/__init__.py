"""Spans and log records come in one by one, traces that can be read go out; what does not fit in
memory waits in the journal.
"""

from pathgauge.collector.core.traces.assembler import AT_ONCE, AT_ONCE_BYTES, Assembler
from pathgauge.collector.core.traces.completion import Bounds
from pathgauge.collector.core.traces.open_trace import (
    SPAN_OVERHEAD,
    Recall,
    Recalled,
    TraceKey,
    TraceSnapshot,
)

__all__ = [
    "AT_ONCE",
    "AT_ONCE_BYTES",
    "SPAN_OVERHEAD",
    "Assembler",
    "Bounds",
    "Recall",
    "Recalled",
    "TraceKey",
    "TraceSnapshot",
]

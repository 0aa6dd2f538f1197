"""Collects spans and log records into traces and decides when a trace can be read."""

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

"""Spans and log records come in one by one, traces that can be read go out; what does not fit in memory waits in the journal."""

from collector.assembler.assembler import AT_ONCE, Assembler
from collector.assembler.completion import Bounds
from collector.assembler.open_trace import SPAN_OVERHEAD, Key, Recall, Recalled, Standing

__all__ = ["AT_ONCE", "SPAN_OVERHEAD", "Assembler", "Bounds", "Key", "Recall", "Recalled", "Standing"]

"""How much a pipeline holds, as one value that gauges and pages can show."""

from __future__ import annotations

from typing import NamedTuple


class PipelineUsage(NamedTuple):
    """Sizes in bytes."""

    open_traces: int = 0
    """Traces that wait to be read."""
    spilled_traces: int = 0
    """Open traces whose spans are only in the journal."""
    retained_traces: int = 0
    """Traces that were read and are kept for late spans."""
    open_bytes: int = 0
    """Memory of open traces; retained ones are dropped when memory is short, and do not count."""
    max_open_bytes: int = 0
    conversation_bytes: int = 0
    """Memory of the turns of open conversations, and of sessions."""
    max_conversation_bytes: int = 0

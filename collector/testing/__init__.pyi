"""The names of `pathgauge.collector.testing` and where each one stands."""

from .assertions import (
    assert_passes as assert_passes,
)
from .file_exporter import (
    FileSpanExporter as FileSpanExporter,
)
from .read import (
    read_references as read_references,
    read_traces as read_traces,
)
from .received_traces import (
    ReceivedTraces as ReceivedTraces,
)
from .span_builders import (
    EPOCH_S as EPOCH_S,
    log as log,
    span as span,
    span_id as span_id,
    trace_id as trace_id,
)

__all__: list[str]

"""Decodes an export request into a `Batch`: in receivers, and again from the journal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from pathgauge.collector.core.otlp import (
    Decoded,
    DecodeLimits,
    Encoding,
    Reason,
    decode_logs,
    decode_logs_json,
    decode_traces,
    decode_traces_json,
)
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.spans import LogRecord, Span

_DECODE_TRACES: Mapping[Encoding, Callable[..., Decoded[Span]]] = {
    "protobuf": decode_traces,
    "json": decode_traces_json,
}
_DECODE_LOGS: Mapping[Encoding, Callable[..., Decoded[LogRecord]]] = {
    "protobuf": decode_logs,
    "json": decode_logs_json,
}


class DecodedBatch(NamedTuple):
    """The valid records of a request, and the number of rejected ones by reason."""

    batch: Batch
    rejected: Mapping[Reason, int]
    message: str
    """What the sender is told about the rejected records; empty without any."""


def decode_batch(origin: Origin, body: bytes, limits: DecodeLimits) -> DecodedBatch:
    """Decode a request of any signal and encoding. Raises `UndecodableError`."""
    if origin.signal == "traces":
        traces = _DECODE_TRACES[origin.encoding](body, tenant=origin.tenant, limits=limits)
        batch = Batch(origin, body, spans=traces.records)
        return DecodedBatch(batch, traces.rejected, traces.message)
    logs = _DECODE_LOGS[origin.encoding](body, tenant=origin.tenant, limits=limits)
    batch = Batch(
        origin,
        body,
        logs=logs.records,
        without_trace=logs.without_trace,
        own_events=logs.own_events,
    )
    return DecodedBatch(batch, logs.rejected, logs.message)

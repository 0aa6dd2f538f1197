"""Small decoded requests with given trace ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pathgauge.collector.core.otlp import DecodeLimits
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.decode_batch import decode_batch


def trace_id(number: int) -> str:
    """The id of trace `number`, in hexadecimal."""
    return f"{number + 1:032x}"


def traces_body(traces: Sequence[int], content: bytes = b"", service: str = "bot") -> bytes:
    """A request with a span for each entry, all of one resource and scope."""
    request = ExportTraceServiceRequest()
    group = request.resource_spans.add()
    group.resource.attributes.add(key="service.name").value.string_value = service
    scope = group.scope_spans.add()
    scope.scope.name = "scope"
    for number, trace in enumerate(traces, 1):
        span = scope.spans.add(name="chat", trace_id=bytes.fromhex(trace_id(trace)))
        span.span_id = ((trace + 1) * 1_000_000 + number).to_bytes(8, "big")
        if content:
            span.attributes.add(key="content").value.bytes_value = content
    return request.SerializeToString()


def logs_body(traces: Sequence[int | None]) -> bytes:
    """A request with a log record for each entry, without a trace id for `None`."""
    request = ExportLogsServiceRequest()
    scope = request.resource_logs.add().scope_logs.add()
    for trace in traces:
        record = scope.log_records.add(time_unix_nano=1)
        record.body.string_value = "text"
        if trace is not None:
            record.trace_id = bytes.fromhex(trace_id(trace))
    return request.SerializeToString()


def batch(body: bytes, signal: Any = "traces", tenant: str = "") -> Batch:
    """The batch of a request in protobuf, received over gRPC."""
    return decode_batch(Origin(tenant, "grpc", signal, "protobuf"), body, DecodeLimits()).batch


def spans_batch(*traces: int, content: bytes = b"", tenant: str = "") -> Batch:
    """A batch with a span for each entry."""
    return batch(traces_body(traces, content), tenant=tenant)


def logs_batch(*traces: int | None, tenant: str = "") -> Batch:
    """A batch with a log record for each entry."""
    return batch(logs_body(traces), "logs", tenant)

"""The official OpenTelemetry exporters against both receivers, through real sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import grpc
import pytest
from opentelemetry import trace
from opentelemetry._logs import LogRecord as ApiLogRecord
from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogExporter
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
    OTLPSpanExporter as GrpcSpanExporter,
)
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
    OTLPSpanExporter as HttpSpanExporter,
)
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import LogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.receivers.grpc import GrpcReceiver
from pathgauge.collector.receivers.http import HttpReceiver


class Intake:
    """Accepts batches, except for refusals that a test asks for."""

    def __init__(self, telemetry: InternalTelemetry) -> None:
        self.batches: list[Batch] = []
        self.refusals = 0
        self._telemetry = telemetry

    async def __call__(self, batch: Batch) -> bool:
        if self.refusals:
            self.refusals -= 1
            return False
        self.batches.append(batch)
        batch.count(self._telemetry)
        return True


class Receivers:
    """Both receivers with one consumer, and exporters for them."""

    def __init__(self) -> None:
        self.telemetry = InternalTelemetry()
        self.intake = Intake(self.telemetry)
        self.grpc = GrpcReceiver("127.0.0.1:0", self.intake, self.telemetry, retry_after=0)
        self.http = HttpReceiver("127.0.0.1:0", self.intake, self.telemetry, retry_after=0)

    def span_exporters(self) -> dict[str, Callable[[], SpanExporter]]:
        grpc_url, http_url = (
            f"http://127.0.0.1:{self.grpc.port}",
            f"http://127.0.0.1:{self.http.port}/v1/traces",
        )
        return {
            "grpc": lambda: GrpcSpanExporter(endpoint=grpc_url, insecure=True),
            "grpc gzip": lambda: GrpcSpanExporter(
                endpoint=grpc_url, insecure=True, compression=grpc.Compression.Gzip
            ),
            "http": lambda: HttpSpanExporter(endpoint=http_url),
            "http gzip": lambda: HttpSpanExporter(endpoint=http_url, compression=Compression.Gzip),
        }

    def log_exporters(self) -> dict[str, Callable[[], LogRecordExporter]]:
        return {
            "grpc": lambda: GrpcLogExporter(
                endpoint=f"http://127.0.0.1:{self.grpc.port}", insecure=True
            ),
            "http": lambda: HttpLogExporter(endpoint=f"http://127.0.0.1:{self.http.port}/v1/logs"),
        }


@pytest.fixture
async def receivers() -> AsyncIterator[Receivers]:
    started = Receivers()
    await started.grpc.start()
    await started.http.start()
    yield started
    await started.grpc.stop(0)
    await started.http.stop(0)


def two_spans() -> tuple[ReadableSpan, ...]:
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("my.agent", "1.2")
    with tracer.start_as_current_span("invoke_agent") as parent:
        parent.set_attribute("gen_ai.agent.name", "planner")
        tracer.start_span("execute_tool").end()
    return memory.get_finished_spans()


def export(make: Callable[[], SpanExporter]) -> SpanExportResult:
    exporter = make()
    try:
        return exporter.export(two_spans())
    finally:
        exporter.shutdown()


@pytest.mark.parametrize("name", ["grpc", "grpc gzip", "http", "http gzip"])
async def test_exported_spans_arrive(receivers: Receivers, name: str) -> None:
    result = await asyncio.to_thread(export, receivers.span_exporters()[name])
    assert result is SpanExportResult.SUCCESS
    (batch,) = receivers.intake.batches
    tool, agent = batch.spans
    assert (tool.name, tool.parent_id, tool.trace_id) == (
        "execute_tool",
        agent.span_id,
        agent.trace_id,
    )
    assert (agent.name, agent.parent_id, agent.attributes) == (
        "invoke_agent",
        None,
        {"gen_ai.agent.name": "planner"},
    )
    assert (agent.scope.name, agent.scope.version) == ("my.agent", "1.2")
    assert agent.resource.attributes["telemetry.sdk.language"] == "python"
    transport = name.partition(" ")[0]
    assert receivers.telemetry.accepted.items() == [((transport, "protobuf"), 2)]
    assert receivers.telemetry.requests.items() == [((transport, "traces", "ok"), 1)]


@pytest.mark.parametrize("name", ["grpc", "grpc gzip", "http", "http gzip"])
async def test_an_exporter_that_is_refused_tries_again(receivers: Receivers, name: str) -> None:
    receivers.intake.refusals = 2
    result = await asyncio.to_thread(export, receivers.span_exporters()[name])
    assert (result, len(receivers.intake.batches)) == (SpanExportResult.SUCCESS, 1)
    transport = name.partition(" ")[0]
    assert receivers.telemetry.requests.items() == [
        ((transport, "traces", "busy"), 2),
        ((transport, "traces", "ok"), 1),
    ]
    assert receivers.telemetry.accepted.items() == [((transport, "protobuf"), 2)]


@pytest.mark.parametrize("transport", ["grpc", "http"])
async def test_exported_log_records_arrive_at_their_span(
    receivers: Receivers, transport: str
) -> None:
    def emit() -> None:
        provider = LoggerProvider()
        provider.add_log_record_processor(
            SimpleLogRecordProcessor(receivers.log_exporters()[transport]())
        )
        logger = provider.get_logger("my.agent")
        span = trace.NonRecordingSpan(
            trace.SpanContext(trace_id=0xAB, span_id=0xCD, is_remote=False)
        )
        context = trace.set_span_in_context(span)
        logger.emit(
            ApiLogRecord(
                context=context, event_name="gen_ai.choice", body={"text": "hi"}, timestamp=7
            )
        )
        logger.emit(ApiLogRecord(body="of no trace"))
        provider.shutdown()

    await asyncio.to_thread(emit)
    batch, without_trace = receivers.intake.batches
    (record,) = batch.logs
    assert (without_trace.logs, without_trace.without_trace) == ((), 1)
    assert (record.trace_id, record.span_id, record.time_ns) == (f"{0xAB:032x}", f"{0xCD:016x}", 7)
    assert (record.event_name, record.body) == ("gen_ai.choice", {"text": "hi"})
    assert receivers.telemetry.accepted_logs.items() == [((transport, "protobuf"), 2)]
    assert receivers.telemetry.logs_dropped.items() == [(("no_trace_id",), 1)]
    assert receivers.telemetry.requests.items() == [((transport, "logs", "ok"), 2)]

"""Exporters whose protocol does not fit the port: what they log, and what the collector tells."""

from __future__ import annotations

from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
    OTLPSpanExporter as GrpcSpanExporter,
)
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
    OTLPSpanExporter as HttpSpanExporter,
)
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter

from support.repository import DOCS
from support.running import Collector

pytestmark = pytest.mark.slow

EXPLANATION = "a client speaks gRPC to a port for HTTP/1.1; send OTLP over gRPC to the gRPC port"
GUIDE = (DOCS / "instrumenting.md").read_text(encoding="utf-8")


def export(exporter: SpanExporter) -> None:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    provider.get_tracer(__name__).start_span("agent").end()
    provider.shutdown()


def test_grpc_on_the_http_port_is_counted_and_explained_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Collector(tmp_path) as collector:
        url = f"http://127.0.0.1:{collector.ports['http']}"
        for _ in range(2):
            export(GrpcSpanExporter(url, insecure=True, timeout=5))
        count = collector.value(
            "pathgauge_invalid_http_requests_total", server="http", reason="http2"
        )
        assert count >= 2
        assert [line["server"] for line in collector.events(EXPLANATION)] == ["http"]
    symptom = "Trying to connect an http1.x server"
    assert symptom in caplog.text
    assert symptom in GUIDE


def test_http_on_the_grpc_port_fails_as_the_guide_says(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Collector(tmp_path) as collector:
        url = f"http://127.0.0.1:{collector.ports['grpc']}/v1/traces"
        export(HttpSpanExporter(url, timeout=5))
    symptom = r"BadStatusLine('\x00\x00\x18\x04"
    assert symptom in caplog.text
    assert symptom in GUIDE

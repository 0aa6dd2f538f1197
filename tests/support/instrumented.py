"""An instrumented service whose SDK spans are encoded as OTLP, decoded, and read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from opentelemetry import trace
from opentelemetry.context import Context, attach, detach
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pathgauge.collector.core.otlp import decode_traces
from pathgauge.collector.core.otlp.spans import Span, Trace
from support.dialects import read


class Service:
    """A service with its own tracer provider."""

    def __init__(self, *processors: SpanProcessor) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        for processor in (*processors, SimpleSpanProcessor(self._exporter)):
            provider.add_span_processor(processor)
        self.tracer = provider.get_tracer("service")

    @contextmanager
    def agent(self, name: str = "a") -> Iterator[trace.Span]:
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
        with self.tracer.start_as_current_span(
            f"invoke_agent {name}", attributes=attributes
        ) as span:
            yield span

    def request(self) -> AbstractContextManager[trace.Span]:
        return self.tracer.start_as_current_span("POST /chat")

    def exported(self) -> tuple[Span, ...]:
        """The spans exported since the last call, as the collector decodes them."""
        body = encode_spans(self._exporter.get_finished_spans()).SerializeToString()
        self._exporter.clear()
        return decode_traces(body).records

    def scenarios(self) -> dict[str | None, tuple[str | None, int | None]]:
        """The scenario and turn that the collector reads from the exported spans, by agent."""
        traces = defaultdict(list)
        for span in self.exported():
            traces[span.trace_id].append(span)
        invocations = (
            one
            for trace_id, spans in traces.items()
            for one in read(Trace("", trace_id, tuple(spans)))
        )
        return {one.agent: (one.scenario_id, one.turn) for one in invocations}


@contextmanager
def current(context: Context) -> Iterator[None]:
    token = attach(context)
    try:
        yield
    finally:
        detach(token)

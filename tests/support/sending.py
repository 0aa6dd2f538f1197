"""An agent that serves user turns continuously and exports through the OpenTelemetry SDK.

Its script can be changed while it runs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from pathgauge.collector.cli.demo.agents import Agent
from pathgauge.collector.cli.demo.scripts import Script
from pathgauge.collector.client import ScenarioSpanProcessor, scenario

PAUSE_S = 0.1


class Traffic(SpanProcessor):
    """Turns of one agent, in sequence."""

    def __init__(self, port: int, script: Script, agent: str, version: str) -> None:
        self.script = script
        self.traces: dict[str, set[str]] = {}
        """The ids of the sent traces, by the answer of the script."""
        self._stop = threading.Event()
        self._turn = threading.Lock()
        self._provider = TracerProvider(
            resource=Resource({"service.name": agent}), shutdown_on_exit=False
        )
        exporter = OTLPSpanExporter(endpoint=f"127.0.0.1:{port}", insecure=True, timeout=5)
        for processor in (
            ScenarioSpanProcessor(),
            self,
            BatchSpanProcessor(exporter, schedule_delay_millis=100),
        ):
            self._provider.add_span_processor(processor)
        self._agent = Agent(
            self._provider.get_tracer("tests"), agent, version, "scripted", lambda _: None
        )
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._provider.shutdown()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Meanwhile no turn is made, and the last one is sent."""
        with self._turn:
            self._provider.force_flush()
            yield

    def on_end(self, span: ReadableSpan) -> None:
        """Record the trace id."""
        context = span.get_span_context()
        assert context is not None
        self.traces.setdefault(self.script.answer, set()).add(f"{context.trace_id:032x}")

    def _serve(self) -> None:
        number = 0
        while not self._stop.wait(PAUSE_S):
            number += 1
            with self._turn, scenario(self.script.scenario_id):
                self._agent.handle(self.script, f"conversation {number}")

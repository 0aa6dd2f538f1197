"""Restarts under load, with applications that use the OpenTelemetry SDK: no span is lost between
the agent and its score.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import (
    OTLPSpanExporter as GrpcSpanExporter,
)
from opentelemetry.exporter.otlp.proto.http.trace_exporter import (
    OTLPSpanExporter as HttpSpanExporter,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter

from support.running import PATIENCE_S, until

from .restarted import RestartedCollector
from .sizes import LONG, times
from .truth import seen

pytestmark = pytest.mark.slow

STOP_S = 10.0
EXPORT_S = times(60, 10)
"""How long an exporter retries. The short form runs in parallel to other tests, so a start may take
longer than the usual ten seconds.
"""
UP_S = (0.5, 1.5) if not LONG else (5.0, 9.0)
"""Seconds between two restarts. An exporter retries after one, two and four seconds, plus or minus
a fifth; these retries must not meet the next restart.
"""
TURN_S = 0.05
TOOLS = 3


class Application:
    """An agent in a thread that exports like an application: in batches, with retries of the
    exporter.
    """

    def __init__(self, exporter: SpanExporter) -> None:
        self.turns = 0
        self._provider = TracerProvider(
            resource=Resource({"service.name": "application"}), shutdown_on_exit=False
        )
        self._provider.add_span_processor(
            BatchSpanProcessor(exporter, schedule_delay_millis=200, max_queue_size=100_000)
        )
        self._tracer = self._provider.get_tracer("faults")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Finish the turn, and export the remaining spans."""
        self._stopping.set()
        self._thread.join()
        self._provider.shutdown()

    def _run(self) -> None:
        while not self._stopping.wait(TURN_S):
            attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
            with self._tracer.start_as_current_span("invoke_agent support", attributes=attributes):
                for _ in range(TOOLS):
                    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "refund"}
                    with self._tracer.start_as_current_span("execute_tool refund", attributes=tool):
                        pass
            self.turns += 1


Exporter = Callable[[RestartedCollector], SpanExporter]


def over_grpc(collector: RestartedCollector) -> SpanExporter:
    return GrpcSpanExporter(
        endpoint=f"http://127.0.0.1:{collector.ports['grpc']}", insecure=True, timeout=EXPORT_S
    )


def over_http(collector: RestartedCollector) -> SpanExporter:
    return HttpSpanExporter(
        endpoint=f"http://127.0.0.1:{collector.ports['http']}/v1/traces", timeout=EXPORT_S
    )


def rolled(
    folder: Path,
    seed: int,
    restarts: int,
    exporters: tuple[Exporter, ...],
    *mistakes: str,
    patience: float = PATIENCE_S,
) -> list[str]:
    """Every broken guarantee in so many orderly restarts."""
    random = Random(seed)
    collector = RestartedCollector(folder)
    collector.start(*mistakes)
    gaps = []
    applications = [Application(exporter(collector)) for exporter in exporters]
    breaches = []
    try:
        for number in range(restarts):
            time.sleep(random.uniform(*UP_S))
            began = time.monotonic()
            status = collector.stop()
            took = time.monotonic() - began
            if status or took > STOP_S:
                breaches.append(f"restart {number}: the stop took {took:.1f} s, status {status}")
            collector.start(*mistakes)
            gaps.append(time.monotonic() - began)
    finally:
        for application in applications:
            application.stop()
    turns = sum(application.turns for application in applications)
    print(
        f"{len(gaps)} restarts, {turns} turns; from the signal until it was ready again took"
        f" {min(gaps):.1f} to {max(gaps):.1f} s"
    )
    until(lambda: collector.value("pathgauge_invocations_read_total") >= turns, patience)
    spans = collector.value("pathgauge_spans_assembled_total")
    collector.stop()
    found = seen(collector.store)
    if (found.invocations, spans) != (turns, turns * (1 + TOOLS)):
        breaches.append(
            f"{turns} turns of {1 + TOOLS} spans: {found.invocations} invocations and {spans:g}"
            " spans arrived"
        )
    wrong = [
        said
        for said in found.said.values()
        if dict((name, value) for name, value, *_ in said.scores)["tool_calls"] != TOOLS
    ]
    return breaches + ([f"{len(wrong)} results are wrong: {wrong[0]}"] if wrong else [])


def test_rolling_restarts_lose_no_span_of_the_sdk(tmp_path: Path, seed: int) -> None:
    assert rolled(tmp_path, seed, times(1, 20), (over_grpc, over_http)) == []


@pytest.mark.long
def test_a_rolling_restart_brings_to_light_that_requests_under_way_are_dropped(
    tmp_path: Path, seed: int
) -> None:
    assert (
        rolled(
            tmp_path,
            seed,
            3,
            (over_grpc, over_http),
            "acknowledge_before_the_commit",
            "stop_at_once",
            patience=3.0,
        )
        != []
    )

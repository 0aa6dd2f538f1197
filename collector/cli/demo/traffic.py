"""Runs the example agents for `pathgauge demo`, each in its own thread, until they are stopped.

Every release exports through its own tracer provider, as a new deployment would: the buffered spans
are flushed, then the next release starts. The scenario of a turn is set here, and a span processor
copies it onto the agents' spans.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import cycle
from uuid import uuid4

from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import Tracer

from pathgauge.collector.cli.demo.agents import Agent
from pathgauge.collector.cli.demo.scripts import CONCIERGE, SUPPORT, ExampleAgent, Release
from pathgauge.collector.client import ScenarioSpanProcessor, scenario

EXPORT_TIMEOUT_S = 2
"""How long a flush waits when the collector is gone. `run_agents` may return this long after
`stop` is set.
"""
FLUSH_INTERVAL_MS = 500


def run_agents(
    grpc_endpoint: str,
    http_endpoint: str,
    stop: threading.Event,
    *,
    regress_after_s: float = 30.0,
    repair_after_s: float = 60.0,
    interval_s: float = 0.5,
) -> None:
    """Run the agents until `stop` is set, then flush. The concierge exports over gRPC, support over
    HTTP.

    `grpc_endpoint` is `host:port`, `http_endpoint` a URL without the signal path. Support regresses
    after `regress_after_s` seconds and is repaired `repair_after_s` seconds later. Each agent
    serves one user turn every `interval_s` seconds.
    """
    exporters: list[tuple[ExampleAgent, Callable[[], SpanExporter]]] = [
        (
            CONCIERGE,
            lambda: GrpcExporter(endpoint=grpc_endpoint, insecure=True, timeout=EXPORT_TIMEOUT_S),
        ),
        (
            SUPPORT,
            lambda: HttpExporter(
                endpoint=f"{http_endpoint.rstrip('/')}/v1/traces", timeout=EXPORT_TIMEOUT_S
            ),
        ),
    ]
    with ThreadPoolExecutor(len(exporters), thread_name_prefix="demo agent") as pool:
        running = [
            pool.submit(
                operate, agent, exporter, stop, (regress_after_s, repair_after_s), interval_s
            )
            for agent, exporter in exporters
        ]
    for agent_thread in running:
        agent_thread.result()


def operate(
    agent: ExampleAgent,
    exporter: Callable[[], SpanExporter],
    stop: threading.Event,
    deploy_after_s: tuple[float, float],
    interval_s: float,
) -> None:
    """Deploy the releases of `agent` in order, each with its own exporter, and serve user turns
    until `stop` is set.
    """
    for release, seconds in _deployments(agent, deploy_after_s):
        with _tracer(agent, release, exporter()) as tracer:
            _serve(
                Agent(tracer, agent.name, release.version, agent.model, stop.wait),
                release,
                stop,
                seconds,
                interval_s,
            )
        if stop.is_set():
            return


def _deployments(
    agent: ExampleAgent, deploy_after_s: tuple[float, float]
) -> Iterator[tuple[Release, float]]:
    """Each release, and the seconds until the next one."""
    if agent.regressed is None or agent.repaired is None:
        return iter([(agent.release, math.inf)])
    return zip(
        (agent.release, agent.regressed, agent.repaired), (*deploy_after_s, math.inf), strict=True
    )


def _serve(
    agent: Agent, release: Release, stop: threading.Event, seconds: float, interval_s: float
) -> None:
    until = time.monotonic() + seconds
    for script in cycle(release.scripts):
        if stop.is_set() or time.monotonic() >= until:
            return
        with scenario(script.scenario_id):
            agent.handle(script, conversation_id=str(uuid4()))
        stop.wait(interval_s)


@contextmanager
def _tracer(agent: ExampleAgent, release: Release, exporter: SpanExporter) -> Iterator[Tracer]:
    resource = Resource({"service.name": agent.name, "service.version": release.version})
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(ScenarioSpanProcessor())
    provider.add_span_processor(
        BatchSpanProcessor(exporter, schedule_delay_millis=FLUSH_INTERVAL_MS)
    )
    try:
        yield provider.get_tracer("pathgauge.demo", release.version)
    finally:
        provider.shutdown()

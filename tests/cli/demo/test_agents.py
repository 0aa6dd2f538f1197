import json
import threading
import time
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from pathgauge.collector.cli.demo import traffic
from pathgauge.collector.cli.demo.agents import Agent
from pathgauge.collector.cli.demo.scripts import CONCIERGE, SUPPORT, ExampleAgent, Script
from support.ports import free_port


class StopInTheFirstTurn(threading.Event):
    def wait(self, timeout: float | None = None) -> bool:
        self.set()
        return True


class StopAfterTurns(threading.Event):
    """Never waits; between two turns the agents wait for 0 seconds."""

    def __init__(self, turns: int) -> None:
        super().__init__()
        self._left = turns

    def wait(self, timeout: float | None = None) -> bool:
        self._left -= timeout == 0.0
        if self._left == 0:
            self.set()
        return self.is_set()


class StopWhenExported(InMemorySpanExporter):
    def __init__(self, stop: threading.Event) -> None:
        super().__init__()
        self._stop = stop

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self._stop.set()
        return super().export(spans)


def spans_of(agent: ExampleAgent, script: Script) -> list[ReadableSpan]:
    """The spans of one user turn in the order in which they started."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    Agent(
        provider.get_tracer("test"), agent.name, agent.release.version, agent.model, lambda _: None
    ).handle(script, "conversation-1")
    return sorted(exporter.get_finished_spans(), key=lambda span: span.start_time or 0)


def attribute(spans: list[ReadableSpan], name: str, key: str) -> list[Any]:
    return [(span.attributes or {}).get(key) for span in spans if span.name.startswith(name)]


def test_one_turn_is_one_trace_with_models_and_tools_under_the_agent() -> None:
    spans = spans_of(CONCIERGE, CONCIERGE.release.scripts[0])
    root = spans[0]
    assert [(span.name, span.kind) for span in spans] == [
        ("invoke_agent concierge", SpanKind.INTERNAL),
        ("chat scripted-large", SpanKind.CLIENT),
        ("execute_tool search_flights", SpanKind.INTERNAL),
        ("execute_tool search_hotels", SpanKind.INTERNAL),
        ("chat scripted-large", SpanKind.CLIENT),
        ("execute_tool book_trip", SpanKind.INTERNAL),
        ("chat scripted-large", SpanKind.CLIENT),
    ]
    assert root.parent is None
    assert {span.parent.span_id for span in spans[1:] if span.parent} == {root.context.span_id}


def test_the_agent_span_names_agent_version_and_conversation() -> None:
    root = spans_of(SUPPORT, SUPPORT.release.scripts[0])[0]
    attributes = dict(root.attributes or {})
    question, answer = (
        json.loads(str(attributes.pop(f"gen_ai.{way}.messages"))) for way in ("input", "output")
    )
    assert attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "demo",
        "gen_ai.agent.name": "support",
        "gen_ai.agent.version": "2.4.0",
        "gen_ai.conversation.id": "conversation-1",
    }
    assert [part["content"] for part in question[0]["parts"]] == [
        SUPPORT.release.scripts[0].user_input
    ]
    assert [part["content"] for part in answer[0]["parts"]] == [SUPPORT.release.scripts[0].answer]


def test_tool_spans_carry_the_call_that_the_model_asked_for() -> None:
    spans = spans_of(SUPPORT, SUPPORT.release.scripts[1])
    asked = [
        part
        for reply in attribute(spans, "chat", "gen_ai.output.messages")
        for part in json.loads(reply)[0]["parts"]
        if part["type"] == "tool_call"
    ]
    executed = [
        {"type": "tool_call", "id": call_id, "name": name, "arguments": json.loads(arguments)}
        for call_id, name, arguments in zip(
            attribute(spans, "execute_tool", "gen_ai.tool.call.id"),
            attribute(spans, "execute_tool", "gen_ai.tool.name"),
            attribute(spans, "execute_tool", "gen_ai.tool.call.arguments"),
            strict=True,
        )
    ]
    assert executed == asked
    assert [call["name"] for call in asked] == ["lookup_order", "track_parcel"]


def test_the_model_reads_the_whole_conversation_each_time() -> None:
    spans = spans_of(SUPPORT, SUPPORT.release.scripts[1])
    read = [
        [message["role"] for message in json.loads(messages)]
        for messages in attribute(spans, "chat", "gen_ai.input.messages")
    ]
    assert read == [
        ["user"],
        ["user", "assistant", "tool"],
        ["user", "assistant", "tool", "assistant", "tool"],
    ]


def test_an_agent_that_regresses_is_released_three_times() -> None:
    stop = threading.Event()
    exporters = [InMemorySpanExporter(), InMemorySpanExporter(), StopWhenExported(stop)]
    traffic.operate(SUPPORT, iter(exporters).__next__, stop, (0.2, 0.2), 0.0)
    released = [
        {span.resource.attributes["service.version"] for span in exporter.get_finished_spans()}
        for exporter in exporters
    ]
    assert released == [{"2.4.0"}, {"2.5.0"}, {"2.5.1"}]
    assert {
        span.resource.attributes["service.name"] for span in exporters[0].get_finished_spans()
    } == {"support"}
    assert [exporter.export(()) for exporter in exporters] == [SpanExportResult.FAILURE] * 3, (
        "not shut down"
    )


def test_the_spans_of_every_turn_name_its_scenario() -> None:
    scripts, exporter = CONCIERGE.release.scripts, InMemorySpanExporter()
    traffic.operate(
        CONCIERGE, lambda: exporter, StopAfterTurns(len(scripts)), (0.0, 0.0), interval_s=0.0
    )
    spans = sorted(exporter.get_finished_spans(), key=lambda span: span.start_time or 0)
    assert attribute(spans, "invoke_agent", "pathgauge.scenario.id") == [
        script.scenario_id for script in scripts
    ]
    assert None not in attribute(spans, "", "pathgauge.scenario.id")


def test_an_agent_that_never_regresses_stays_on_its_release() -> None:
    stop = threading.Event()
    exporter = StopWhenExported(stop)
    traffic.operate(CONCIERGE, lambda: exporter, stop, (0.0, 0.0), 0.0)
    assert set(
        attribute(list(exporter.get_finished_spans()), "invoke_agent", "gen_ai.agent.version")
    ) == {"3.1.0"}


@pytest.mark.slow
def test_agents_stop_soon_although_the_collector_is_gone() -> None:
    began, unused = time.monotonic(), f"127.0.0.1:{free_port()}"
    traffic.run_agents(unused, f"http://{unused}", StopInTheFirstTurn())
    assert time.monotonic() - began < 3 * traffic.EXPORT_TIMEOUT_S

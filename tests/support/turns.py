"""Creates turns of an instrumented agent from scripts: SDK spans, and OTLP in protobuf or JSON.

The agent is that of `pathgauge demo`, which is instrumented with the OpenTelemetry SDK like agent
frameworks.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pathgauge.collector.cli.demo.agents import Agent
from pathgauge.collector.cli.demo.scripts import Call, Script
from pathgauge.collector.client import ScenarioSpanProcessor, scenario

_IDS = frozenset({"traceId", "spanId", "parentSpanId"})


def script(
    scenario_id: str, *tools: str, answer: str = "It is done.", user_input: str = "Please do it."
) -> Script:
    """One turn that calls the tools in sequence, without arguments, and answers. An empty id means
    no scenario.
    """
    return Script(
        scenario_id, user_input, tuple((Call(tool, {}, {"ok": True}),) for tool in tools), answer
    )


def turn(
    scripted: Script,
    agent: str = "my_agent",
    version: str = "1.0",
    conversation: str = "conversation",
    resource: str = "",
) -> Sequence[ReadableSpan]:
    """The finished spans of one turn, which form a trace. `resource` is the service name."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(
        resource=Resource({"service.name": resource or agent}), shutdown_on_exit=False
    )
    for processor in (ScenarioSpanProcessor(), SimpleSpanProcessor(exporter)):
        provider.add_span_processor(processor)
    with scenario(scripted.scenario_id) if scripted.scenario_id else nullcontext():
        Agent(provider.get_tracer("tests"), agent, version, "scripted", lambda _: None).handle(
            scripted, conversation
        )
    return exporter.get_finished_spans()


def trace_id(spans: Sequence[ReadableSpan]) -> str:
    """The trace id of a turn, in hex."""
    context = spans[0].get_span_context()
    assert context is not None
    return f"{context.trace_id:032x}"


def otlp(*turns: Sequence[ReadableSpan]) -> bytes:
    """One export request with all turns, as protobuf."""
    return encode_spans([span for spans in turns for span in spans]).SerializeToString()


def otlp_json(*turns: Sequence[ReadableSpan]) -> bytes:
    """One export request with all turns, as one line of OTLP/JSON."""
    return json_of(encode_spans([span for spans in turns for span in spans]))


def json_of(request: Message) -> bytes:
    """An export request as OTLP/JSON, with ids in hex."""
    return json.dumps(_with_hex_ids(MessageToDict(request))).encode()


def _with_hex_ids(value: Any) -> Any:
    if isinstance(value, list):
        return [_with_hex_ids(item) for item in value]
    if isinstance(value, dict):
        return {
            key: base64.b64decode(item).hex() if key in _IDS else _with_hex_ids(item)
            for key, item in value.items()
        }
    return value

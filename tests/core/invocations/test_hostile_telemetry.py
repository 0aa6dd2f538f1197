"""Telemetry with wrong types, broken JSON, cycles of parents: reading never raises and never
guesses.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.invocations.dialects.dialect import Fields
from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.testing import log, span, trace_id
from support.dialects import INSTALLED, read
from support.examples import examples

PLACES = {
    place
    for field in dataclasses.fields(Fields)
    for d in INSTALLED.dialects
    for place in getattr(d.fields, field.name)
}
KEYS = sorted(
    {
        place
        if isinstance(place, str)
        else getattr(place, "key", "llm.input_messages.0.message.content")
        for place in PLACES
    }
)
KINDS = {
    "openinference.span.kind": ["AGENT", "CHAIN", "LLM", "TOOL"],
    "traceloop.span.kind": ["workflow", "agent", "task", "tool"],
    "langsmith.span.kind": ["chain", "llm", "tool"],
    "llm.request.type": ["chat"],
    "langfuse.observation.type": ["agent", "chain", "generation", "tool"],
    "mlflow.spanType": ['"AGENT"', '"CHAIN"', '"CHAT_MODEL"', '"TOOL"'],
    "ai.operationId": ["ai.generateText", "ai.generateText.doGenerate", "ai.toolCall"],
    "span.type": ["interaction", "llm_request", "tool", "tool.execution"],
    "haystack.component.type": ["Agent", "OpenAIChatGenerator", "ToolInvoker"],
}
OTHER_KEYS = [
    *KINDS,
    "llm.output_messages.0.message.tool_calls.0.tool_call.function.name",
    "llm.output_messages.x.y",
    "gen_ai.completion.0.tool_calls.0.name",
    "gen_ai.operation.name",
    "llm.tools.0.tool.json_schema",
    "llm.request.functions.0.parameters",
    "tool.parameters",
    "mcp.method.name",
    "metadata",
    "test.suite.run.id",
    "pathgauge.turn",
    "pathgauge.scenario.id",
    "error.type",
    "gen_ai.agent.id",
    "ai.prompt",
    "ai.response.text",
    "ai.response.toolCalls",
    "langfuse.observation.usage_details",
    "langfuse.observation.level",
    "haystack.agent.step.tool.output",
    "haystack.tool.error",
    "tool_name",
    "tool_input",
    "new_context",
    "user_prompt",
    "response.model_output",
    "input_tokens",
    "success",
]
NAMES = [
    "invoke_agent a",
    "invoke_workflow w",
    "invocation",
    "agent_run [a]",
    "agent_run [",
    "call_llm",
    "chat",
    "execute_tool t",
    "agent run",
    "autogen send a",
    "autogen publish a",
    "workflow.run",
    "haystack.agent.run",
    "haystack.component.run",
    "haystack.agent.step.tool",
    "x",
]
SCOPES = [
    "",
    "gcp.vertex.agent",
    "pydantic-ai",
    "strands.telemetry.tracer",
    "agent_framework",
    "semantic_kernel.x",
    "autogen-core",
    "com.anthropic.claude_code.tracing",
    "gen_ai",
    "langfuse-sdk",
    "mlflow.tracing.provider",
]
OPERATIONS = [
    "invoke_agent",
    "invoke_workflow",
    "execute_tool",
    "chat",
    "create_agent",
    "embeddings",
]
EVENTS = [
    "gen_ai.user.message",
    "gen_ai.choice",
    "gen_ai.client.inference.operation.details",
    "gen_ai.content.prompt",
    "exception",
    "?",
]
IDS = ["1", "2", "3", "4", "5", "never sent"]

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats()
    | st.text(max_size=6)
    | st.binary(max_size=4)
)
words = st.sampled_from(
    [
        *(
            "role",
            "parts",
            "type",
            "content",
            "text",
            "tool_call",
            "name",
            "arguments",
            "id",
            "contents",
            "function_call",
            "user",
            "assistant",
        ),
        *(
            "tools",
            "function",
            "parameters",
            "properties",
            "OBJECT",
            "config",
            "input_schema",
            "items",
        ),
    ]
)
structures = st.recursive(
    scalars | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
encoded = structures.map(lambda value: json.dumps(value, default=str))
values = (
    scalars
    | structures
    | encoded
    | encoded.map(lambda text: text[: len(text) // 2])
    | encoded.map(json.dumps)
)
attributes = st.dictionaries(st.sampled_from(KEYS + OTHER_KEYS), values, max_size=8)
events = st.lists(st.tuples(st.sampled_from(EVENTS), attributes), max_size=2)


@st.composite
def spans(draw: st.DrawFn) -> Span:
    drawn = draw(attributes)
    if draw(st.booleans()):
        drawn["gen_ai.operation.name"] = draw(st.sampled_from(OPERATIONS))
    if draw(st.booleans()):
        key = draw(st.sampled_from(sorted(KINDS)))
        drawn[key] = draw(st.sampled_from(KINDS[key]))
    return span(
        draw(st.sampled_from(IDS)),
        draw(st.sampled_from(NAMES)),
        drawn,
        parent=draw(st.none() | st.sampled_from(IDS)),
        start=draw(st.integers(0, 5)),
        end=draw(st.integers(0, 5)),
        scope=draw(st.sampled_from(SCOPES)),
        error=draw(st.none() | st.just("boom")),
        events=draw(events),
        remote_parent=draw(st.booleans()),
        trace_state=draw(
            st.sampled_from(["", "pathgauge=c:s;r:1", "pathgauge=", "a=b,pathgauge=c:x;c:y"])
        ),
    )


logs = st.builds(
    lambda name, attributes, body, owner: log(name, attributes, body=body, span=owner),
    st.sampled_from(EVENTS),
    attributes,
    structures,
    st.none() | st.sampled_from(IDS),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(spans(), max_size=8), st.lists(logs, max_size=3))
def test_any_trace_is_read_without_an_error(sent: list[Span], records: list[LogRecord]) -> None:
    held = {one.span_id: one for one in sent}
    for invocation in read(Trace("", trace_id("trace"), tuple(held.values()), tuple(records))):
        stated = (
            invocation.agent,
            invocation.scenario_id,
            invocation.conversation_id,
            invocation.model,
            invocation.error_type,
        )
        assert all(text is None or (isinstance(text, str) and text) for text in stated)
        assert all(isinstance(call.arguments, dict | str | None) for call in invocation.tool_calls)
        assert all(
            isinstance(name, str) and isinstance(schema, dict)
            for name, schema in invocation.tool_schemas.items()
        )


@pytest.mark.slow
def test_a_chain_of_ten_thousand_spans_is_read() -> None:
    chain = [
        span(
            str(i),
            "invoke_agent a" if i % 2 else "chat",
            parent=str(i - 1) if i else None,
            start=i,
            end=20_000 - i,
        )
        for i in range(10_000)
    ]
    assert len(read(Trace("", trace_id("trace"), tuple(chain)))) == 1


def test_values_that_are_not_text_are_not_taken_for_names() -> None:
    strange: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": ["a"],
        "gen_ai.conversation.id": {"x": 1},
    }
    [invocation] = read(Trace("", trace_id("trace"), (span("1", "something", strange),)))
    assert (invocation.agent, invocation.conversation_id) == (None, None)

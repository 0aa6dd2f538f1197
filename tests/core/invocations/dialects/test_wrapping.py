"""What each framework wraps around tool arguments and results, and that values of other frameworks
are not unwrapped in the same way.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import ToolCall
from support.dialects import read

ORDER = {"order_id": "A-1"}
RUN = {"tags": [], "color": "green", "name": "look"}
OI = "openinference.instrumentation."
TOOL_MESSAGE = {
    "lc": 1,
    "type": "constructor",
    "id": ["langchain", "ToolMessage"],
    "kwargs": {"content": '{"order_id": "A-1"}', "tool_call_id": "c"},
}

CONVENTIONS = (
    "conventions",
    {"gen_ai.operation.name": "execute_tool"},
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.call.result",
)
ADK = (
    "gcp.vertex.agent",
    {"gen_ai.operation.name": "execute_tool"},
    "gcp.vertex.agent.tool_call_args",
    "gcp.vertex.agent.tool_response",
)
_OPENINFERENCE = (
    {"openinference.span.kind": "TOOL", "tool.name": "look"},
    "input.value",
    "output.value",
)
PLAIN_OPENINFERENCE = (OI + "agno", *_OPENINFERENCE)
OPENINFERENCE_ADK = (OI + "google_adk", *_OPENINFERENCE)
LLAMA_INDEX = (OI + "llama_index", *_OPENINFERENCE)
SMOLAGENTS = (OI + "smolagents", *_OPENINFERENCE)
LANGFUSE = (
    "langfuse-sdk",
    {"langfuse.observation.type": "tool"},
    "langfuse.observation.input",
    "langfuse.observation.output",
)
MLFLOW = (
    "mlflow.tracing.provider",
    {"mlflow.spanType": '"TOOL"'},
    "mlflow.spanInputs",
    "mlflow.spanOutputs",
)
OPENLLMETRY = (
    "opentelemetry.instrumentation.langchain",
    {"traceloop.span.kind": "tool"},
    "traceloop.entity.input",
    "traceloop.entity.output",
)
Framework = tuple[str, dict[str, str], str, str]


def call(framework: Framework, arguments: Any, result: Any) -> ToolCall:
    scope, attributes, arguments_key, result_key = framework
    written = {**attributes, arguments_key: json.dumps(arguments), result_key: json.dumps(result)}
    agent = span("a", "invoke_agent a", {"gen_ai.operation.name": "invoke_agent"}, end=9)
    [one] = read(
        Trace(
            "",
            trace_id("trace"),
            (
                agent,
                span("t", "execute_tool look", written, parent="a", start=1, end=2, scope=scope),
            ),
        )
    )
    [called] = one.tool_calls
    return called


@pytest.mark.parametrize(
    ("framework", "written", "result", "error"),
    [
        (ADK, {"result": "sunny"}, "sunny", None),
        (ADK, {"result": '{"order_id": "A-1"}'}, ORDER, None),
        (ADK, {"result": {"result": 3}}, {"result": {"result": 3}}, None),
        (ADK, {"result": 1, "unit": "C"}, {"result": 1, "unit": "C"}, None),
        (OPENINFERENCE_ADK, {"id": "c", "name": "look", "response": ORDER}, ORDER, None),
        (
            OPENINFERENCE_ADK,
            {"id": "c", "name": "look", "response": {"result": "sunny"}},
            "sunny",
            None,
        ),
        (LLAMA_INDEX, {"tool_name": "look", "raw_output": "3", "blocks": []}, "3", None),
        (
            LLAMA_INDEX,
            {"tool_name": "look", "raw_output": "gone", "is_error": True},
            "gone",
            "gone",
        ),
        (OPENLLMETRY, {"output": TOOL_MESSAGE, "kwargs": {}}, ORDER, None),
        (OPENLLMETRY, {"output": 3, "kwargs": RUN}, 3, None),
        (OPENLLMETRY, {"output": 3, "kwargs": {"a": 1}}, {"output": 3, "kwargs": {"a": 1}}, None),
    ],
)
def test_a_result_is_unwrapped_by_its_framework(
    framework: Framework, written: Any, result: Any, error: Any
) -> None:
    called = call(framework, {}, written)
    assert (called.result, called.error) == (result, error)


@pytest.mark.parametrize("framework", [CONVENTIONS, PLAIN_OPENINFERENCE, LANGFUSE, MLFLOW])
@pytest.mark.parametrize(
    "returned",
    [
        {"result": "sunny"},
        {"id": 1, "name": "Bob", "response": "yes"},
        {"tool_name": "drill", "raw_output": 3, "price": 4},
        {"type": "text", "value": "v"},
        {"output": 3, "kwargs": RUN},
    ],
    ids=str,
)
def test_a_result_is_not_unwrapped_like_that_of_another_framework(
    framework: Framework, returned: Any
) -> None:
    assert call(framework, {}, returned).result == returned


@pytest.mark.parametrize(
    ("framework", "written", "arguments"),
    [
        (SMOLAGENTS, {"args": [], "sanitize_inputs_outputs": True, "kwargs": ORDER}, ORDER),
        (LLAMA_INDEX, {"kwargs": ORDER}, ORDER),
        (LANGFUSE, {"args": [], "kwargs": ORDER}, ORDER),
        (MLFLOW, {"kwargs": ORDER}, ORDER),
        (OPENLLMETRY, {"args": ["A-1"], "kwargs": {}}, '["A-1"]'),
        (
            OPENLLMETRY,
            {
                "input_str": "{'order_id': 'A-1'}",
                "tags": [],
                "metadata": {},
                "inputs": ORDER,
                "kwargs": {},
            },
            ORDER,
        ),
        (OPENLLMETRY, {"input_str": "{'order_id': 'A-1'}", "inputs": None}, ORDER),
        (OPENLLMETRY, {"input_str": "A-1", "tags": []}, "A-1"),
        (OPENLLMETRY, {"input_str": "hello"}, {"input_str": "hello"}),
        (CONVENTIONS, {"kwargs": {"a": 1}}, {"kwargs": {"a": 1}}),
        (CONVENTIONS, {"args": [], "kwargs": {"a": 1}}, {"args": [], "kwargs": {"a": 1}}),
        (
            PLAIN_OPENINFERENCE,
            {"data": [{"name": "Bob", "args": {"x": 1}}]},
            {"data": [{"name": "Bob", "args": {"x": 1}}]},
        ),
        (
            PLAIN_OPENINFERENCE,
            {"tool_call": {"name": "x", "args": {}, "id": "c"}},
            {"tool_call": {"name": "x", "args": {}, "id": "c"}},
        ),
    ],
)
def test_arguments_are_unwrapped_by_their_framework(
    framework: Framework, written: Any, arguments: Any
) -> None:
    assert call(framework, written, None).arguments == arguments


@pytest.mark.parametrize(
    "people",
    [
        [{"name": "Bob", "id": "7", "args": {}}],
        {"tool_call": {"name": "Bob", "id": "7", "args": {}}},
    ],
)
def test_the_name_and_call_id_of_a_tool_are_not_read_from_its_input(people: Any) -> None:
    for framework in (
        ("other", {"openinference.span.kind": "TOOL"}, "input.value", "output.value"),
        PLAIN_OPENINFERENCE,
    ):
        called = call(framework, people, {"data": {"tool_call_id": "7"}})
        assert (called.name.removeprefix("execute_tool "), called.id) == ("look", None)


def test_a_result_in_a_prompt_is_unwrapped_by_the_dialect_of_the_model_or_agent() -> None:
    asked = [
        {"role": "model", "parts": [{"function_call": {"id": "c", "name": "look", "args": {}}}]}
    ]
    shown = [
        {
            "role": "user",
            "parts": [
                {"function_response": {"id": "c", "name": "look", "response": {"result": "sunny"}}}
            ],
        }
    ]

    def result(scope: str) -> Any:
        chat = {"gen_ai.operation.name": "chat"}
        [one] = read(
            Trace(
                "",
                trace_id("trace"),
                (
                    span(
                        "a",
                        "invoke_agent a",
                        {"gen_ai.operation.name": "invoke_agent"},
                        end=9,
                        scope=scope,
                    ),
                    span(
                        "m",
                        "chat",
                        {**chat, "gen_ai.output.messages": json.dumps(asked)},
                        parent="a",
                        start=1,
                        end=2,
                    ),
                    span(
                        "n",
                        "chat",
                        {**chat, "gen_ai.input.messages": json.dumps(shown)},
                        parent="a",
                        start=3,
                        end=4,
                    ),
                ),
            )
        )
        return [called.result for called in one.tool_calls]

    assert (result("gcp.vertex.agent"), result("other")) == (["sunny"], [{"result": "sunny"}])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"question": "What is X?"}, "What is X?"),
        ({"query": "What is X?", "k": 3, "history": []}, "What is X?"),
        ({"query": "What is X?", "style": "short"}, None),
        ({"query": ""}, None),
        ({"order": "42"}, None),
        ({"query": "__REDACTED__"}, None),
        ({"messages": [["user", "What is X?"], ["ai", "earlier"]]}, "What is X?"),
    ],
)
def test_the_only_text_in_the_input_of_an_agent_is_the_users(given: Any, text: str | None) -> None:
    written = {"openinference.span.kind": "AGENT", "input.value": json.dumps(given)}
    [one] = read(Trace("", trace_id("trace"), (span("a", "a", written, scope=OI + "agno"),)))
    assert one.user_input == text

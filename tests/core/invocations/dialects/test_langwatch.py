"""Special cases of LangWatch that the captures do not have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.invocations.dialects.field_paths import value_at
from pathgauge.collector.core.invocations.dialects.langwatch import (
    LANGWATCH,
    kind,
    name_of,
    unwrap_result,
)
from pathgauge.collector.core.invocations.messages.written_results import Result
from pathgauge.collector.testing import span

KIND = "langwatch.span.type"


@pytest.mark.parametrize(
    ("stated", "expected"),
    [("workflow", "workflow"), ("span", "other"), ("rag", "other"), (["tool"], "other")],
)
def test_a_span_is_what_its_type_says(stated: Any, expected: str) -> None:
    assert kind(span("a", "turn", {KIND: stated})) == expected


@pytest.mark.parametrize(
    ("written", "name"), [("support", "support"), ("LangGraph", None), ("RunnableSequence", None)]
)
def test_the_class_of_a_run_is_no_name(written: str, name: str | None) -> None:
    assert name_of(span("a", written, {KIND: "chain"})) == name


MESSAGE = {"role": "unknown", "content": '{"status": "shipped"}'}


@pytest.mark.parametrize(
    ("written", "result"),
    [
        ([MESSAGE], {"status": "shipped"}),
        ([MESSAGE, MESSAGE], [MESSAGE, MESSAGE]),
        ([MESSAGE | {"role": "user"}], [MESSAGE | {"role": "user"}]),
        ([MESSAGE | {"name": "look"}], [MESSAGE | {"name": "look"}]),
        (["unknown"], ["unknown"]),
        ("shipped", "shipped"),
    ],
)
def test_the_only_message_of_a_tool_is_its_result(written: Any, result: Any) -> None:
    assert unwrap_result(written) == Result(result)


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (
            {"type": "json", "value": {"question": "Where?", "history": [MESSAGE]}},
            {"question": "Where?"},
        ),
        ({"type": "chat_messages", "value": [MESSAGE]}, [MESSAGE]),
        ({"type": "text", "value": "Where?"}, "Where?"),
    ],
)
def test_an_earlier_conversation_is_not_what_an_agent_was_asked(given: Any, shown: Any) -> None:
    [path] = LANGWATCH.fields.agent_input
    assert value_at(path, span("a", "run", {"langwatch.input": json.dumps(given)})) == shown


@pytest.mark.parametrize(
    ("scope", "result"),
    [
        ("langwatch.instrumentation.langchain", "shipped"),
        ("shop", {"type": "text", "value": "shipped"}),
    ],
)
def test_the_callback_in_javascript_wraps_a_result_twice(scope: str, result: Any) -> None:
    [path] = LANGWATCH.fields.result
    written = {"type": "json", "value": {"type": "text", "value": "shipped"}}
    tool = span("a", "look", {"langwatch.output": json.dumps(written)}, scope=scope)
    assert value_at(path, tool) == result


@pytest.mark.parametrize(
    ("name", "metadata", "expected"),
    [
        ("support", {"lc_agent_name": "support"}, "named_step"),
        ("billing", {"lc_agent_name": "support", "langgraph_node": "tools"}, "named_step"),
        ("tools", {"lc_agent_name": "support", "langgraph_node": "tools"}, "other"),
        ("support", {}, "chain"),
    ],
)
def test_a_graph_in_javascript_is_known_by_its_metadata(
    name: str, metadata: dict[str, str], expected: str
) -> None:
    attributes = {f"langwatch.langgraph.{key}": value for key, value in metadata.items()}
    run = span("a", name, attributes | {KIND: "chain"}, scope="langwatch.instrumentation.langchain")
    assert kind(run) == expected

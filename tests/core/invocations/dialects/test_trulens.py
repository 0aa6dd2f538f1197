"""Special cases of TruLens that the captures do not have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.invocations.dialects.field_paths import value_at
from pathgauge.collector.core.invocations.dialects.trulens import (
    TRULENS,
    kind,
    name_of,
    unwrap_result,
)
from pathgauge.collector.core.invocations.messages.written_results import Result
from pathgauge.collector.testing import span

KIND, BASE = "ai.observability.span_type", "ai.observability."


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({KIND: "record_root"}, "agent"),
        ({KIND: "eval_root"}, "dropped"),
        ({KIND: "eval"}, "dropped"),
        ({KIND: "graph_node"}, "other"),
        ({KIND: "graph_node", BASE + "cost.model": "gpt-4.1"}, "model"),
        ({KIND: ["tool"]}, "other"),
    ],
)
def test_evaluations_are_no_runs_and_nodes_with_tokens_call_models(
    attributes: dict[str, Any], expected: str
) -> None:
    assert kind(span("a", "step", attributes, scope="trulens")) == expected


@pytest.mark.parametrize(
    ("name", "attributes", "expected"),
    [
        ("respond", {KIND: "record_root", BASE + "app_name": "support_app"}, "support_app"),
        ("billing", {KIND: "agent", BASE + "app_name": "support_app"}, "billing"),
        ("__main__.Billing.answer", {KIND: "agent"}, None),
    ],
)
def test_the_app_is_the_agent_and_a_method_is_no_name(
    name: str, attributes: dict[str, Any], expected: str | None
) -> None:
    assert name_of(span("a", name, attributes, scope="trulens")) == expected


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("Command(update={'messages': [AIMessage(content='yes')]})", None),
        (["Command(update={'messages': [AIMessage(content='yes')]})"], None),
        ("{'messages': [AIMessage(content='yes')]}", None),
        ("ChatCompletion(id='c1')", None),
        ("Yes (sure).", "Yes (sure)."),
        (["yes"], ["yes"]),
    ],
)
def test_the_repr_of_an_object_is_not_what_a_model_said(written: Any, said: Any) -> None:
    [path] = TRULENS.fields.output_messages
    assert value_at(path, span("a", "model", {BASE + "call.return": written})) == said


CALL = {"name": "look", "args": {"id": 7}, "id": "c1", "type": "tool_call"}


@pytest.mark.parametrize(("calls", "arguments"), [([CALL], {"id": 7}), ([CALL, CALL], None)])
def test_the_arguments_of_a_node_are_those_of_its_only_call(calls: Any, arguments: Any) -> None:
    attributes = {
        BASE + "call.function": "langgraph.prebuilt.tool_node.ToolNode.invoke",
        BASE + "call.kwargs.input": json.dumps(calls),
    }
    [path] = TRULENS.fields.arguments
    assert value_at(path, span("a", "look", attributes)) == arguments


@pytest.mark.parametrize(
    ("written", "result"),
    [
        ("{'messages': [ToolMessage(content='[7]', name='look')]}", Result([7])),
        (
            "{'messages': [ToolMessage(content='no', status='error')]}",
            Result("no", "no"),
        ),
        ("{'messages': [ToolMessage(content='7'), ToolMessage(content='8')]}", Result()),
        ("{'messages': [AIMessage(content='7')]}", Result()),
        ("{'messages': [ToolMessage(content=", Result()),
        ("shipped", Result("shipped")),
        ({"messages": []}, Result({"messages": []})),
    ],
)
def test_the_only_message_of_a_node_is_its_result(written: Any, result: Result) -> None:
    assert unwrap_result(written) == result


def test_what_the_function_of_an_app_returned_is_not_what_the_app_said() -> None:
    attributes = {KIND: "record_root", BASE + "call.return": "the state", BASE + "app_name": "a"}
    values = [
        value_at(path, span("a", "respond", attributes)) for path in TRULENS.fields.agent_output
    ]
    assert values == [None, None]

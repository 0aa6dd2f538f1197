"""Tool arguments and results, before and after unwrapping."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from pathgauge.collector.core.invocations.messages.unwrap import (
    bare_arguments,
    bare_result,
    callable_arguments,
)
from pathgauge.collector.core.invocations.messages.written_results import Result

ORDER = {"order_id": "A-1"}


def lc(kind: str, **kwargs: Any) -> dict[str, Any]:
    """A LangChain message as its constructor call."""
    return {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", kind],
        "kwargs": kwargs,
    }


FAILED = {
    "type": "tool",
    "content": [{"type": "text", "text": "no such order"}],
    "tool_call_id": "c",
    "status": "error",
}


def command(*messages: Any) -> dict[str, Any]:
    """What a tool of LangGraph returns that also changes the state of the graph."""
    update = {"messages": [lc("HumanMessage", content="Where is it?"), *messages], "step": 1}
    return {"graph": None, "update": update, "resume": None, "goto": []}


def response(*texts: str, state: str = "success") -> dict[str, Any]:
    """The response of a tool of AgentScope."""
    blocks = [{"type": "text", "text": text, "id": "b", "finished_at": None} for text in texts]
    return {"content": blocks, "state": state, "metadata": {}, "id": "c"}


def written_response(*texts: str) -> str:
    """The response of a tool of AgentScope 1 in its `repr`."""
    blocks = [{"type": "text", "text": text} for text in texts]
    return f"ToolResponse(content={blocks!r}, metadata=None, stream=False, id='c')"


@pytest.mark.parametrize(
    ("recorded", "bare"),
    [
        (ORDER, ORDER),
        ({}, {}),
        (None, None),
        ("A-1", "A-1"),
        (["A-1"], None),
        (7, None),
        ({"input_str": "hello"}, {"input_str": "hello"}),
        ({"kwargs": ORDER}, {"kwargs": ORDER}),
    ],
)
def test_arguments(recorded: Any, bare: Any) -> None:
    assert bare_arguments(recorded) == bare


@pytest.mark.parametrize(
    ("recorded", "bare"),
    [
        ({"args": [], "sanitize_inputs_outputs": True, "kwargs": ORDER}, ORDER),
        ({"kwargs": ORDER}, ORDER),
        ({"kwargs": {**ORDER, "context": "<Context object at 0x10f>"}}, ORDER),
        ({"kwargs": {"kwargs": ORDER}}, {"kwargs": ORDER}),
        ({"args": ["A-1"], "kwargs": {}}, '["A-1"]'),
        ({"kwargs": ORDER, "verbose": True}, {"kwargs": ORDER, "verbose": True}),
        ({"kwargs": [1]}, None),
        ("A-1", "A-1"),
    ],
)
def test_arguments_of_a_callable(recorded: Any, bare: Any) -> None:
    assert bare_arguments(recorded, callable_arguments) == bare


@pytest.mark.parametrize(
    ("recorded", "bare"),
    [
        (None, Result()),
        ("sunny", Result("sunny")),
        (ORDER, Result(ORDER)),
        ([1, 2], Result([1, 2])),
        (
            lc("ToolMessage", content=json.dumps(ORDER), tool_call_id="c", status="success"),
            Result(ORDER),
        ),
        (
            {"type": "tool", "data": {"content": json.dumps(ORDER), "tool_call_id": "c"}},
            Result(ORDER),
        ),
        (
            {"content": "sunny", "type": "tool", "name": "weather", "tool_call_id": "c"},
            Result("sunny"),
        ),
        ({"content": ORDER, "name": "look", "tool_call_id": "c"}, Result(ORDER)),
        ({"content": "[redacted]", "name": "look", "tool_call_id": "c"}, Result()),
        (
            {"messages": [{"type": "tool", "data": {"content": "sunny", "tool_call_id": "c"}}]},
            Result("sunny"),
        ),
        ([{"text": json.dumps(ORDER)}], Result(ORDER)),
        ([{"type": "text", "text": "sunny"}], Result("sunny")),
        ([{"text": "one"}, {"text": "two"}], Result([{"text": "one"}, {"text": "two"}])),
        ([{"text": "one", "page": 1}], Result([{"text": "one", "page": 1}])),
        (
            {"error": "gone", "suggestions": ["wait"]},
            Result({"error": "gone", "suggestions": ["wait"]}, "gone"),
        ),
        ({"error": None, "order_id": "A-1"}, Result({"error": None, "order_id": "A-1"})),
        ({"error": {"code": 5}}, Result({"error": {"code": 5}}, '{"code":5}')),
        (
            {"type": "tool", "content": '{"error": "gone"}', "tool_call_id": "c"},
            Result({"error": "gone"}, "gone"),
        ),
        ({"messages": [FAILED]}, Result("no such order", "no such order")),
        (
            {"type": "tool", "content": "", "tool_call_id": "c", "status": "error"},
            Result("", "error"),
        ),
        (
            lc("ToolMessage", content="no such order", tool_call_id="c", status="error"),
            Result("no such order", "no such order"),
        ),
        ({"status": "error", "order_id": "A-1"}, Result({"status": "error", "order_id": "A-1"})),
        (command(lc("ToolMessage", content="sunny", tool_call_id="c")), Result("sunny")),
        ([command(FAILED)], Result("no such order", "no such order")),
        ({"output": lc("ToolMessage", content="sunny", tool_call_id="c")}, Result("sunny")),
        ({"output": command(FAILED)}, Result("no such order", "no such order")),
        (response(json.dumps(ORDER)), Result(ORDER)),
        (response("one", "two"), Result("one\ntwo")),
        (response("no such order", state="error"), Result("no such order", "no such order")),
        (response(state="interrupted"), Result("", "interrupted")),
        (written_response(json.dumps(ORDER)), Result(ORDER)),
        (written_response("one", "two"), Result("one\ntwo")),
        (written_response("sunny")[:-9], Result()),
        ("ToolResponse(content=[1], id='c')", Result()),
        ("ToolResponse(content=[]) is empty", Result()),
    ],
)
def test_results(recorded: Any, bare: Result) -> None:
    assert bare_result(recorded) == bare


@pytest.mark.parametrize(
    "returned",
    [
        {"messages": [{"content": "Hi", "from": "Bob"}]},
        {"messages": [FAILED, FAILED]},
        {"id": 1, "name": "Bob", "response": "yes"},
        {"type": "tool", "content": "hammer"},
        {"type": "text", "value": "v"},
        {"result": 3},
        {"result": {"result": 3}},
        {"tool_name": "drill", "raw_output": 3, "price": 4},
        {"output": "sunny"},
        {"output": 1, "kwargs": {}},
        {"goto": "shop", "update": {"messages": ["sunny"]}},
        {"goto": [], "update": None},
        {"content": [{"text": "sunny"}], "state": "open", "metadata": {}, "id": 1},
        {"content": ["sunny"], "state": "success", "metadata": {}, "id": 1},
        lc("AIMessage", content="Hi"),
    ],
    ids=str,
)
def test_a_value_without_wrapping_is_unchanged(returned: Any) -> None:
    assert bare_result(returned) == Result(returned)


def test_a_result_is_unwrapped_once() -> None:
    assert bare_result([{"text": '[{"text": "sunny"}]'}]) == Result([{"text": "sunny"}])


keys = st.sampled_from(
    [
        "result",
        "output",
        "kwargs",
        "lc",
        "type",
        "id",
        "data",
        "content",
        "messages",
        "error",
        "response",
        "name",
        "text",
    ]
)
anything = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=4)
    | st.sampled_from(["tool", "error", "constructor"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)


@given(anything)
@example({"result": None, "error": -(2**63) - 1})
def test_anything_is_unwrapped_without_an_error(value: Any) -> None:
    assert isinstance(bare_result(value).error, str | None)
    assert isinstance(bare_arguments(value), dict | str | None)


CHAT_MESSAGE = "ChatMessage(_role=<ChatRole.TOOL: 'tool'>, _content=[], _name=None, _meta={})"


@pytest.mark.parametrize(
    ("recorded", "bare"),
    [
        ("content='[1]' name='look' tool_call_id='c'", Result([1])),
        ("content='gone' tool_call_id='c' status='error'", Result("gone", "gone")),
        ("content='' tool_call_id='c' status='error'", Result("", "error")),
        ("content='a' tool_call_id='c' artifact=1 + 2", Result()),
        ("content=1", Result("content=1")),
        ([True, {"role": "function", "content": "[1]"}], Result([1])),
        ([False, {"role": "function", "content": "gone"}], Result("gone", "gone")),
        ([True, {"role": "user", "content": "[1]"}], None),
        ({"tool_messages": [CHAT_MESSAGE]}, Result()),
        ({"tool_messages": ["of a colleague"]}, None),
    ],
)
def test_the_result_in_an_object_of_a_framework_is_read_from_its_text(
    recorded: Any, bare: Result | None
) -> None:
    assert bare_result(recorded) == (bare or Result(recorded))

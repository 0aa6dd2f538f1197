"""Every format of a model message, read into the same `Message`."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from pathgauge.collector.core.invocations.messages.message import (
    AskedCall,
    Message,
    Response,
    answer,
    last_answer,
    last_turn,
    last_user_text,
    with_call_ids,
)
from pathgauge.collector.core.invocations.messages.parse import parse_last_turn, parse_messages

ASKED = Message("assistant", calls=(AskedCall("lookup", {"id": 7}, "c1"),))
ASKED_BESIDE_NOTHING = ASKED._replace(text="")
LOOKUP = {"name": "lookup", "arguments": '{"id": 7}'}
CALL = {"name": "lookup", "args": {"id": 7}, "id": "c1"}
SHOWN = Message("tool", responses=(Response({"ok": True}, None, "c1"),))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"role": "user", "parts": [{"type": "text", "content": "hi"}]}, Message("user", "hi")),
        (
            {
                "role": "user",
                "parts": [{"type": "text", "content": "a"}, {"type": "text", "content": "b"}],
            },
            Message("user", "a\nb"),
        ),
        (
            {
                "role": "user",
                "parts": [{"type": "text", "content": "[{'type': 'text', 'text': ''}]"}],
            },
            Message("user", ""),
        ),
        (
            {"role": "user", "parts": [{"type": "text", "content": "[{'id': 7}]"}]},
            Message("user", "[{'id': 7}]"),
        ),
        ({"role": "user", "content": "hi"}, Message("user", "hi")),
        ({"role": "user", "content": '{"order": 7}'}, Message("user", '{"order": 7}')),
        ({"role": "user", "content": [{"type": "text", "text": "hi"}]}, Message("user", "hi")),
        ({"role": "user", "content": '[{"text": "hi"}]'}, Message("user", "hi")),
        ({"role": "model", "parts": [{"text": "hi"}]}, Message("assistant", "hi")),
        ("hi", Message("assistant", "hi")),
        ('{"role": "user", "content": "hi"}', Message("user", "hi")),
        ({"content": "<elided>"}, Message("assistant", hidden=True)),
        ({"content": "N/A"}, Message("assistant", "N/A")),
        ("N/A", Message("assistant", "N/A")),
        (
            {"role": "tool", "tool_call_id": "c1"},
            Message("tool", responses=(Response(None, None, "c1"),)),
        ),
        (
            {"role": "user", "contents": [{"message_content": {"type": "text", "text": "hi"}}]},
            Message("user", "hi"),
        ),
        (
            {"raw": "hi", "pydantic": None, "messages": [{"role": "user", "content": "no"}]},
            Message("assistant", "hi"),
        ),
        (
            {
                "role": "assistant",
                "parts": [
                    {"type": "tool_call", "id": "c1", "name": "lookup", "arguments": {"id": 7}}
                ],
            },
            ASKED,
        ),
        (
            {
                "role": "assistant",
                "parts": [
                    {"type": "tool_call", "id": "c1", "name": "lookup", "arguments": '{"id": 7}'}
                ],
            },
            ASKED,
        ),
        (
            {
                "role": "assistant",
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "lookup", "arguments": '{"id": 7}'},
                    }
                ],
            },
            ASKED,
        ),
        (
            {
                "role": "model",
                "parts": [{"function_call": {"id": "c1", "name": "lookup", "args": {"id": 7}}}],
            },
            ASKED,
        ),
        (
            {
                "role": "model",
                "parts": [{"functionCall": {"id": "c1", "name": "lookup", "args": {"id": 7}}}],
            },
            ASKED,
        ),
        (
            {
                "index": 0,
                "message": {"role": "assistant", "content": "yes"},
                "finish_reason": "stop",
            },
            Message("assistant", "yes", finish_reason="stop"),
        ),
        (
            {"content": {"role": "model", "parts": [{"text": "yes", "function_call": None}]}},
            Message("assistant", "yes"),
        ),
        (
            {
                "role": "tool",
                "parts": [{"type": "tool_call_response", "id": "c1", "response": {"ok": True}}],
            },
            SHOWN,
        ),
        (
            {
                "role": "tool",
                "parts": [{"type": "tool_call_response", "id": "c1", "result": '{"ok": true}'}],
            },
            SHOWN,
        ),
        ({"role": "tool", "content": '{"ok": true}', "tool_call_id": "c1"}, SHOWN),
        ({"role": "tool", "content": '{"ok": true}', "id": "c1"}, SHOWN),
        (
            {
                "role": "assistant",
                "parts": [
                    {"type": "reasoning", "content": "hm"},
                    {"type": "text", "content": "yes"},
                ],
            },
            Message("assistant", "yes"),
        ),
        (
            {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "yes"}]},
            Message("assistant", "yes"),
        ),
        (
            {"type": "function_call", "name": "lookup", "arguments": '{"id": 7}', "call_id": "c1"},
            ASKED,
        ),
        (
            {"type": "function_call", "name": "lookup", "arguments": '{"id": 7}', "call_id": "c1"}
            | {"role": "assistant"},
            ASKED,
        ),
        ({"type": "function_call_output", "call_id": "c1", "output": '{"ok": true}'}, SHOWN),
        (
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "yes"}],
            },
            Message("assistant", "yes"),
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "lookup", "input": {"id": 7}}],
            },
            ASKED,
        ),
        (
            {
                "role": "tool",
                "content": [
                    {"type": "tool_result", "tool_use_id": "c1", "content": '{"ok": true}'}
                ],
            },
            SHOWN,
        ),
        (
            {
                "role": "assistant",
                "content": [{"toolUse": {"toolUseId": "c1", "name": "lookup", "input": {"id": 7}}}],
            },
            ASKED,
        ),
        (
            {
                "role": "assistant",
                "content": [
                    {
                        "type": "tool-call",
                        "toolCallId": "c1",
                        "toolName": "lookup",
                        "input": {"id": 7},
                    }
                ],
            },
            ASKED,
        ),
        (
            {
                "message": {
                    "role": "assistant",
                    "tool_calls": [{"tool_call": {"id": "c1", "function": LOOKUP}}],
                }
            },
            ASKED,
        ),
        (
            {
                "role": "assistant",
                "tool_calls": [{"id": "c1", "name": "lookup", "arguments": '{"id": 7}'}],
            },
            ASKED,
        ),
        ({"type": "ai", "content": "", "tool_calls": [CALL]}, ASKED_BESIDE_NOTHING),
        ({"type": "ai", "data": {"content": "yes", "type": "ai"}}, Message("assistant", "yes")),
        (
            {"lc": 1, "id": ["x", "AIMessage"], "kwargs": {"content": "yes", "type": "ai"}},
            Message("assistant", "yes"),
        ),
        (
            {"lc": 1, "id": ["x", "HumanMessage"], "kwargs": {"content": "hi"}},
            Message("user", "hi"),
        ),
        ({"type": "human", "content": [{"type": "text", "text": "hi"}]}, Message("user", "hi")),
        ({"type": "tool", "data": {"content": '{"ok": true}', "tool_call_id": "c1"}}, SHOWN),
        (
            {"type": "tool", "content": "no", "tool_call_id": "c1", "status": "error"},
            Message("tool", responses=(Response("no", None, "c1", "error"),)),
        ),
        (
            {
                "generation_info": {"finish_reason": "stop"},
                "message": {"lc": 1, "id": ["AIMessage"], "kwargs": {"content": "yes"}},
            },
            Message("assistant", "yes", finish_reason="stop"),
        ),
        (
            {
                "role": "assistant",
                "content": [{"type": "tool_use", "id": "c1", "name": "lookup", "input": {"id": 7}}],
                "tool_calls": [CALL],
            },
            ASKED,
        ),
        # LlamaIndex
        (
            {
                "role": "assistant",
                "additional_kwargs": {},
                "blocks": [
                    {"block_type": "text", "text": "hi"},
                    {
                        "block_type": "tool_call",
                        "tool_call_id": "c1",
                        "tool_name": "lookup",
                        "tool_kwargs": '{"id": 7}',
                    },
                ],
            },
            ASKED._replace(text="hi"),
        ),
        (
            {
                "role": "tool",
                "additional_kwargs": {"name": "lookup", "tool_call_id": "c1"},
                "blocks": [{"block_type": "text", "text": '{"ok": true}'}],
            },
            Message("tool", responses=(Response({"ok": True}, "lookup", "c1"),)),
        ),
        # AutoGen
        ({"content": "hi", "type": "SystemMessage"}, Message("system", "hi")),
        ({"content": "hi", "source": "clerk", "type": "UserMessage"}, Message("user", "hi")),
        (
            {"content": [{"id": "c1", **LOOKUP}], "source": "clerk", "type": "AssistantMessage"},
            ASKED,
        ),
        (
            {
                "content": [{"content": "no", "name": "lookup", "call_id": "c1", "is_error": True}],
                "type": "FunctionExecutionResultMessage",
            },
            Message("tool", responses=(Response("no", "lookup", "c1", "no"),)),
        ),
    ],
)
def test_a_message_of_any_shape(value: Any, message: Message) -> None:
    assert parse_messages([value], "assistant") == (message,)


@pytest.mark.parametrize(
    "container",
    [
        lambda messages: {"messages": messages},
        lambda messages: {"messages": [messages]},
        lambda messages: {"inputs": {"messages": messages}, "tags": []},
        lambda messages: {"outputs": {"messages": messages}},
        lambda messages: {"output": messages, "id": "resp", "object": "response"},
        lambda messages: {"contents": messages, "model": "gemini"},
        lambda messages: {"generations": [[{"message": message} for message in messages]]},
        lambda messages: {"choices": [{"index": 0, "message": message} for message in messages]},
    ],
)
def test_messages_are_found_in_what_contains_them(container: Any) -> None:
    said = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}]
    assert parse_messages(container(said), "user") == (
        Message("user", "hi"),
        Message("assistant", "yes"),
    )


@pytest.mark.parametrize(
    "value",
    [{}, {"thread": "t"}, {"question": "hi"}, [], None, 7, {"type": "reasoning", "summary": []}],
)
def test_what_holds_no_message_is_none(value: Any) -> None:
    assert parse_messages(value, "user") == ()


def test_results_without_ids_answer_the_calls_before_them_in_order() -> None:
    asked = Message("assistant", calls=(AskedCall("a", {}, "c1"), AskedCall("b", {}, "c2")))
    shown = [Message("tool", responses=(Response(n),)) for n in ("one", "two", "three")]
    named = with_call_ids([asked, *shown])
    assert [response.id for message in named for response in message.responses] == [
        "c1",
        "c2",
        None,
    ]


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([("user", "hi"), ("assistant", "yes")], "yes"),
        ([("assistant", "yes"), ("user", "thanks")], None),
        ([], None),
    ],
)
def test_the_answer_that_ends_a_conversation(
    messages: list[tuple[str, str]], text: str | None
) -> None:
    assert last_answer([Message(role, said) for role, said in messages]) == text


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "role",
                    "parts",
                    "content",
                    "type",
                    "text",
                    "tool_calls",
                    "function",
                    "name",
                    "message",
                    "id",
                    "function_call",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_is_read_without_an_error(value: Any) -> None:
    parse_messages(value, "user")


def test_the_last_text_that_a_user_wrote_is_not_a_tool_result() -> None:
    result = {"role": "user", "parts": [{"type": "tool_call_response", "id": "c", "result": "x"}]}
    messages = parse_messages(
        [{"role": "user", "content": "first"}, {"role": "user", "content": "last"}, result], "user"
    )
    assert last_user_text(messages) == "last"


@pytest.mark.parametrize(
    ("messages", "text"),
    [
        ([{"content": "yes", "finish_reason": "stop"}], "yes"),
        (
            [
                {"content": "one ", "finish_reason": ""},
                {"content": "answer", "finish_reason": "stop"},
            ],
            "one answer",
        ),
        ([{"content": "beside calls that were lost", "finish_reason": "tool_use"}], None),
        (
            [
                {"content": "first choice", "finish_reason": "stop"},
                {"content": "second", "finish_reason": "stop"},
            ],
            "first choice",
        ),
        ([{"content": "let me look", "tool_calls": [{"function": {"name": "lookup"}}]}], None),
        ([{"content": ""}], ""),
        ([{"content": "", "finish_reason": ""}, {"content": "", "finish_reason": "stop"}], ""),
        ([{"content": ""}, {"content": "late", "finish_reason": "stop"}], "late"),
        ([{"content": ""}, {"role": "assistant"}], None),
        ([{"role": "user", "content": ""}], None),
        ([], None),
    ],
)
def test_the_answer_of_a_model_call(messages: list[dict[str, Any]], text: str | None) -> None:
    assert answer(parse_messages(messages, "assistant")) == text


def test_the_definition_of_a_tool_among_the_messages_is_none() -> None:
    definition = {
        "role": "tool",
        "content": {"type": "function", "function": {"name": "lookup", "parameters": {}}},
    }
    assert parse_messages([definition], "user") == ()


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        (
            {
                "args": [[{"role": "user", "content": "hi"}], 7],
                "kwargs": {"more": [{"role": "user", "content": "ho"}]},
            },
            ["hi", "ho"],
        ),
        ({"args": ["hi"], "kwargs": {"n": {"x": 1}}}, []),
        ({"args": "hi", "kwargs": None}, []),
        ({"replies": [{"role": "assistant", "content": [{"text": "hi"}]}]}, ["hi"]),
    ],
)
def test_messages_are_found_in_their_containers(value: Any, texts: list[str]) -> None:
    assert [message.text for message in parse_messages(value, "user")] == texts


@pytest.mark.parametrize(
    "text",
    [
        '[{"type":"refund","order":"A-1"}]',
        '[{"type":"tool_use","order":"A-1"}]',
        '[{"type":"text","order":"A-1"}]',
        '[{"type":"text","text":"a","label":"b"}]',
        '[{"text":"a","label":"b"}]',
        '[{"text":"a"},{"label":"b"}]',
        '[{"text":7}]',
        '[{"toolUse":"drill"}]',
        '[{"type":["text"],"text":"a"}]',
        "[]",
        "N/A",
        '{"a": ',
        "[",
    ],
)
def test_a_text_that_looks_like_json_stays_as_it_was_written(text: str) -> None:
    said = Message("assistant", text)
    assert parse_messages([{"role": "assistant", "content": text}], "assistant") == (said,)
    assert parse_messages(
        [{"role": "assistant", "parts": [{"type": "text", "content": text}]}], "assistant"
    ) == (said,)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (
            [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "x"}}],
            Message("assistant", "a"),
        ),
        (
            [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "a"},
            ],
            Message("assistant", "a"),
        ),
        ([{"type": "output_text", "text": "a", "annotations": []}], Message("assistant", "a")),
        ([{"type": "tool_use", "id": "c1", "name": "lookup", "input": {"id": 7}}], ASKED),
        ([{"toolUse": {"toolUseId": "c1", "name": "lookup", "input": {"id": 7}}}], ASKED),
    ],
)
def test_content_blocks_are_read_from_json_text(blocks: Any, message: Message) -> None:
    assert parse_messages([{"role": "assistant", "content": json.dumps(blocks)}], "assistant") == (
        message,
    )


def test_a_block_of_json_is_the_result_of_a_tool() -> None:
    shown = {"role": "tool", "tool_call_id": "c1", "content": '[{"json": {"ok": true}}]'}
    assert parse_messages([shown], "user") == (SHOWN,)


@pytest.mark.parametrize(
    ("state", "texts"),
    [
        ({"input": "What is X?", "context": ["c"], "answer": "X is Y."}, []),
        ({"input": "What is X?", "plan": ["p"], "response": "X is Y."}, []),
        ({"inputs": {"messages": [{"role": "user", "content": "hi"}]}, "report": "r"}, []),
        ({"topic": "X", "outputs": ["a.md"], "report": "X is Y."}, []),
        ({"outputs": ["a.md"], "report": "X is Y.", "content": "yes"}, ["yes"]),
        ({"input": "What is X?", "output": "X is Y."}, ["X is Y."]),
        ({"output": "X is Y.", "steps": []}, ["X is Y."]),
        ({"id": "resp", "output": [{"role": "assistant", "content": "yes"}]}, ["yes"]),
        (
            {
                "messages": [
                    {"role": "user", "content": "hi"},
                    {"role": "assistant", "content": "yes"},
                ],
                "input": "hi",
            },
            ["hi", "yes"],
        ),
    ],
)
def test_the_input_of_an_agent_is_not_its_output(state: Any, texts: list[str]) -> None:
    assert [message.text for message in parse_messages(state, "assistant")] == texts


@pytest.mark.parametrize("pair", [list, tuple])
def test_a_role_with_a_text_is_one_message(pair: Any) -> None:
    said = {"messages": [pair(["user", "hi"]), pair(["ai", "yes"])]}
    assert parse_messages(said, "user") == (Message("user", "hi"), Message("assistant", "yes"))
    assert parse_messages([["hi", "ho"]], "user") == (Message("user", "hi"), Message("user", "ho"))


def test_a_call_with_empty_text_for_arguments_has_none() -> None:
    asked = {
        "role": "assistant",
        "tool_calls": [{"id": "c1", "function": {"name": "lookup", "arguments": ""}}],
    }
    assert parse_messages([asked], "assistant") == (
        Message("assistant", calls=(AskedCall("lookup", {}, "c1"),)),
    )


_RESULT = {"type": "tool_call_response", "id": "c1", "response": {"ok": True}}
_SAID = {"type": "text", "content": "hi"}
_WRITTEN = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system", "model", "human"])},
    optional={
        "parts": st.lists(st.sampled_from([_RESULT, _SAID, {"type": "tool_call", **CALL}])),
        "content": st.sampled_from(["hi", "", [_SAID], {"role": "user", "content": "inner"}]),
        "message": st.just({"role": "assistant", "tool_calls": [CALL]}),
        "tool_calls": st.just([CALL]),
        "tool_call_id": st.just("c1"),
        "name": st.just("lookup"),
        "type": st.sampled_from(["human", "tool", "ai"]),
        "data": st.just({"content": "inner"}),
        "raw": st.just("hi"),
        "pydantic": st.none(),
    },
)


_ASKS = {"role": "user", "content": "hi"}


@given(st.lists(_WRITTEN, max_size=6))
@example([_ASKS, {"role": "tool", "content": {"role": "user", "content": "inner"}}])
@example([_ASKS, {"role": "tool", "message": {"role": "assistant", "tool_calls": [CALL]}}])
@example([_ASKS, {"role": "tool", "raw": "hello", "pydantic": None}])
def test_the_last_turn_alone_says_what_the_whole_prompt_says(prompt: list[Any]) -> None:
    alone, whole = parse_last_turn(prompt), last_turn(parse_messages(prompt, "user"))
    if alone:
        assert not_of_tools(alone) == not_of_tools(whole)


def not_of_tools(messages: tuple[Message, ...]) -> list[Message]:
    return [message for message in messages if message.role != "tool"]


@pytest.mark.parametrize(
    "result",
    [
        {"role": "tool", "parts": [_RESULT]},
        {"role": "tool", "content": '{"ok": true}', "tool_call_id": "c1"},
    ],
)
def test_results_are_left_out_of_the_last_turn(result: dict[str, Any]) -> None:
    asked = {"role": "assistant", "tool_calls": [CALL]}
    found = parse_last_turn([{"role": "user", "content": "hi"}, asked, result])
    assert found == (Message("user", "hi"), ASKED)

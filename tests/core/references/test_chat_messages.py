"""Trajectories as chat messages of OpenAI and LangChain."""

from __future__ import annotations

import json

import pytest

from pathgauge.collector.config import reference_files
from pathgauge.collector.config.plugins.formats import installed_formats
from pathgauge.collector.core.documents import ConfigError, json_source
from pathgauge.collector.core.references import formats
from pathgauge.collector.core.references.formats import FileContents
from pathgauge.collector.core.references.rows import IDS
from pathgauge.scorers.types import ExpectedCall, Json, ReferenceTurn
from support.repository import REFERENCE_FILES

GOLDEN = REFERENCE_FILES

ASKED = {"role": "user", "content": "Hi"}
USED = {"role": "assistant", "content": [{"type": "tool_use", "name": "t", "input": {}}]}
ANSWERED = {"role": "assistant", "content": "Hello"}


def read(data: Json) -> FileContents:
    return formats.load(json_source.read(json.dumps(data), "talk.json"), installed_formats())


def turns(messages: list[Json]) -> list[ReferenceTurn]:
    return list(read(messages).entries[0].reference.turns)


def calling(*calls: Json, **more: Json) -> Json:
    return {"role": "assistant", "tool_calls": list(calls), **more}


def openai(name: str, arguments: Json) -> Json:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_dataset_of_trajectories_in_lines() -> None:
    found = reference_files.read(GOLDEN / "openai.jsonl")
    lights_off = ReferenceTurn(
        "Turn off the lamp\nin the bedroom.",
        (
            ExpectedCall("find_device", {"room": "bedroom"}),
            ExpectedCall("switch", {"device": 2, "on": False}),
            ExpectedCall("log"),
        ),
        "Off.",
    )
    oslo = ReferenceTurn("And Oslo?", (ExpectedCall("get_weather", {"city": "Oslo"}),), "Cold.")
    assert [(entry.reference.scenario_id, entry.reference.turns) for entry in found.entries] == [
        ("lights_off", (lights_off,)),
        ("2", (oslo,)),
    ]
    assert (found.titles, found.notes) == ({"chat messages"}, [])
    assert found.ignored == {
        "inputs": 1,
        "system messages": 1,
        "tool messages": 3,
        "messages.tool_calls.type": 4,
    }


def test_a_list_of_messages_is_a_conversation_named_after_its_file() -> None:
    (entry,) = reference_files.read(GOLDEN / "weather.json").entries
    calls = (
        ExpectedCall("get_weather", {"city": "Paris"}, group=0),
        ExpectedCall("get_weather", {"city": "Rome"}, group=0),
    )
    assert entry.reference.scenario_id == "weather"
    assert entry.reference.turns == (
        ReferenceTurn("Compare Paris and Rome.", calls, "Rome is warmer."),
        ReferenceTurn("Thanks", (), "You are welcome."),
    )


@pytest.mark.parametrize(
    "call",
    [
        calling(openai("t", '{"x": 1}')),
        calling(openai("t", {"x": 1})),
        calling(openai("t", "{'x': 1}")),
        calling({"name": "t", "args": {"x": 1}, "id": "1", "type": "tool_call"}),
        {"role": "assistant", "function_call": {"name": "t", "arguments": '{"x": 1}'}},
        {
            "type": "ai",
            "content": [{"type": "tool_use", "name": "t"}],
            "tool_calls": [{"name": "t", "args": {"x": 1}}],
        },
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "ok"},
                {"type": "tool_use", "id": "1", "name": "t", "input": {"x": 1}},
            ],
        },
        {"type": "ai", "data": {"content": "", "tool_calls": [{"name": "t", "args": {"x": 1}}]}},
        {
            "lc": 1,
            "type": "constructor",
            "kwargs": {
                "type": "ai",
                "content": "",
                "tool_calls": [{"name": "t", "args": {"x": 1}}],
            },
        },
    ],
)
def test_all_notations_of_a_call(call: Json) -> None:
    assert turns([ASKED, call, ANSWERED]) == [
        ReferenceTurn("Hi", (ExpectedCall("t", {"x": 1}),), "Hello")
    ]


@pytest.mark.parametrize(
    ("arguments", "expected"), [("", {}), (" ", {}), ("{}", {}), ({}, {}), (None, None)]
)
def test_empty_arguments_differ_from_missing_arguments(arguments: Json, expected: Json) -> None:
    assert turns([ASKED, calling(openai("t", arguments))]) == [
        ReferenceTurn("Hi", (ExpectedCall("t", expected),))
    ]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([ASKED], [("Hi", 0, None)]),
        ([ASKED, ANSWERED], [("Hi", 0, "Hello")]),
        ([ASKED, {"role": "user", "content": "You?"}, ANSWERED], [("Hi\nYou?", 0, "Hello")]),
        ([ASKED, ANSWERED, ASKED, ASKED, ANSWERED], [("Hi", 0, "Hello"), ("Hi\nHi", 0, "Hello")]),
        ([ASKED, ANSWERED, {"role": "assistant", "content": "Bye"}], [("Hi", 0, "Bye")]),
        ([ASKED, ANSWERED, {"role": "assistant", "content": ""}], [("Hi", 0, "Hello")]),
        ([ASKED, calling(openai("t", "{}"), content="Let me look")], [("Hi", 1, None)]),
        (
            [
                ASKED,
                USED,
                {"role": "user", "content": [{"type": "tool_result", "content": "r"}]},
                ANSWERED,
            ],
            [("Hi", 1, "Hello")],
        ),
        (
            [ASKED, USED, {"role": "user", "content": [{"type": "tool_result"}, "Go on"]}],
            [("Hi", 1, None), ("Go on", 0, None)],
        ),
        ([ANSWERED, ASKED, ANSWERED], [("Hi", 0, "Hello")]),
        ([ANSWERED], [(None, 0, "Hello")]),
        ([calling(openai("t", "{}")), ASKED, ANSWERED], [(None, 1, None), ("Hi", 0, "Hello")]),
        ([{"role": "developer", "content": "Be kind"}, ASKED, ANSWERED], [("Hi", 0, "Hello")]),
        (
            [
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "a"}, {"type": "image_url"}, "b"],
                }
            ],
            [("a\nb", 0, None)],
        ),
        ([{"role": "user", "content": None}, ANSWERED], [(None, 0, "Hello")]),
        (
            [
                {"type": "HumanMessageChunk", "content": "Hi"},
                {"type": "AIMessageChunk", "content": "Hello"},
            ],
            [("Hi", 0, "Hello")],
        ),
    ],
)
def test_each_user_message_begins_a_turn(messages: list[Json], expected: list[Json]) -> None:
    assert [
        (turn.user_input, len(turn.tool_calls or ()), turn.response) for turn in turns(messages)
    ] == expected


def test_the_calls_of_one_message_may_come_in_any_order() -> None:
    a, b, c = [{"name": name, "args": {}} for name in "abc"]
    (turn,) = turns([ASKED, calling(a), calling(a, b), calling(b, c, a), ANSWERED])
    assert [(call.name, call.group) for call in turn.tool_calls or ()] == [
        ("a", None),
        ("a", 0),
        ("b", 0),
        ("b", 1),
        ("c", 1),
        ("a", 1),
    ]


@pytest.mark.parametrize(
    ("inputs", "asked"),
    [
        ("Hi", "Hi"),
        ({"question": "Hi"}, "Hi"),
        ({"messages": [ANSWERED, ASKED]}, "Hi"),
        ({"messages": [{"type": "human", "data": {"content": "Hi"}}], "user": 1}, "Hi"),
        ([ASKED], "Hi"),
        (ASKED, None),
        ({"question": "Hi", "user": "x"}, None),
        (None, None),
        (5, None),
    ],
)
def test_the_user_input_may_be_in_the_inputs(inputs: Json, asked: str | None) -> None:
    (entry,) = read([{"id": "a", "inputs": inputs, "reference_outputs": [ANSWERED]}]).entries
    assert entry.reference.turns == (ReferenceTurn(asked, (), "Hello"),)


def test_inputs_are_ignored_if_the_messages_begin_with_the_user() -> None:
    found = read(
        [
            {
                "id": "a",
                "inputs": "Other",
                "reference_outputs": {"messages": [ASKED, ANSWERED]},
                "outputs": [ANSWERED],
            }
        ]
    )
    assert found.entries[0].reference.turns == (ReferenceTurn("Hi", (), "Hello"),)
    assert found.ignored == {"inputs": 1, "outputs": 1}


def test_lists_and_rows_without_id_are_named_after_their_prompt() -> None:
    both = read([[ASKED, ANSWERED], {"messages": [{"role": "user", "content": "Bye"}, ANSWERED]}])
    names = [entry.reference.scenario_id for entry in both.entries]
    again = read([[ANSWERED], {"reference_outputs": [ASKED]}])
    assert again.entries[1].reference.scenario_id == names[0] != names[1]
    assert both.notes == [
        (
            f"rows without an id ({', '.join(IDS)}): 2, named after a hash of their prompt, such as"
            f" {names[0]}"
        ),
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (
            [ASKED, {"role": "robot", "content": ""}],
            "1:46: [1].role: found 'robot', expected a role such as user, assistant or tool",
        ),
        ([ASKED, {"content": ""}], "1:37: [1].type: found null, expected a role"),
        ([ASKED, 5], "1:37: [1]: found 5, expected a mapping"),
        (
            [ASKED, calling({"id": "1"})],
            "1:74: [1].tool_calls[0]: found neither function nor name, expected one of them",
        ),
        (
            [ASKED, calling(openai("", {}))],
            "1:127: [1].tool_calls[0].function.name: found '', expected text that is not empty",
        ),
        (
            [ASKED, calling(openai("t", "[1"))],
            "1:145: [1].tool_calls[0].function.arguments: not JSON: found the end of the text",
        ),
        (
            [ASKED, calling(openai("t", "[1]"))],
            "1:145: [1].tool_calls[0].function.arguments: found a list, expected an object",
        ),
        (
            [ASKED, calling({"name": "t", "args": "5"})],
            "1:96: [1].tool_calls[0].args: found 5, expected an object",
        ),
        (
            [{"role": "system", "content": "x"}],
            "1:1: found no message of a user or an assistant, expected a conversation",
        ),
        (
            {"id": "a", "messages": []},
            "1:25: messages: found no message of a user or an assistant, expected a conversation",
        ),
        (
            [{"id": "a", "reference_outputs": "Hello"}],
            "1:35: [0].reference_outputs: found 'Hello', expected a list of messages",
        ),
        ([{"messages": [ASKED]}, 5], "1:53: [1]: found 5, expected a list of messages"),
    ],
)
def test_a_problem_has_its_position(data: Json, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(data)
    assert str(caught.value).startswith(f"talk.json:{expected}")

"""The native reference format, read from YAML text."""

from __future__ import annotations

import pytest

from collector.documents import ConfigError, yaml_source
from collector.references import native
from scorers.types import ExpectedCall, Reference, ReferenceTurn


def references(text: str) -> list[Reference]:
    return [reference for document in yaml_source.read(text, "refs.yaml") for _, reference in native.load(document)]


def message(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        references(text)
    return str(caught.value)


def test_the_keys_of_a_single_turn_stand_beside_the_scenario() -> None:
    text = """
scenario: refund
input: I want my money back
expected_tools:
  - lookup_order
  - {name: refund, args: {order: 17, reason: damaged}}
expected_response: Done.
criteria: {tool_trajectory_f1: 0.5}
"""
    turn = ReferenceTurn(
        "I want my money back",
        (ExpectedCall("lookup_order"), ExpectedCall("refund", {"order": 17, "reason": "damaged"})),
        "Done.",
    )
    assert references(text) == [Reference("refund", (turn,), criteria={"tool_trajectory_f1": 0.5})]


def test_a_conversation_has_turns() -> None:
    text = """
scenario: trip
turns:
  - {input: Find flights, expected_tools: [search]}
  - {input: Book the first, expected_tools: [book], expected_response: Booked.}
"""
    first = ReferenceTurn("Find flights", (ExpectedCall("search"),), None)
    second = ReferenceTurn("Book the first", (ExpectedCall("book"),), "Booked.")
    assert references(text) == [Reference("trip", (first, second))]


@pytest.mark.parametrize(
    "text",
    ["- {scenario: a, input: x}\n- {scenario: b, input: y}", "{scenario: a, input: x}\n---\n{scenario: b, input: y}"],
    ids=["list", "documents"],
)
def test_a_file_may_hold_several_scenarios(text: str) -> None:
    assert references(text) == [Reference("a", (ReferenceTurn("x"),)), Reference("b", (ReferenceTurn("y"),))]


@pytest.mark.parametrize(
    ("tools", "expected"),
    [
        ("", None),
        ("expected_tools: []", ()),
        ("expected_tools: [a]", (ExpectedCall("a", None),)),
        ("expected_tools: [{name: a}]", (ExpectedCall("a", None),)),
        ("expected_tools: [{name: a, args: {}}]", (ExpectedCall("a", {}),)),
    ],
)
def test_what_is_left_out_is_not_what_is_empty(tools: str, expected: tuple[ExpectedCall, ...] | None) -> None:
    assert references(f"scenario: s\ninput: x\n{tools}")[0].turns[0].tool_calls == expected


def test_arguments_mean_what_they_say() -> None:
    text = "scenario: s\nexpected_tools: [{name: a, args: {country: NO, at: 12:30, day: 2026-01-31, id: '007', price: $$5, on: ${X}}}]"
    text = text.replace("${X}", '"${X}"')
    arguments = {"country": "NO", "at": "12:30", "day": "2026-01-31", "id": "007", "price": "$$5", "on": "${X}"}
    assert references(text)[0].turns[0].tool_calls == (ExpectedCall("a", arguments),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("scenario: 7\ninput: x", "refs.yaml:1:11: scenario: found 7, expected text"),
        ("scenario: ''\ninput: x", "refs.yaml:1:11: scenario: found '', expected text that is not empty"),
        (
            "scenario: s\nexpected_tool: [a]",
            "refs.yaml:2:1: expected_tool: found an unknown key, expected one of input, expected_tools, expected_response, scenario,"
            " criteria, turns; did you mean 'expected_tools'?",
        ),
        (
            "scenario: s\nexpected_tools:",
            "refs.yaml:2:16: expected_tools: found null, expected a value; leave the key out to say nothing",
        ),
        (
            "scenario: s\nexpected_tools:\n- name: a\n  args:",
            "refs.yaml:4:8: expected_tools[0].args: found null, expected a value; leave the key out to say nothing",
        ),
        ("scenario: s\nexpected_tools: book", "refs.yaml:2:17: expected_tools: found 'book', expected a list"),
        ("scenario: s\nexpected_tools: [7]", "refs.yaml:2:18: expected_tools[0]: found 7, expected a mapping"),
        ("scenario: s\nexpected_tools: ['']", "refs.yaml:2:18: expected_tools[0].name: found '', expected text that is not empty"),
        (
            "scenario: s\nexpected_tools: [{nam: a}]",
            "refs.yaml:2:18: expected_tools[0].name: found nothing, expected this key\n"
            "refs.yaml:2:19: expected_tools[0].nam: found an unknown key, expected one of name, args; did you mean 'name'?",
        ),
        ("scenario: s\nturns: []", "refs.yaml:2:8: turns: found a list, expected at least one entry"),
        ("scenario: s\nturns: [{input: 1}]", "refs.yaml:2:17: turns[0].input: found 1, expected text"),
        (
            "scenario: s\ninput: x\nturns: [{input: y}]",
            "refs.yaml:1:1: found turns and input, expected either (the latter inside a turn)",
        ),
        (
            "scenario: s",
            "refs.yaml:1:1: found the scenario alone, expected turns, or input, expected_tools, expected_response",
        ),
        ("- scenario: s\n  input: x\n- hello", "refs.yaml:3:3: [1]: found 'hello', expected a mapping"),
        ("scenario: s\ninput: x\ncriteria: 0.8", "refs.yaml:3:11: criteria: found 0.8, expected a mapping"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, expected: str) -> None:
    assert message(text) == expected


def test_all_mistakes_of_a_file_are_named_at_once() -> None:
    text = "- {scenario: a, inputs: x}\n- {scenario: b, input: y}\n- {scenario: 3, input: z}"
    assert message(text).split("\n") == [
        "refs.yaml:1:17: [0].inputs: found an unknown key, expected one of input, expected_tools, expected_response, scenario, criteria,"
        " turns; did you mean 'input'?",
        "refs.yaml:3:14: [2].scenario: found 3, expected text",
    ]

"""The native reference format, read from YAML text."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.documents import ConfigError, yaml_source
from pathgauge.collector.core.references import native
from pathgauge.scorers.matching.matchers import Anything, Near, Pattern
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn, TurnRubric

TURN_KEYS = (
    "input, expected_tools, expected_response, alternatives, forbidden_tools, response_contains,"
    " expected_agent, escalate, rubrics, agents"
)
SCENARIO_KEYS = f"{TURN_KEYS}, scenario, criteria, thresholds, expected_interval, required, turns"


def references(text: str) -> list[Reference]:
    return [
        reference
        for document in yaml_source.read(text, "refs.yaml")
        for _, reference in native.load(document).references
    ]


def message(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        references(text)
    return str(caught.value)


def test_the_keys_of_a_single_turn_are_beside_the_scenario() -> None:
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
    [
        "- {scenario: a, input: x}\n- {scenario: b, input: y}",
        "{scenario: a, input: x}\n---\n{scenario: b, input: y}",
    ],
    ids=["list", "documents"],
)
def test_a_file_may_contain_several_scenarios(text: str) -> None:
    assert references(text) == [
        Reference("a", (ReferenceTurn("x"),)),
        Reference("b", (ReferenceTurn("y"),)),
    ]


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
def test_a_missing_key_differs_from_an_empty_value(
    tools: str, expected: tuple[ExpectedCall, ...] | None
) -> None:
    assert references(f"scenario: s\ninput: x\n{tools}")[0].turns[0].tool_calls == expected


def test_arguments_keep_their_literal_values() -> None:
    text = (
        "scenario: s\nexpected_tools: [{name: a, args: {country: NO, at: 12:30, day: 2026-01-31,"
        " id: '007', price: $$5, on: ${X}}}]"
    )
    text = text.replace("${X}", '"${X}"')
    arguments = {
        "country": "NO",
        "at": "12:30",
        "day": "2026-01-31",
        "id": "007",
        "price": "$$5",
        "on": "${X}",
    }
    assert references(text)[0].turns[0].tool_calls == (ExpectedCall("a", arguments),)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("scenario: 7\ninput: x", "refs.yaml:1:11: scenario: found 7, expected text"),
        (
            "scenario: ''\ninput: x",
            "refs.yaml:1:11: scenario: found '', expected text that is not empty",
        ),
        (
            "scenario: s\nexpected_tool: [a]",
            (
                "refs.yaml:2:1: expected_tool: found an unknown key, expected one of"
                f" {SCENARIO_KEYS}; did you mean 'expected_tools'?"
            ),
        ),
        (
            "scenario: s\nexpected_tools:",
            (
                "refs.yaml:2:16: expected_tools: found null, expected a value; leave the key out to"
                " say nothing"
            ),
        ),
        (
            "scenario: s\nexpected_tools:\n- name: a\n  args:",
            (
                "refs.yaml:4:8: expected_tools[0].args: found null, expected a value; leave the key"
                " out to say nothing"
            ),
        ),
        (
            "scenario: s\nexpected_tools: book",
            "refs.yaml:2:17: expected_tools: found 'book', expected a list",
        ),
        (
            "scenario: s\nexpected_tools: [7]",
            "refs.yaml:2:18: expected_tools[0]: found 7, expected a mapping",
        ),
        (
            "scenario: s\nexpected_tools: ['']",
            "refs.yaml:2:18: expected_tools[0].name: found '', expected text that is not empty",
        ),
        (
            "scenario: s\nexpected_tools: [{nam: a}]",
            (
                "refs.yaml:2:18: expected_tools[0].name: found nothing, expected this"
                " key\nrefs.yaml:2:19: expected_tools[0].nam: found an unknown key, expected one of"
                " name, args, optional, any_order; did you mean 'name'?"
            ),
        ),
        (
            "scenario: s\nturns: []",
            "refs.yaml:2:8: turns: found a list, expected at least one entry",
        ),
        (
            "scenario: s\nturns: [{input: 1}]",
            "refs.yaml:2:17: turns[0].input: found 1, expected text",
        ),
        (
            "scenario: s\ninput: x\nturns: [{input: y}]",
            "refs.yaml:1:1: found turns and input, expected either (the latter inside a turn)",
        ),
        (
            "scenario: s",
            (
                "refs.yaml:1:1: found the scenario alone, expected turns, or the keys of a turn,"
                " such as expected_tools"
            ),
        ),
        (
            "- scenario: s\n  input: x\n- hello",
            "refs.yaml:3:3: [1]: found 'hello', expected a mapping",
        ),
        (
            "scenario: s\ninput: x\ncriteria: 0.8",
            "refs.yaml:3:11: criteria: found 0.8, expected a mapping",
        ),
        (
            "scenario: s\nthresholds: {latency: true}",
            "refs.yaml:2:23: thresholds.latency: found true, expected a number",
        ),
        (
            "scenario: s\nthresholds: {latency: .inf}",
            "refs.yaml:2:23: thresholds.latency: found inf, expected a finite number",
        ),
        (
            "scenario: s\ncriteria: {a: 1, b: 2}\nthresholds: {b: 1}",
            "refs.yaml:1:1: found b in criteria and in thresholds, expected it in one of them",
        ),
        (
            "scenario: s\nexpected_tools: [{args: {}}]",
            "refs.yaml:2:18: expected_tools[0].name: found nothing, expected this key",
        ),
        (
            "scenario: s\nexpected_tools: [{any_order: [a], optional: true}]",
            (
                "refs.yaml:2:18: expected_tools[0]: found any_order and other keys, expected it"
                " alone; the others belong into its calls"
            ),
        ),
        (
            "scenario: s\nexpected_tools: [{any_order: []}]",
            (
                "refs.yaml:2:30: expected_tools[0].any_order: found a list, expected at least one"
                " entry"
            ),
        ),
        (
            "scenario: s\nexpected_tools: [{any_order: [{any_order: [a]}]}]",
            (
                "refs.yaml:2:31: expected_tools[0].any_order[0].name: found nothing, expected this"
                " key\nrefs.yaml:2:32: expected_tools[0].any_order[0].any_order: found an unknown"
                " key, expected one of name, args, optional"
            ),
        ),
        (
            "scenario: s\nexpected_tools: [{name: a, optional: 1}]",
            "refs.yaml:2:38: expected_tools[0].optional: found 1, expected true or false",
        ),
        (
            "scenario: s\nalternatives: [[a]]",
            (
                "refs.yaml:1:1: found alternatives without expected_tools, expected the first of"
                " them there"
            ),
        ),
        (
            "scenario: s\nexpected_tools: [a]\nalternatives: [b]",
            "refs.yaml:3:16: alternatives[0]: found 'b', expected a list",
        ),
        (
            "scenario: s\nforbidden_tools:",
            "refs.yaml:2:17: forbidden_tools: found null, expected a list",
        ),
        (
            "scenario: s\nforbidden_tools: [{name: a, optional: true}]",
            (
                "refs.yaml:2:29: forbidden_tools[0].optional: found an unknown key, expected one of"
                " name, args"
            ),
        ),
        (
            "scenario: s\nresponse_contains: hello",
            "refs.yaml:2:20: response_contains: found 'hello', expected a list",
        ),
        (
            "scenario: s\nresponse_contains: ['']",
            "refs.yaml:2:21: response_contains[0]: found '', expected text that is not empty",
        ),
        (
            "scenario: s\nexpected_agent:",
            (
                "refs.yaml:2:16: expected_agent: found null, expected a value; leave the key out to"
                " say nothing"
            ),
        ),
        (
            "scenario: s\nescalate:",
            (
                "refs.yaml:2:10: escalate: found null, expected a value; leave the key out to say"
                " nothing"
            ),
        ),
        (
            "scenario: s\nagents: {billing: {agents: {}}}",
            (
                "refs.yaml:2:20: agents.billing.agents: found an unknown key, expected one of"
                f" {TURN_KEYS.removesuffix(', agents')}"
            ),
        ),
        (
            "scenario: s\nagents:\n  billing:\n    expected_tools: [{name: 1}]",
            "refs.yaml:4:29: agents.billing.expected_tools[0].name: found 1, expected text",
        ),
        (
            "scenario: s\nexpected_interval: 0",
            "refs.yaml:2:20: expected_interval: found 0, expected greater than 0",
        ),
        (
            f"scenario: s\nexpected_interval: {10**309}",
            (
                f"refs.yaml:2:20: expected_interval: found 1{'0' * 59}…, expected a duration such"
                " as 6s, 10m or 1h30m"
            ),
        ),
        (
            "scenario: s\nexpected_interval: often",
            (
                "refs.yaml:2:20: expected_interval: found 'often', expected a duration such as 6s,"
                " 10m or 1h30m"
            ),
        ),
        (
            "scenario: s\nexpected_interval:",
            (
                "refs.yaml:2:19: expected_interval: found null, expected a value; leave the key out"
                " to say nothing"
            ),
        ),
        (
            "scenario: s\nturns: [{thresholds: {a: 1}}]",
            (
                "refs.yaml:2:10: turns[0].thresholds: found an unknown key, expected one of"
                f" {TURN_KEYS}"
            ),
        ),
    ],
)
def test_a_problem_has_its_position(text: str, expected: str) -> None:
    assert message(text) == expected


def test_all_problems_of_a_file_are_reported_at_once() -> None:
    text = "- {scenario: a, inputs: x}\n- {scenario: b, input: y}\n- {scenario: 3, input: z}"
    assert message(text).split("\n") == [
        (
            f"refs.yaml:1:17: [0].inputs: found an unknown key, expected one of {SCENARIO_KEYS};"
            " did you mean 'input'?"
        ),
        "refs.yaml:3:14: [2].scenario: found 3, expected text",
    ]


def turn(text: str) -> ReferenceTurn:
    (reference,) = references(f"scenario: s\n{text}")
    return reference.turns[0]


@pytest.mark.parametrize(
    ("written", "calls"),
    [
        ("[{name: a, optional: true}]", [ExpectedCall("a", optional=True)]),
        (
            "[a, {any_order: [b, {name: c, args: {x: 1}}]}, d]",
            [("a",), ("b", None, False, 0), ("c", {"x": 1}, False, 0), ("d",)],
        ),
        (
            "[{any_order: [a, b]}, {any_order: [c, c]}]",
            [
                ("a", None, False, 0),
                ("b", None, False, 0),
                ("c", None, False, 1),
                ("c", None, False, 1),
            ],
        ),
        (
            "[{any_order: [{name: a, optional: true}, b]}]",
            [("a", None, True, 0), ("b", None, False, 0)],
        ),
        ("[{any_order: [a]}, b]", [("a",), ("b",)]),
    ],
)
def test_calls_may_be_optional_and_come_in_any_order(written: str, calls: list[Any]) -> None:
    expected = tuple(
        call if isinstance(call, ExpectedCall) else ExpectedCall(*call) for call in calls
    )
    assert turn(f"expected_tools: {written}").tool_calls == expected


def test_a_turn_with_all_keys() -> None:
    text = """
input: My bill is wrong
expected_tools: [lookup]
alternatives:
  - [search, {name: lookup, args: {by: name}}]
  - []
forbidden_tools: [delete, {name: refund, args: {amount: 0}}]
response_contains: [sorry, your bill]
expected_agent: billing
escalate: false
rubrics:
  - It is polite.
  - {text: It searches once., id: once, description: Not twice., of: tool_use}
agents:
  billing:
    input: See to it
    expected_tools: [{any_order: [a, b]}]
    expected_response: Done.
    escalate: true
  sales: {forbidden_tools: [sell]}
"""
    assert turn(text) == ReferenceTurn(
        user_input="My bill is wrong",
        tool_calls=(ExpectedCall("lookup"),),
        alternatives=((ExpectedCall("search"), ExpectedCall("lookup", {"by": "name"})), ()),
        forbidden=(ExpectedCall("delete"), ExpectedCall("refund", {"amount": 0})),
        response_contains=("sorry", "your bill"),
        expected_agent="billing",
        escalate=False,
        rubrics=(
            TurnRubric("It is polite."),
            TurnRubric("It searches once.", "once", "Not twice.", "tool_use"),
        ),
        agents={
            "billing": ReferenceTurn(
                "See to it",
                (ExpectedCall("a", group=0), ExpectedCall("b", group=0)),
                "Done.",
                escalate=True,
            ),
            "sales": ReferenceTurn(forbidden=(ExpectedCall("sell"),)),
        },
    )


def test_thresholds_are_criteria() -> None:
    text = "scenario: s\ncriteria: {a: {option: 1}, b: false}\nthresholds: {c: 0.5, d: 2}"
    assert references(text)[0].criteria == {"a": {"option": 1}, "b": False, "c": 0.5, "d": 2}


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("{a: {$any: true}}", {"a": Anything()}),
        (
            "{a: [{$near: 1.5, abs: 0.1}, {b: {$regex: x+}}]}",
            {"a": [Near(1.5, 0.1), {"b": Pattern("x+")}]},
        ),
        ("{a: {$literal: {$any: true}}}", {"a": {"$any": True}}),
        ("{$literal: {$top: 5}}", {"$top": 5}),
    ],
)
def test_arguments_may_be_matchers_in_every_kind_of_call(args: str, expected: Json) -> None:
    call = f"{{name: t, args: {args}}}"
    found = turn(
        f"expected_tools: [{call}, {{any_order: [{call}, x]}}]\nforbidden_tools:"
        f" [{call}]\nalternatives: [[{call}]]"
    )
    assert found.tool_calls is not None
    calls = [found.tool_calls[0], found.tool_calls[1], found.forbidden[0], found.alternatives[0][0]]
    assert [call.arguments for call in calls] == [expected] * 4


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (
            "\n      a: 1\n      b: {$nea: 1}",
            (
                "refs.yaml:6:10: expected_tools[0].args.b: $nea: found an unknown key, expected one"
                " of $any"
            ),
        ),
        (
            "\n      a:\n        - {b: {$near: x}}",
            "refs.yaml:6:15: expected_tools[0].args.a[0].b: $near: found 'x', expected a number",
        ),
        (
            "\n      a: {$one_of: [1, {$any: 1}]}",
            "refs.yaml:5:10: expected_tools[0].args.a: $one_of[1].$any: found 1, expected true",
        ),
        (
            " {$any: true}",
            (
                "refs.yaml:4:11: expected_tools[0].args: found a matcher in place of all arguments,"
                " expected arguments, whose"
            ),
        ),
        (" {$any: 1}", "refs.yaml:4:11: expected_tools[0].args: $any: found 1, expected true"),
    ],
)
def test_a_problem_in_a_matcher_has_its_position(args: str, expected: str) -> None:
    assert message(f"scenario: s\nexpected_tools:\n  - name: t\n    args:{args}").startswith(
        expected
    )

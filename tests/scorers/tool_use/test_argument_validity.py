"""Argument validity: which calls are judged by which schema, and when there is no value."""

import json
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from pydantic import TypeAdapter, ValidationError

from pathgauge.scorers.authoring.builders import invocation, reference_turn, tool_call
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.tool_use.argument_validity import ArgumentValidity
from pathgauge.scorers.types import CallKind, Flag, Json, Reason, Score, Scorer, ToolCall
from support.examples import examples

SEARCH: Json = {
    "type": "object",
    "properties": {"query": {"type": "string"}},
    "required": ["query"],
}
BOOK: Json = {
    "type": "object",
    "properties": {"beds": {"type": "integer"}},
    "additionalProperties": False,
}
SCHEMAS: dict[str, Json] = {"search": SEARCH, "book": BOOK}
DEFAULT, IGNORING = ArgumentValidity(), ArgumentValidity(unknown_tools="ignore")


def score(*calls: ToolCall, schemas: dict[str, Json] = SCHEMAS, scorer: Scorer = DEFAULT) -> Score:
    return scorer.score(invocation(*calls, tool_schemas=schemas), None)


@pytest.mark.parametrize(
    "scorer",
    [DEFAULT, IGNORING, ArgumentValidity(schemas=SCHEMAS)],
    ids=["default", "ignore", "schemas"],
)
def test_the_contract_is_kept(scorer: Scorer) -> None:
    nested: Json = json.loads("[" * 200 + "]" * 200)
    arguments: list[Any] = [
        None,
        {},
        {"query": "tea"},
        {"query": nested},
        "{",
        '{"query": "tea"}',
        "[" * 100_000,
        {"query": float("nan")},
    ]
    recorded: list[dict[str, Json]] = [
        SCHEMAS,
        {"search": {}},
        {"search": "broken"},
        {"search": {"$ref": "#"}},
        {" search ": nested},
    ]
    more = [
        (invocation(ToolCall("search", value), tool_schemas=schemas), reference_turn())
        for value in arguments
        for schemas in recorded
    ]
    check_scorer(scorer, more)


def test_the_value_is_the_share_of_calls_with_valid_arguments() -> None:
    valid = (
        tool_call("search", query="tea"),
        ToolCall(" book ", '{"beds": 2}'),
        ToolCall("book", '"{\\"beds\\": 2}"'),
    )
    assert score(*valid) == Score(
        1.0,
        None,
        "3 of 3 calls have valid arguments",
        {"invalid": [], "counts": {"valid": 3, "judged": 3, "actual": 3}},
    )
    assert score(
        tool_call("search"),
        valid[0],
        tool_call("book", beds="two", pets=1),
        ToolCall("book", "beds=2"),
    ) == Score(
        0.25,
        None,
        "1 of 4 calls have valid arguments; search $: 'query' is a required property",
        {
            "invalid": [
                [0, "search", "$", "'query' is a required property"],
                [2, "book", "$.beds", "'two' is not of type 'integer'"],
                [2, "book", "$", "Additional properties are not allowed ('pets' was unexpected)"],
                [3, "book", "$", "the arguments are not a JSON object"],
            ],
            "counts": {"valid": 1, "judged": 4, "actual": 4},
        },
    )


def test_a_call_of_a_tool_that_was_not_offered_is_invalid_or_ignored() -> None:
    calls = tool_call("search", query="tea"), tool_call("fly"), ToolCall("fly")
    assert score(*calls) == Score(
        1 / 3,
        None,
        "1 of 3 calls have valid arguments; fly $: no such tool was offered",
        {
            "invalid": [[i, "fly", "$", "no such tool was offered"] for i in (1, 2)],
            "counts": {"valid": 1, "judged": 3, "actual": 3},
        },
    )
    assert score(*calls, scorer=IGNORING).value == 1.0
    assert score(tool_call("fly"), scorer=IGNORING).reason == "schema_not_recorded"
    assert score(tool_call("fly"), schemas={}).reason == "schema_not_recorded"


@pytest.mark.parametrize("kind", ["handoff", "agent", "final_answer"])
def test_only_functions_can_be_made_up(kind: CallKind) -> None:
    assert score(ToolCall("to_billing", {}, kind=kind)).reason == "schema_not_recorded"
    assert score(ToolCall("book", {"beds": "two"}, kind=kind)).value == 0.0


def test_a_tool_whose_schema_cannot_be_used_is_not_judged() -> None:
    calls = tool_call("search", query=1), tool_call("book", beds=2)
    for broken in ({"type": "text"}, {"$ref": "#/$defs/nowhere"}, {"$ref": "#"}, "no schema", None):
        assert score(*calls, schemas={"search": broken, "book": BOOK}).details["counts"] == {
            "valid": 1,
            "judged": 1,
            "actual": 2,
        }
        assert (
            score(*calls, schemas={"search": broken, "book": broken}).reason
            == "schema_not_recorded"
        )


def test_schemas_of_the_option_add_to_those_of_the_telemetry_and_come_before_them() -> None:
    scorer = ArgumentValidity(
        schemas={"search": {"required": ["page"]}, " fly ": {"required": ["to"]}}
    )
    calls = (
        tool_call("search", query="tea"),
        tool_call("fly", to="Rome"),
        tool_call("book", beds=2),
        tool_call("swim"),
    )
    assert score(*calls, scorer=scorer).details["invalid"] == [
        [0, "search", "$", "'page' is a required property"],
        [3, "swim", "$", "no such tool was offered"],
    ]
    assert score(*calls[:2], scorer=scorer, schemas={}).value == 0.5


def test_the_option_is_written_as_a_mapping() -> None:
    adapter = TypeAdapter(ArgumentValidity)
    read = adapter.validate_python(
        {"schemas": {"search": SEARCH}, "unknown_tools": "ignore"}, extra="forbid"
    )
    assert read == ArgumentValidity({"search": SEARCH}, "ignore")
    assert read != ArgumentValidity({"search": BOOK}, "ignore")
    assert hash(read) == hash(ArgumentValidity({"search": SEARCH}, "ignore"))
    assert adapter.validate_json(adapter.dump_json(read)) == read


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"unknown_tools": "wrong"},
            "unknown_tools: found 'wrong', expected one of invalid, ignore",
        ),
        (
            {"schemas": {"search": {"type": "text"}}},
            r"schemas: search: \$\.type: 'text' is not valid under any of the given schemas",
        ),
        (
            {"schemas": {"search": {"patternProperties": {}}}},
            "schemas: search: patternProperties is not supported",
        ),
        ({"schemas": {" ": {}}}, "schemas: found ' ', expected the name of a tool"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ArgumentValidity(**options)
    with pytest.raises(ValidationError, match=next(iter(options))):
        TypeAdapter(ArgumentValidity).validate_python(options, extra="forbid")


NO_VALUE: list[tuple[tuple[ToolCall, ...], dict[str, Json], Reason]] = [
    ((), SCHEMAS, "not_applicable"),
    ((tool_call("search", query="tea"),), {}, "schema_not_recorded"),
    ((ToolCall("search"),), SCHEMAS, "args_not_recorded"),
    ((ToolCall("search"), tool_call("book", beds="two")), SCHEMAS, "args_not_recorded"),
    ((ToolCall("search"),), {"search": {"type": "text"}}, "schema_not_recorded"),
]


@pytest.mark.parametrize(("calls", "schemas", "reason"), NO_VALUE)
def test_when_there_is_no_value(
    calls: tuple[ToolCall, ...], schemas: dict[str, Json], reason: Reason
) -> None:
    assert score(*calls, schemas=schemas).reason == reason


def test_arguments_that_were_not_recorded_are_named_beside_what_is_known() -> None:
    assert score(
        ToolCall("search"), ToolCall("search"), tool_call("book", beds="two"), tool_call("book")
    ) == Score(
        None,
        "args_not_recorded",
        "the arguments of search x2 were not recorded",
        {
            "invalid": [[2, "book", "$.beds", "'two' is not of type 'integer'"]],
            "counts": {"valid": 1, "judged": 4, "actual": 4},
        },
    )


@pytest.mark.parametrize("flag", ["no_tool_spans", "dropped_spans"])
@pytest.mark.parametrize("calls", [(), (tool_call("search"),)], ids=["none", "some"])
def test_calls_that_may_be_missing_from_the_telemetry_are_not_scored(
    flag: Flag, calls: tuple[ToolCall, ...]
) -> None:
    actual = invocation(*calls, tool_schemas=SCHEMAS, flags=frozenset({flag}))
    assert ArgumentValidity().score(actual, None).reason == "tools_not_recorded"


def test_two_thousand_calls_are_scored_and_one_more_is_too_long() -> None:
    calls = [tool_call("search", query=f"tea {i}") for i in range(2001)]
    assert score(*calls[:2000]).value == 1.0
    assert score(*calls) == Score(None, "too_long", "2001 calls; at most 2000 are checked")


def test_what_takes_too_long_has_no_value() -> None:
    doubling = {
        f"d{i}": {"anyOf": [{"$ref": f"#/$defs/d{i + 1}"}, {"$ref": f"#/$defs/d{i + 1}"}]}
        for i in range(40)
    }
    bomb = {"$ref": "#/$defs/d0", "$defs": {**doubling, "d40": {"type": "string"}}}
    assert score(tool_call("search"), schemas={"search": bomb}) == Score(
        None, "too_long", "checking the arguments by their schemas takes too long"
    )
    nested: Json = []
    for _ in range(5000):
        nested = [nested]
    assert score(tool_call("search", query=nested)).reason == "too_long"
    assert score(ToolCall("search", '{"query": ' + "[" * 100_000 + "]" * 100_000 + "}")) == Score(
        None, "too_long", "arguments nested too deep"
    )


def test_the_explanation_is_one_line_whatever_the_tools_are_called() -> None:
    assert (
        score(tool_call("a\nb")).explanation
        == "0 of 1 calls have valid arguments; a b $: no such tool was offered"
    )
    assert (
        score(ToolCall("a\nb"), schemas={"a\nb": {}}).explanation
        == "the arguments of a b were not recorded"
    )


@settings(deadline=None, max_examples=examples(60))
@given(
    st.lists(st.booleans(), min_size=1, max_size=6).flatmap(
        lambda kinds: st.tuples(st.just(kinds), st.permutations(kinds))
    )
)
def test_the_order_of_calls_means_nothing(kinds: tuple[list[bool], list[bool]]) -> None:
    made = {True: tool_call("search", query="tea"), False: tool_call("search", query=1)}
    one, other = (score(*(made[kind] for kind in order)) for order in kinds)
    assert one.value == other.value == sum(kinds[0]) / len(kinds[0])

"""References exported as ADK evalsets."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.config import reference_files
from pathgauge.collector.core.documents import json_source
from pathgauge.collector.core.references import adk
from pathgauge.collector.core.references.export_adk import evalset, to_json
from pathgauge.scorers.matching.matchers import Anything
from pathgauge.scorers.types import ExpectedCall, Reference, ReferenceTurn, TurnRubric
from support.repository import REFERENCE_FILES

TEXTS = st.text(min_size=1, max_size=20)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=3) | st.just("$any"), inner, max_size=3)
    ),
    max_leaves=5,
)
CALLS = st.builds(
    ExpectedCall, TEXTS, st.none() | st.dictionaries(st.text(max_size=3), VALUES, max_size=3)
)
TURNS = st.builds(
    ReferenceTurn,
    st.none() | TEXTS,
    st.none() | st.lists(CALLS, max_size=3).map(tuple),
    st.none() | TEXTS,
    rubrics=st.lists(
        st.builds(TurnRubric, TEXTS, TEXTS, TEXTS, st.sampled_from(["response", "tool_use"])),
        max_size=2,
    ).map(tuple),
)
REFERENCES = st.builds(Reference, TEXTS, st.lists(TURNS, min_size=1, max_size=3).map(tuple))


def imported(text: str) -> list[Reference]:
    return [reference for _, reference in adk.load(json_source.read(text, "e.json")).references]


@settings(deadline=None)
@given(st.lists(REFERENCES, max_size=3))
def test_references_that_adk_can_express_survive_a_round_trip(references: list[Reference]) -> None:
    exported = evalset(references, "home")
    assert exported.left_out == ()
    assert imported(to_json(exported.data)) == references


def test_the_evalset_has_the_keys_of_adk() -> None:
    calls = (ExpectedCall("look", {"room": "São"}), ExpectedCall("log"))
    assert evalset(
        [Reference("a/b", (ReferenceTurn("Hi", calls, "Ho"), ReferenceTurn()))], "home"
    ).data == {
        "eval_set_id": "home",
        "eval_cases": [
            {
                "eval_id": "a/b",
                "conversation": [
                    {
                        "invocation_id": "a/b-0",
                        "user_content": {"role": "user", "parts": [{"text": "Hi"}]},
                        "final_response": {"role": "model", "parts": [{"text": "Ho"}]},
                        "intermediate_data": {
                            "tool_uses": [
                                {"name": "look", "args": {"room": "São"}},
                                {"name": "log"},
                            ]
                        },
                    },
                    {"invocation_id": "a/b-1", "user_content": {"role": "user", "parts": []}},
                ],
            }
        ],
    }


def test_google_adk_reads_it_and_writes_it_back_with_the_same_content() -> None:
    ours = [
        entry.reference
        for name in ("native.yaml", "dialogue.yaml")
        for entry in reference_files.read(REFERENCE_FILES / name).entries
    ]
    exported = evalset(ours, "home").data
    rewritten = json.loads((REFERENCE_FILES / "adk-2.13.evalset.json").read_text())
    assert [case["eval_id"] for case in exported["eval_cases"]] == [
        case["eval_id"] for case in rewritten["eval_cases"]
    ]
    theirs = [
        entry.reference
        for entry in reference_files.read(REFERENCE_FILES / "adk-2.13.evalset.json").entries
    ]
    assert [reference.version for reference in theirs] == [reference.version for reference in ours]


CALL = ExpectedCall("t", {"a": 1})


@pytest.mark.parametrize(
    ("turn", "things", "left"),
    [
        (ReferenceTurn(tool_calls=(replace(CALL, optional=True),)), ["the optional call of t"], []),
        (
            ReferenceTurn(tool_calls=(replace(CALL, group=0), ExpectedCall("u", group=0))),
            ["that t, u may come in any order"],
            [{"name": "t", "args": {"a": 1}}, {"name": "u"}],
        ),
        (
            ReferenceTurn(
                tool_calls=(
                    ExpectedCall("t", {"a": [{"b": Anything()}], "c": float("nan"), "d": 1}),
                )
            ),
            ["the matcher in a of t", "the non-finite number in c of t"],
            [{"name": "t", "args": {"d": 1}}],
        ),
        (ReferenceTurn(tool_calls=(), alternatives=((CALL,), ())), ["alternatives (2)"], []),
        (ReferenceTurn(tool_calls=(), forbidden=(CALL,)), ["the forbidden call of t"], []),
        (
            ReferenceTurn(tool_calls=(), response_contains=("a",)),
            ["that the response contains 'a'"],
            [],
        ),
        (ReferenceTurn(tool_calls=(), expected_agent="x"), ["that the agent x is expected"], []),
        (ReferenceTurn(tool_calls=(), escalate=False), ["that the turn must not be escalated"], []),
        (ReferenceTurn(tool_calls=(), escalate=True), ["that the turn must be escalated"], []),
        (
            ReferenceTurn(tool_calls=(), agents={"x": ReferenceTurn()}),
            ["what the agent x should do"],
            [],
        ),
    ],
)
def test_expectations_that_adk_lacks_are_left_out_and_reported(
    turn: ReferenceTurn, things: list[str], left: list[object]
) -> None:
    exported = evalset([Reference("s", (turn,), source="r.yaml:1")], "e")
    assert exported.left_out == tuple(
        f"r.yaml:1: scenario s: ADK cannot express {thing}" for thing in things
    )
    assert exported.data["eval_cases"][0]["conversation"][0]["intermediate_data"] == {
        "tool_uses": left
    }


def test_reports_name_the_turn_if_there_are_several() -> None:
    turns = (ReferenceTurn(), ReferenceTurn(escalate=True))
    assert evalset(
        [
            Reference(
                "s",
                turns,
                source="r.yaml:1",
                criteria={"latency": 5},
                expected_interval=60.0,
                required=True,
            )
        ],
        "e",
    ).left_out == (
        (
            "r.yaml:1: scenario s: ADK cannot express the criterion latency here, but in"
            " test_config.json"
        ),
        "r.yaml:1: scenario s: ADK cannot express the expected interval",
        "r.yaml:1: scenario s: ADK cannot express that the scenario is required",
        "r.yaml:1: scenario s: turn 1: ADK cannot express that the turn must be escalated",
    )


def test_text_that_has_no_utf8_form_is_escaped() -> None:
    text = to_json({"a": "\ud83d é"})
    assert (json.loads(text), "é" in text) == ({"a": "\ud83d é"}, True)
    text.encode()


def test_rubrics_have_the_types_of_adk_and_an_id() -> None:
    turn = ReferenceTurn(
        rubrics=(TurnRubric("Kind."), TurnRubric("Once.", "once", "Not twice.", "tool_use"))
    )
    exported = evalset([Reference("s", (turn,))], "e")
    assert exported.left_out == ()
    assert exported.data["eval_cases"][0]["conversation"][0]["rubrics"] == [
        {
            "rubric_id": "rubric-1",
            "rubric_content": {"text_property": "Kind."},
            "type": "FINAL_RESPONSE_QUALITY",
        },
        {
            "rubric_id": "once",
            "rubric_content": {"text_property": "Once."},
            "type": "TOOL_USE_QUALITY",
            "description": "Not twice.",
        },
    ]

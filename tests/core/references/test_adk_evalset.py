"""ADK evalsets in both casings."""

from __future__ import annotations

import json

import pytest

from pathgauge.collector.config import reference_files
from pathgauge.collector.core.documents import ConfigError, json_source
from pathgauge.collector.core.references import adk
from pathgauge.scorers.types import ExpectedCall, Json, Reference, ReferenceTurn, TurnRubric
from support.repository import REFERENCE_FILES

GOLDEN = REFERENCE_FILES

LIGHTS_OFF = ReferenceTurn(
    "Turn off the lamp\nin the bedroom.",
    (
        ExpectedCall("find_device", {"room": "bedroom"}),
        ExpectedCall("switch", {"device": 2, "on": False}),
        ExpectedCall("log", None),
    ),
    "Off.",
)


def golden(name: str) -> list[Reference]:
    return [
        reference
        for _, reference in adk.load(reference_files.read_documents(GOLDEN / name)[0]).references
    ]


def load(evalset: Json) -> list[Reference]:
    return [
        reference
        for _, reference in adk.load(
            json_source.read(json.dumps(evalset), "e.evalset.json")
        ).references
    ]


def message(*cases: Json) -> str:
    with pytest.raises(ConfigError) as caught:
        load({"eval_cases": list(cases)})
    return str(caught.value)


def test_an_evalset_in_snake_case_with_tool_uses() -> None:
    small_talk = (
        ReferenceTurn("Hello", (), None),
        ReferenceTurn("And you?", None, None),
        ReferenceTurn(None, None, None),
    )
    assert golden("snake_case.evalset.json") == [
        Reference("lights_off", (LIGHTS_OFF,)),
        Reference("small_talk", small_talk),
    ]


def test_an_evalset_in_camel_case_with_invocation_events() -> None:
    assert golden("camel_case.test.json") == [Reference("lights_off", (LIGHTS_OFF,))]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (None, None),
        ({}, ()),
        ({"tool_uses": []}, ()),
        ({"tool_uses": None, "invocation_events": None}, ()),
        ({"invocation_events": []}, ()),
        ({"tool_uses": [{"name": "a", "args": None}]}, (ExpectedCall("a", None),)),
        ({"tool_uses": [{"name": "a", "args": {}}]}, (ExpectedCall("a", {}),)),
    ],
)
def test_missing_intermediate_data_allows_any_tools_and_empty_data_none(
    data: Json, expected: Json
) -> None:
    invocation = {"user_content": {"parts": [{"text": "x"}]}, "intermediate_data": data}
    assert (
        load({"eval_cases": [{"eval_id": "e", "conversation": [invocation]}]})[0]
        .turns[0]
        .tool_calls
        == expected
    )


TURN = {"user_content": {"parts": [{"text": "x"}]}}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ({"eval_id": "e"}, "1:17: eval_cases[0].conversation: found nothing, expected this key"),
        ({"conversation": [TURN]}, "1:17: eval_cases[0].eval_id: found nothing, expected this key"),
        (
            {"eval_id": "e", "conversation": []},
            "1:50: eval_cases[0].conversation: found a list, expected at least one entry",
        ),
        (
            {"eval_id": 5, "conversation": [TURN]},
            "1:29: eval_cases[0].eval_id: found 5, expected text",
        ),
        (
            {"eval_id": "e", "conversation": [{}]},
            "1:51: eval_cases[0].conversation[0].user_content: found nothing, expected this key",
        ),
        (
            {
                "eval_id": "e",
                "conversation": [{**TURN, "intermediateData": {"toolUses": [{"args": {}}]}}],
            },
            (
                "1:130: eval_cases[0].conversation[0].intermediateData.toolUses[0].name: found"
                " nothing, expected this key"
            ),
        ),
        (
            {
                "eval_id": "e",
                "conversation": [
                    {**TURN, "intermediate_data": {"tool_uses": [{"name": "a", "args": "{}"}]}}
                ],
            },
            (
                "1:154: eval_cases[0].conversation[0].intermediate_data.tool_uses[0].args: found"
                " '{}', expected a mapping"
            ),
        ),
        ("e", "1:17: eval_cases[0]: found 'e', expected a mapping"),
    ],
)
def test_a_problem_has_its_position(case: Json, expected: str) -> None:
    assert message(case) == f"e.evalset.json:{expected}"


def test_problems_of_all_cases_are_reported_at_once() -> None:
    assert (
        message({"eval_id": "a"}, {"eval_id": "b", "conversation": [TURN]}, {"eval_id": "c"}).count(
            "\n"
        )
        == 1
    )


def test_cases_must_be_a_list() -> None:
    with pytest.raises(
        ConfigError, match=r"^e.evalset.json:1:15: evalCases: found a mapping, expected a list$"
    ):
        load({"evalCases": {}})


SIMULATED = {"eval_id": "s", "conversation_scenario": {"starting_prompt": "Hi"}}


@pytest.mark.parametrize(
    ("cases", "expected", "note"),
    [
        ([{"eval_id": "a", "conversation": [TURN]}, SIMULATED], ["a"], "1 (s)"),
        ([{"evalId": "s", "conversationScenario": {"startingPrompt": "Hi"}}], [], "1 (s)"),
        ([SIMULATED, {**SIMULATED, "eval_id": "t"}], [], "2 (s, t)"),
        (
            [{**SIMULATED, "eval_id": n} for n in range(12)],
            [],
            "12 (0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more)",
        ),
        ([{**SIMULATED, "conversation": [TURN]}], ["s"], None),
        ([{"eval_id": "a", "conversation_scenario": None, "conversation": [TURN]}], ["a"], None),
    ],
)
def test_a_case_with_a_simulated_user_is_left_out_with_a_note(
    cases: list[Json], expected: list[str], note: str | None
) -> None:
    loaded = adk.load(json_source.read(json.dumps({"eval_cases": cases}), "e.evalset.json"))
    assert [reference.scenario_id for _, reference in loaded.references] == expected
    text = "cases with a simulated user, left out because they have no conversation to compare with"
    assert loaded.notes == ([f"{text}: {note}"] if note else [])


def rubric(name: str, kind: str | None, **fields: Json) -> Json:
    return {
        "rubric_id": name,
        "rubric_content": {"text_property": f"{name}!"},
        "type": kind,
        **fields,
    }


def test_rubrics_of_a_case_hold_for_all_of_its_invocations() -> None:
    evalset = {
        "eval_cases": [
            {
                "eval_id": "e",
                "rubrics": [rubric("a", "FINAL_RESPONSE_QUALITY", description="b")],
                "conversation": [
                    TURN,
                    {
                        **TURN,
                        "rubrics": [
                            rubric("c", "tool_use_quality"),
                            rubric("d", None),
                            rubric("f", "TRAJECTORY_QUALITY"),
                            rubric("g", None),
                        ],
                    },
                ],
            }
        ]
    }
    loaded = adk.load(json_source.read(json.dumps(evalset), "e.evalset.json"))
    common = TurnRubric("a!", "a", "b")
    assert [turn.rubrics for turn in loaded.references[0][1].turns] == [
        (common,),
        (common, TurnRubric("c!", "c", of="tool_use")),
    ]
    assert loaded.notes == [
        "rubrics of a type that no criterion uses: TRAJECTORY_QUALITY (1), no type (2); the types"
        " are FINAL_RESPONSE_QUALITY and TOOL_USE_QUALITY"
    ]
    assert not loaded.ignored


def test_rubrics_in_camel_case_are_read() -> None:
    written = {
        "rubricId": "a",
        "rubricContent": {"textProperty": "b"},
        "type": "FINAL_RESPONSE_QUALITY",
    }
    case = {"evalId": "e", "conversation": [{**TURN, "rubrics": [written]}]}
    assert load({"evalCases": [case]})[0].turns[0].rubrics == (TurnRubric("b", "a"),)


def test_a_rubric_without_text_has_its_position() -> None:
    case = {"eval_id": "e", "conversation": [TURN], "rubrics": [{"rubric_id": "a"}]}
    assert message(case).endswith(
        "eval_cases[0].rubrics[0].rubric_content: found nothing, expected this key"
    )

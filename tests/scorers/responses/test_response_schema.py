"""Responses as JSON: what is valid, where the JSON may be, and when there is no value."""

from typing import Any

import pytest

from pathgauge import ResponseSchema, Score, check_scorer, invocation

ANSWER = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "score": {"type": "integer"}},
    "required": ["answer"],
}
BLOCK = 'Here it is:\n```json\n{"answer": "yes"}\n```\nBye.'


def score(response: str | None, schema: Any = ANSWER, **options: Any) -> Score:
    return ResponseSchema(schema, **options).score(invocation(final_response=response), None)


@pytest.mark.parametrize(
    ("response", "explanation", "problems"),
    [
        ('{"answer": "yes"}', "the response is valid", []),
        (' \n{"answer": "yes", "other": null}\n', "the response is valid", []),
        (
            '{"answer": 1}',
            "$.answer: 1 is not of type 'string'",
            [["$.answer", "1 is not of type 'string'"]],
        ),
        (
            '{"score": 1.5}',
            "$.score: 1.5 is not of type 'integer', and 1 more",
            [
                ["$.score", "1.5 is not of type 'integer'"],
                ["$", "'answer' is a required property"],
            ],
        ),
        ("[]", "$: [] is not of type 'object'", [["$", "[] is not of type 'object'"]]),
        (
            "yes",
            "the response is not JSON: Expecting value: line 1 column 1 (char 0)",
            [["$", "not JSON"]],
        ),
        ("", "the response is not JSON: Expecting value: line 1 column 1 (char 0)", None),
        ('{"answer": NaN}', "the response is not JSON: found NaN", None),
        (BLOCK, "the response is not JSON: Expecting value: line 1 column 1 (char 0)", None),
    ],
)
def test_a_response_is_valid_by_the_schema_as_a_whole(
    response: str, explanation: str, problems: list[Any] | None
) -> None:
    expected = {"problems": [["$", "not JSON"]] if problems is None else problems}
    assert score(response) == Score(float(problems == []), None, explanation, expected)


@pytest.mark.parametrize(
    ("response", "value"),
    [
        (BLOCK, 1.0),
        ("```\n{}\n```", 0.0),
        ('{"answer": "yes"}', 1.0),
        ('`{"answer": "yes"}`', 0.0),
        ('```\n{}\n```\n```\n{"answer": "the second block is not read"}\n```', 0.0),
        ('```json\n{"answer": "never closed"}', 0.0),
    ],
)
def test_the_json_may_be_in_a_code_block_if_the_option_says_so(response: str, value: float) -> None:
    assert score(response, code_block=True).value == value


@pytest.mark.parametrize(("response", "value"), [("1", 1.0), ("null", 1.0), ("yes", 0.0)])
def test_without_a_schema_any_json_is_valid(response: str, value: float) -> None:
    assert score(response, None).value == value


@pytest.mark.parametrize(
    ("response", "schema", "reason"),
    [
        (None, ANSWER, "response_not_recorded"),
        ("[" * 200_000, ANSWER, "too_long"),
        ('"' + "x" * 2_000_000 + '"', {"enum": ["y"]}, "too_long"),
        ("1", {"$ref": "#"}, "too_long"),
    ],
)
def test_there_is_no_value_where_the_response_cannot_be_checked(
    response: str | None, schema: Any, reason: str
) -> None:
    assert score(response, schema).reason == reason


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ({"type": "thing"}, r"schema: \$\.type: 'thing' is not valid"),
        ({"patternProperties": {}}, "schema: patternProperties is not supported"),
    ],
)
def test_a_schema_that_cannot_be_used_is_refused(schema: Any, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ResponseSchema(schema)


def test_it_keeps_the_contract() -> None:
    check_scorer(ResponseSchema(ANSWER, code_block=True))

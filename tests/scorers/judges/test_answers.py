"""Parsing of model answers: strict, but independent of text around the answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.scorers.judges.answer_parsing import parse
from pathgauge.scorers.judges.answers import (
    Answer,
    Holds,
    Items,
    Label,
    Number,
    choice,
    items,
    label,
    number,
)

VALIDITY = label("valid", "invalid")
VALID = '{"reasoning": "It agrees.", "verdict": "valid"}'
INVALID = '{"reasoning": "It differs.", "verdict": "invalid"}'


@pytest.mark.parametrize(
    "text",
    [
        VALID,
        f"\n{VALID}\n",
        f"```json\n{VALID}\n```",
        f"<think>An {{example}} would be {INVALID}, but</think> I say {VALID}.",
        f"{INVALID}\n\nOn second thoughts:\n\n{VALID}\nThat is all.",
        VALID.replace("It agrees.", "It agrees:\nword by word"),
        f'Code such as {{"x{{ is no JSON: {VALID}',
        (
            '{"verdict": "valid", "reasoning": "Its \\"verdict\\": \\"invalid\\" {\\"is\\": 1}'
            ' quoted."}'
        ),
    ],
)
def test_the_last_json_object_is_the_answer(text: str) -> None:
    assert parse(text, VALIDITY).verdict == "valid"


@pytest.mark.parametrize(
    "answer",
    [
        INVALID.replace('"invalid"', '"Invalid"'),
        '{"verdict": "invalid"}',
        f'{{"answer": {INVALID}}}',
        INVALID[:-1] + ",}",
        INVALID.replace('"', "'"),
        '{reasoning: "It differs.", verdict: "invalid"}',
        INVALID.replace("It differs.", 'It says "valid".'),
        INVALID.replace(", ", ",  // as the instructions say\n"),
        INVALID.replace("It differs.", f"It claims {VALID} itself."),
        f"{{{INVALID}}}",
    ],
)
def test_a_quotation_never_replaces_an_unreadable_answer(answer: str) -> None:
    with pytest.raises(ValueError, match=r"found|expected|required"):
        parse(f"The agent wrote {VALID}. {answer}", VALIDITY)
    with pytest.raises(ValueError, match=r"found|expected|required"):
        parse(f"```json\n{answer}\n```", VALIDITY)


# ADK 2.13 wrongly reads these as a verdict.


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            'The text says "is_valid": "valid", but {"verdict": "invalid"',
            "the JSON object ends before it is complete",
        ),
        (VALID.replace("valid", "Valid"), 'verdict: expected one of "valid", "invalid"'),
        (VALID.replace("valid", "partially valid"), 'verdict: expected one of "valid", "invalid"'),
        (VALID[:-1], "the JSON object ends before it is complete"),
        (VALID[:-3], "the JSON object ends before it is complete"),
        (f"{VALID} {INVALID[:-1]}", "the JSON object ends before it is complete"),
        (
            '{"reasoning": "", "verdict": partially_valid}',
            "found no complete JSON object, expected one that fits the schema",
        ),
        ('["valid"]', "found JSON that is no object, expected an object that fits the schema"),
        (
            f"[{INVALID}, {VALID}]",
            "found JSON that is no object, expected an object that fits the schema",
        ),
        ("true", "found JSON that is no object, expected an object that fits the schema"),
        (
            json.dumps(VALID),
            "found JSON that is no object, expected an object that fits the schema",
        ),
        (
            '{"is_the_agent_response_invalid": false}',
            (
                "reasoning: Field required; verdict: Field required; found members that are not in"
                " the schema"
            ),
        ),
        (
            f'{{"answer": {VALID}}}',
            (
                "reasoning: Field required; verdict: Field required; found members that are not in"
                " the schema"
            ),
        ),
        (
            VALID[:-1] + ', "verdict": "invalid"}',
            "found a member twice in one object, expected it once",
        ),
        (
            f"So: {VALID[:-1]}, " + '"verdict": "invalid"}',
            "found a member twice in one object, expected it once",
        ),
        (VALID[:-1] + ', "score": 1}', "found members that are not in the schema"),
        (
            '{"reasoning": 1, "verdict": true}',
            "reasoning: Input should be a valid string; verdict: Input should be a valid string",
        ),
        ("cannot determine", "found no complete JSON object, expected one that fits the schema"),
        ("**Verdict:** valid", "found no complete JSON object, expected one that fits the schema"),
        ("", "found no complete JSON object, expected one that fits the schema"),
        ("{}", "reasoning: Field required; verdict: Field required"),
    ],
)
def test_invalid_answers_are_refused_with_a_description(text: str, error: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - full match below
        parse(text, VALIDITY)
    assert str(refusal.value) == error


# LangChain accepts all of these as a score.


@pytest.mark.parametrize(
    ("score", "answer", "error"),
    [
        ("7.3", number(0, 1), "score: Input should be less than or equal to 1"),
        ("-0.1", number(0, 1), "score: Input should be greater than or equal to 0"),
        ("0.4", choice(0, 1), "score: expected one of 0, 1"),
        ('"1"', choice(0, 1), "score: Input should be a valid number"),
        ("true", number(0, 1), "score: Input should be a valid number"),
        ("NaN", number(0, 1), "found NaN, expected a finite number"),
        ("-Infinity", choice(0, 1), "found -Infinity, expected a finite number"),
        ("1e999", number(0, 1), "score: Input should be a finite number"),
        ("1" * 400, number(0, 1), "found a number of 400 digits, expected a smaller one"),
        ("null", number(0, 1), "score: Input should be a valid number"),
        ('"true"', Holds, "score: Input should be a valid boolean"),
        ("1", Holds, "score: Input should be a valid boolean"),
    ],
)
def test_a_score_out_of_range_is_refused(score: str, answer: type[Answer], error: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - full match below
        parse(f'{{"reasoning": "", "score": {score}}}', answer)
    assert str(refusal.value) == error


@pytest.mark.parametrize(
    ("score", "answer", "value"),
    [
        ("0.75", number(0, 1), 0.75),
        ("1", number(0, 1), 1.0),
        ("0.5", choice(0, 0.5, 1), 0.5),
        ("1.0", choice(0, 1), 1.0),
    ],
)
def test_a_score_is_a_number(score: str, answer: type[Number], value: float) -> None:
    assert parse(f'{{"reasoning": "", "score": {score}}}', answer).score == value


def test_a_boolean_score_is_a_boolean() -> None:
    assert parse('{"reasoning": "", "score": false}', Holds) == Holds(reasoning="", score=False)


def verdicts(*items: tuple[Any, str]) -> str:
    return json.dumps(
        {
            "verdicts": [
                {"number": number, "reasoning": "", "verdict": verdict} for number, verdict in items
            ]
        }
    )


def test_each_numbered_item_has_its_verdict() -> None:
    answer = parse(verdicts((2, "no"), (1, "yes")), items(2, "yes", "no"))
    assert [(item.number, item.verdict) for item in answer.in_order()] == [(1, "yes"), (2, "no")]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (verdicts((1, "yes"), (3, "yes")), "verdicts: no verdict on 2"),
        (
            verdicts((1, "yes"), (1, "no"), (2, "no")),
            "verdicts: no verdict on 3; several verdicts on 1",
        ),
        (
            verdicts((1, "yes"), (2, "no"), (4, "no")),
            "verdicts.2.number: Input should be less than or equal to 3",
        ),
        (verdicts((0, "yes")), "verdicts.0.number: Input should be greater than or equal to 1"),
        (
            verdicts((1, "yes"), (2, "unknown"), (3, "no, not yes")),
            "; ".join(f'verdicts.{i}.verdict: expected one of "yes", "no"' for i in (1, 2)),
        ),
        (verdicts((True, "yes")), "verdicts.0.number: Input should be a valid integer"),
        (verdicts(), "verdicts: no verdict on 1, 2, 3"),
    ],
)
def test_missing_and_repeated_items_are_refused(text: str, error: str) -> None:
    with pytest.raises(ValueError) as refusal:  # noqa: PT011 - full match below
        parse(text, items(3, "yes", "no"))
    assert str(refusal.value) == error


def test_many_errors_give_one_short_line() -> None:
    with pytest.raises(ValueError, match=r"^verdicts: no verdict on 1, 2, ") as refusal:
        parse(verdicts(), items(500, "yes", "no"))
    assert str(refusal.value).endswith(" 20 and others")


@pytest.mark.parametrize(
    "unit",
    [
        "{",
        '{"',
        '{"a":',
        '{"a":[',
        '{"a":{"b":[1, ',
        "[",
        "{} ",
        '{"a":1}',
        '"{',
        '{"a":1,',
        '\\{"',
        "{ ",
        VALID,
    ],
)
def test_hostile_texts_are_refused_quickly(unit: str) -> None:
    text = (unit * 1_000_000)[:199_999]
    with pytest.raises(
        ValueError, match=r"found|ends"
    ):  # would take minutes if each brace were parsed to the end
        parse(text, VALIDITY)
    with pytest.raises(ValueError, match="longer than 200000 characters"):
        parse(unit * 1_000_000, VALIDITY)


def test_a_fenced_answer_may_have_many_items() -> None:
    text = f"```json\n{verdicts(*((number, 'yes') for number in range(1, 401)))}\n```"
    assert len(parse(text, items(400, "yes", "no")).verdicts) == 400


def test_lone_surrogates_are_replaced() -> None:
    assert parse(VALID.replace("It agrees.", "\\ud800!"), VALIDITY) == VALIDITY(
        reasoning="?!", verdict="valid"
    )


def test_the_schema_contains_everything_that_is_validated() -> None:
    assert VALIDITY.model_json_schema() == {
        "title": "Label",
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "reasoning": {"title": "Reasoning", "type": "string"},
            "verdict": {"title": "Verdict", "type": "string", "enum": ["valid", "invalid"]},
        },
        "required": ["reasoning", "verdict"],
    }
    assert number(1, 5).model_json_schema()["properties"]["score"] == {
        "title": "Score",
        "type": "number",
        "minimum": 1,
        "maximum": 5,
    }
    assert choice(0, 0.5, 1).model_json_schema()["properties"]["score"] == {
        "title": "Score",
        "type": "number",
        "enum": [0, 0.5, 1],
    }
    assert items(3, "yes", "no").model_json_schema()["$defs"]["Item"]["properties"]["number"] == {
        "title": "Number",
        "type": "integer",
        "minimum": 1,
        "maximum": 3,
    }


def test_answers_of_the_same_form_have_the_same_type() -> None:
    assert items(2, "yes", "no") is items(2, "yes", "no")
    assert issubclass(VALIDITY, Label)
    assert issubclass(items(2, "yes", "no"), Items)

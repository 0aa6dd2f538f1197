"""Phrases that the response must have, and those that it must not have."""

from typing import Any

import pytest

from pathgauge.scorers.authoring.builders import invocation, reference_turn
from pathgauge.scorers.authoring.contract import check_scorer
from pathgauge.scorers.responses.phrases import ResponseContains, ResponseExcludes
from pathgauge.scorers.types import ReferenceTurn, Score


def contains(response: str | None, *expected: str, **options: Any) -> Score:
    return ResponseContains(**options).score(
        invocation(final_response=response), ReferenceTurn(response_contains=expected)
    )


# "Evaluator Catalog & Scoring": eval_response_contains


@pytest.mark.parametrize(
    ("response", "phrases", "value"),
    [
        ("Your refund was processed.", ("refund",), 1.0),
        ("Your REFUND was processed.", ("refund", "Processed"), 1.0),
        ("Your refund was processed.", ("refund", "3 days"), 0.0),
        ("Die STRASSE ist gesperrt", ("straße",), 1.0),
        ("", ("refund",), 0.0),
        (" \n", ("refund",), 0.0),
        ("re fund", ("refund",), 0.0),
    ],
)
def test_every_phrase_must_stand_in_the_response(
    response: str, phrases: tuple[str, ...], value: float
) -> None:
    assert contains(response, *phrases).value == value
    assert ResponseContains(phrases).score(invocation(final_response=response), None).value == value


def test_phrases_of_the_options_and_of_the_reference_count_once_each() -> None:
    score = contains(
        "a refund", "refund", "in 3 days", " ", phrases=("refund", "sorry"), partial=True
    )
    line = "1 of 3 phrases found; missing sorry, in 3 days"
    assert score == Score(
        1 / 3, None, line, {"found": ["refund"], "missing": ["sorry", "in 3 days"]}
    )


def test_a_response_with_all_phrases_is_explained() -> None:
    assert contains("a refund", "refund") == Score(
        1.0, None, "1 of 1 phrases found", {"found": ["refund"], "missing": []}
    )


@pytest.mark.parametrize(
    "turn",
    [
        None,
        ReferenceTurn(),
        ReferenceTurn(response_contains=("", " \n")),
        reference_turn(response="refund"),
    ],
)
def test_without_phrases_there_is_no_value(turn: ReferenceTurn | None) -> None:
    assert ResponseContains().score(invocation(), turn) == Score.not_evaluated(
        "no_reference", "no phrases to look for"
    )


def test_a_response_that_was_not_recorded_is_not_an_empty_one() -> None:
    assert contains(None, "refund").reason == "response_not_recorded"
    assert (
        ResponseExcludes(("refund",)).score(invocation(final_response=None), None).reason
        == "response_not_recorded"
    )


@pytest.mark.parametrize(
    ("response", "score"),
    [
        ("All is well", Score(1.0, None, "none of 2 phrases found", {"found": []})),
        ("I CANNOT help", Score(0.0, None, "the response has I cannot", {"found": ["I cannot"]})),
        ("", Score(1.0, None, "none of 2 phrases found", {"found": []})),
    ],
)
def test_no_excluded_phrase_may_stand_in_the_response(response: str, score: Score) -> None:
    assert (
        ResponseExcludes(("I cannot", "password")).score(invocation(final_response=response), None)
        == score
    )


def test_without_excluded_phrases_there_is_no_value() -> None:
    assert (
        ResponseExcludes().score(invocation(), ReferenceTurn(response_contains=("a",))).reason
        == "no_reference"
    )


@pytest.mark.parametrize("kind", [ResponseContains, ResponseExcludes])
def test_blank_phrases_are_rejected(kind: Any) -> None:
    check_scorer(kind(("two rooms", "tea")))
    with pytest.raises(ValueError, match="phrases: found ' ', expected text that is not blank"):
        kind(("refund", " "))

"""The length of responses: limits in characters and in words."""

from typing import Any

import pytest

from pathgauge import ResponseLength, Score, check_scorer, invocation


def score(response: str | None, **limits: Any) -> Score:
    return ResponseLength(**limits).score(invocation(final_response=response), None)


@pytest.mark.parametrize(
    ("response", "limits", "value", "explanation"),
    [
        ("two words", {"max_words": 2}, 1.0, "2 words"),
        ("two words", {"max_words": 1}, 0.0, "2 words, expected at most 1"),
        ("two words", {"min_words": 3}, 0.0, "2 words, expected at least 3"),
        ("two words", {"min_words": 2, "max_words": 2}, 1.0, "2 words"),
        ("two words", {"min_characters": 9, "max_characters": 9}, 1.0, "9 characters"),
        ("two words", {"max_characters": 8}, 0.0, "9 characters, expected at most 8"),
        ("  x\n", {"min_characters": 4, "min_words": 1}, 1.0, "4 characters, 1 word"),
        (
            "x",
            {"min_characters": 2, "min_words": 2},
            0.0,
            "1 character, expected at least 2; 1 word, expected at least 2",
        ),
        ("", {"max_words": 0}, 1.0, "0 words"),
        ("今天天气很好", {"max_words": 1, "max_characters": 6}, 1.0, "6 characters, 1 word"),
        ("e\u0301", {"max_characters": 1}, 0.0, "2 characters, expected at most 1"),
    ],
)
def test_the_length_must_be_within_all_limits(
    response: str, limits: dict[str, int], value: float, explanation: str
) -> None:
    details = {"characters": len(response), "words": len(response.split())}
    assert score(response, **limits) == Score(value, None, explanation, details)


def test_there_is_no_value_without_a_limit_or_a_response() -> None:
    assert score("x").reason == "no_reference"
    assert score(None, max_words=1).reason == "response_not_recorded"


@pytest.mark.parametrize(
    ("limits", "problem"),
    [
        ({"min_words": -1}, "min_words: found -1, expected a number from 0"),
        ({"max_characters": -1}, "max_characters: found -1, expected a number from 0"),
        (
            {"min_words": 3, "max_words": 2},
            "min_words, max_words: found 3 and 2, expected a maximum that is not below the minimum",
        ),
        (
            {"min_characters": 1, "max_characters": 0},
            "min_characters, max_characters: found 1 and 0",
        ),
    ],
)
def test_limits_that_make_no_sense_are_refused(limits: dict[str, int], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ResponseLength(**limits)


def test_it_keeps_the_contract() -> None:
    check_scorer(ResponseLength(1, 20, 1, 20))

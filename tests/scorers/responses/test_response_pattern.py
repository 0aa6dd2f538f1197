"""Responses and regular expressions: where a match counts, and patterns that take too long."""

from typing import Any

import pytest

from pathgauge import ResponsePattern, Score, check_scorer, invocation
from pathgauge.scorers.responses.response_pattern import MAX_RESPONSE


def score(pattern: str, response: str | None, **options: Any) -> Score:
    return ResponsePattern(pattern, **options).score(invocation(final_response=response), None)


@pytest.mark.parametrize(
    ("pattern", "response", "options", "expected"),
    [
        (
            "R-[0-9]+",
            "refund R-7001 is done",
            {},
            Score(1.0, None, "the response matches 'R-[0-9]+': 'R-7001'", {"found": "R-7001"}),
        ),
        (
            "R-[0-9]+",
            "done",
            {},
            Score(0.0, None, "the response does not match 'R-[0-9]+'", {"found": None}),
        ),
        (
            "done",
            " done\n",
            {"whole": True},
            Score(1.0, None, "the response matches 'done'", {"found": "done"}),
        ),
        (
            "done",
            "done.",
            {"whole": True},
            Score(0.0, None, "the response does not match 'done'", {"found": None}),
        ),
        (
            "as an ai",
            "As an AI, I refuse",
            {"ignore_case": True, "forbidden": True},
            Score(0.0, None, "the response matches 'as an ai': 'As an AI'", {"found": "As an AI"}),
        ),
        (
            "as an ai",
            "As an AI, I refuse",
            {"forbidden": True},
            Score(1.0, None, "the response does not match 'as an ai'", {"found": None}),
        ),
        ("x*", "", {}, Score(1.0, None, "the response matches 'x*'", {"found": ""})),
    ],
)
def test_a_response_matches_or_does_not(
    pattern: str, response: str, options: dict[str, Any], expected: Score
) -> None:
    assert score(pattern, response, **options) == expected


def test_a_response_that_is_not_recorded_has_no_value() -> None:
    assert score("x", None).reason == "response_not_recorded"


@pytest.mark.parametrize(
    ("pattern", "response"),
    [
        (r"(?:(a+)(?:b|\1))+c", "a" * 400),
        ("x", "x" * (MAX_RESPONSE + 1)),
    ],
)
def test_a_pattern_that_takes_too_long_has_no_value(pattern: str, response: str) -> None:
    assert score(pattern, response).reason == "too_long"


def test_a_long_response_is_searched_up_to_its_end() -> None:
    assert score("yes$", "x" * (MAX_RESPONSE - 3) + "yes").value == 1.0


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("", "pattern: found '', expected a regular expression"),
        ("(", r"pattern: found '\(', expected a regular expression: missing \)"),
        ("x" * 1001, "pattern: found 'x+…, expected a pattern of at most 1,000 characters"),
    ],
)
def test_a_pattern_that_is_none_is_refused(pattern: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        ResponsePattern(pattern)


def test_details_hold_the_beginning_of_a_long_match() -> None:
    found = score(".*", "x" * 5_000).details["found"]
    assert found == "x" * 999 + "…"


def test_it_keeps_the_contract() -> None:
    check_scorer(ResponsePattern("te?a", whole=True, ignore_case=True, forbidden=True))

"""Two different values are seen to differ, however long or alike they are."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from pathgauge import ResponseExactMatch, ToolTrajectoryAvgScore, invocation
from pathgauge.scorers.authoring.builders import expected_call, reference_turn, tool_call
from pathgauge.scorers.matching.wording import cut_apart, first_difference, told_apart


@pytest.mark.parametrize(
    ("found", "expected", "told"),
    [
        ("a" * 100 + "1", "a" * 100 + "2", 'expected …aaaaaaaaaa2", found …aaaaaaaaaa1"'),
        ([1] * 50 + [2], [1] * 50 + [3], "expected … 1, 1, 1, 3], found … 1, 1, 1, 2]"),
        ("a" * 300, "a" * 301, 'expected …aaaaaaaaaaa", found …aaaaaaaaaa"'),
        ("e\u0301", "\u00e9", r'expected "\xe9", found "e\u0301"'),
        ("a\u00a0b", "a b", r'expected "a b", found "a\xa0b"'),
        ("a\u200bb", "ab", r'expected "ab", found "a\u200bb"'),
        ("\uff21", "A", r'expected "A", found "\uff21"'),
        ("\u00e9", "\u00e8", 'expected "\u00e8", found "\u00e9"'),
        ("b", "a", 'expected "a", found "b"'),
    ],
)
def test_values_that_differ_do_not_look_the_same(
    found: object, expected: object, told: str
) -> None:
    score = ToolTrajectoryAvgScore().score(
        invocation(tool_call("a", x=found)), reference_turn(expected_call("a", x=expected))
    )
    assert score.explanation == f"0 of 1 expected calls matched; a with other arguments (x: {told})"


def test_details_of_long_values_show_where_they_differ() -> None:
    score = ToolTrajectoryAvgScore().score(
        invocation(tool_call("a", x="a" * 500 + "1")),
        reference_turn(expected_call("a", x="a" * 500 + "2")),
    )
    [[_, _, _, arguments]] = score.details["different"]
    assert arguments == {"x": ['…aaaaaaaaaa2"', '…aaaaaaaaaa1"']}


def test_responses_that_differ_do_not_look_the_same() -> None:
    score = ResponseExactMatch().score(
        invocation(final_response="cafe\u0301"), reference_turn(response="caf\u00e9")
    )
    assert score.explanation == r"differs at character 3: found 'e\u0301', expected '\xe9'"


@given(st.text("ab\u00e9e\u0301 \u00a0"), st.text("ab\u00e9e\u0301 \u00a0"), st.integers(13, 40))
def test_different_texts_stay_different_within_the_length(
    one: str, other: str, max_length: int
) -> None:
    parts = cut_apart(one, other, max_length)
    assert max(map(len, parts)) <= max_length
    assert (parts[0] == parts[1]) == (one == other)
    told = told_apart(*parts)
    assert (told[0] == told[1]) == (one == other)


@given(st.text("ab"), st.text("ab"))
def test_the_first_difference_is_where_the_texts_part(one: str, other: str) -> None:
    at = first_difference(one, other)
    assert one[:at] == other[:at]
    assert at == min(len(one), len(other)) or one[at] != other[at]

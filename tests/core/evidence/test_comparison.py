"""Two trajectories side by side, from the details of a score."""

from __future__ import annotations

import pytest

from pathgauge import ExpectedCall, ToolCall, ToolTrajectoryF1
from pathgauge.collector.core.evidence.comparison import (
    AlignedCall,
    Call,
    Row,
    alignments,
    comparisons,
    rows,
)
from pathgauge.collector.core.evidence.evidence import CriterionEvidence, Evidence
from pathgauge.scorers.authoring.builders import (
    expected_call,
    expected_calls,
    invocation,
    reference_turn,
    tool_call,
    tool_calls,
)


def compared(
    actual: tuple[ToolCall, ...], expected: tuple[ExpectedCall, ...], scorer: ToolTrajectoryF1
) -> list[Row]:
    return rows(
        scorer.score(invocation(*actual), reference_turn(*expected)).details, actual, expected
    )


@pytest.mark.parametrize(
    ("done", "asked", "shown"),
    [
        ("a b", "a b", "a=a b=b"),
        ("a x b", "a b", "a=a +x b=b"),
        ("a b", "a m b", "a=a m- b=b"),
        ("a b", "a b m n", "a=a b=b m- n-"),
        ("x y", "", "+x +y"),
        ("", "m n", "m- n-"),
        ("x a", "m a", "+x m- a=a"),
        ("", "", ""),
    ],
)
def test_missing_calls_are_shown_next_to_their_neighbours(
    done: str, asked: str, shown: str
) -> None:
    found = compared(tool_calls(done), expected_calls(asked), ToolTrajectoryF1())
    assert (
        " ".join(f"{row.expected}{row.mark}{row.actual}".replace("()", "") for row in found)
        == shown
    )


def test_arguments_are_shown_as_recorded() -> None:
    actual = (
        tool_call("book", room={"beds": 2}, guest="Ada"),
        ToolCall("pay", "{not json"),
        ToolCall("mail"),
    )
    expected = (expected_call("book", guest="Bob"), ExpectedCall("pay"), ExpectedCall("mail"))
    assert compared(actual, expected, ToolTrajectoryF1()) == [
        Row("=", 'book(guest="Bob")', 'book(room={"beds": 2}, guest="Ada")'),
        Row("=", "pay", "pay({not json)"),
        Row("=", "mail", "mail"),
    ]


def test_calls_that_differ_in_their_arguments_share_a_row() -> None:
    details = {
        "matched": [[0, 0, "look"]],
        "missing": [[1, "book"]],
        "unexpected": [[1, "book"]],
        "different": [[1, 1, "book", {"room": [2, 3]}]],
    }
    actual, expected = (
        (tool_call("look"), tool_call("book", room=3)),
        (expected_call("look"), expected_call("book", room=2)),
    )
    assert rows(details, actual, expected) == [
        Row("=", "look()", "look()"),
        Row("~", "book(room=2)", "book(room=3)"),
    ]


def test_calls_whose_arguments_were_not_recorded_share_a_row() -> None:
    actual = tool_call("look"), ToolCall("book")
    expected = expected_call("look"), expected_call("book", room=2)
    assert compared(actual, expected, ToolTrajectoryF1(match_mode="name_and_args")) == [
        Row("=", "look()", "look()"),
        Row("?", "book(room=2)", "book"),
    ]


def test_calls_that_do_not_fit_the_details_are_shown_by_name() -> None:
    details = {"matched": [], "missing": [], "unexpected": [[0, "search"], [5, "book"]]}
    assert rows(details, tool_calls("look"), ()) == [Row("+", "", "search"), Row("+", "", "book")]


def test_an_alignment_names_the_arguments_that_make_the_difference() -> None:
    details = {
        "matched": [],
        "missing": [[0, "book"]],
        "unexpected": [[0, "book"]],
        "different": [[0, 0, "book", {"room": ["2", "3"]}]],
    }
    criteria = [CriterionEvidence(name, "s 1", "failed", details=details) for name in ("a", "b")]
    odd = CriterionEvidence("odd", "s 1", "failed", details={"matched": 3})
    evidence = Evidence(
        invocation(tool_call("book", room=3, guest="Ada")),
        (*criteria, odd),
        turn=reference_turn(expected_call("book", room=2, guest="Ada")),
    )
    aligned = AlignedCall(
        "~",
        Call("book", {"room": 2, "guest": "Ada"}),
        Call("book", {"room": 3, "guest": "Ada"}),
        ("room",),
    )
    assert alignments(evidence) == [(["a", "b"], [aligned])]
    row = Row("~", 'book(room=2, guest="Ada")', 'book(room=3, guest="Ada")')
    assert comparisons(evidence) == [(["a", "b"], [row])]

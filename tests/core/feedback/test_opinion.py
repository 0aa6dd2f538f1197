"""What people say of a run as a whole."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.feedback.opinion import Opinion, opinion
from pathgauge.collector.core.feedback.verdict import VerdictRules


def answer(rater: str, label: str, **fields: Any) -> Answer:
    return Answer("", "t", "s", rater=rater, label=label, **fields)


@pytest.mark.parametrize(
    ("said", "expected"),
    [(Opinion(), None), (Opinion(1, 1), None), (Opinion(2, 1), True), (Opinion(0, 1), False)],
)
def test_most_people_decide(said: Opinion, expected: bool | None) -> None:
    assert said.verdict is expected


def test_people_are_counted_and_not_answers_nor_what_they_say_of_a_criterion() -> None:
    given = [
        answer("ann", "good"),
        answer("ann", "yes", name="helpful"),
        answer("bob", "good"),
        answer("bob", "bad", name="polite"),
        answer("cat", "bad", name="tone"),
        answer("dan", "blue"),
    ]
    assert opinion(VerdictRules(), given, {"tone"}) == Opinion(good=1, bad=1)

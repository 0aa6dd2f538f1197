"""What an answer means, and how answers and criteria become pairs."""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge.collector.core.feedback.answer import Answer, Scale
from pathgauge.collector.core.feedback.kappa import Table
from pathgauge.collector.core.feedback.pairs import CriterionKey, Judged, Pairing, people_say
from pathgauge.collector.core.feedback.verdict import VerdictRules, majority

RULES = VerdictRules()


def answer(rater: str | None = None, /, **fields: Any) -> Answer:
    return Answer("", "t", "s", rater=rater, **fields)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"label": "pass"}, True),
        ({"label": " Thumbs-Up "}, True),
        ({"label": "👎"}, False),
        ({"label": "not helpful"}, False),
        ({"label": "-1"}, False),
        ({"label": "1"}, True),
        ({"label": "1", "rating": 1.0, "scale": Scale(1, 5)}, False),
        ({"label": "1", "rating": 1.0}, True),
        ({"label": "0", "rating": 0.0, "scale": Scale(-1, 1)}, None),
        ({"label": "blue"}, None),
        ({"label": "blue", "rating": 1.0}, True),
        ({"label": "fail", "rating": 1.0}, False),
        ({"rating": 0.0}, False),
        ({"rating": 0.5}, None),
        ({"rating": 0.51}, True),
        ({"rating": 4.0}, None),
        ({"rating": 4.0, "scale": Scale(1, 5)}, True),
        ({"rating": 3.0, "scale": Scale(1, 5)}, None),
        ({"rating": 2.0, "scale": Scale(1, 5)}, False),
        ({"rating": -1.0, "scale": Scale(-1, 1)}, False),
        ({"rating": 6.0, "scale": Scale(1, 5)}, None),
        ({"rating": 1e308, "scale": Scale(-1e308, 1e308)}, True),
        ({"rating": 0.0, "scale": Scale(-1e308, 1e308)}, None),
        ({"rating": 5e-324, "scale": Scale(0, 5e-324)}, True),
        ({}, None),
    ],
)
def test_an_answer_means_pass_fail_or_neither(
    fields: dict[str, Any], expected: bool | None
) -> None:
    assert RULES.verdict(answer(**fields)) is expected


def test_the_configuration_decides_about_labels_and_scales() -> None:
    rules = VerdictRules({"blue": True, "pass": False}, {"stars": Scale(1, 5)}, middle=0.7)
    assert rules.verdict(answer(label="Blue")) is True
    assert rules.verdict(answer(label="pass")) is False
    assert rules.verdict(answer(name="stars", rating=4.0)) is True
    assert VerdictRules({"1": True}).verdict(answer(label="1", rating=0.0)) is True
    assert rules.verdict(answer(name="stars", rating=3.0, scale=Scale(0, 3))) is False


def test_most_people_decide() -> None:
    assert majority([True, None, True, False]) is True
    assert majority([False, None]) is False
    assert majority([True, False]) is None
    assert majority([]) is None


CRITERIA = {"quality", "tone"}


def test_an_answer_about_a_criterion_is_about_no_other() -> None:
    given = [answer("a", label="pass"), answer("a", name="tone", label="fail")]
    assert people_say(RULES, given, "quality", CRITERIA) is True
    assert people_say(RULES, given, "tone", CRITERIA) is False
    assert people_say(RULES, given[1:], "quality", CRITERIA) is None


def test_a_person_says_pass_if_all_their_answers_do() -> None:
    good = answer("a", name="helpful", label="pass")
    bad = answer("a", name="correct", label="fail")
    assert people_say(RULES, [good, bad], "quality", CRITERIA) is False
    other = [answer(rater, label="pass") for rater in "bc"]
    assert people_say(RULES, [good, bad, *other], "quality", CRITERIA) is True


def judged(name: str, *, passed: bool | None, scorer: str = "s 1", judge: str = "") -> Judged:
    return Judged(name, scorer, judge, passed)


def test_a_run_counts_once_for_each_criterion() -> None:
    pairing = Pairing(RULES)
    people = [answer(rater, label="pass") for rater in "abc"]
    pairing.add(
        "", 0.0, people, [judged("quality", passed=True), judged("tone", passed=False, judge="m@1")]
    )
    pairing.add("", 0.0, [answer(label="fail")], [judged("quality", passed=True)])
    pairing.add("", 0.0, [answer(label="fail")], [judged("quality", passed=None)])
    pairing.add("", 0.0, [answer(label="blue")], [judged("quality", passed=True)])
    pairing.add("north", 0.0, [answer(label="fail")], [judged("quality", passed=False)])
    assert pairing.found.tables == {
        CriterionKey("", "quality"): Table(both=1, criterion_only=1),
        CriterionKey("", "tone", "m@1"): Table(people_only=1),
        CriterionKey("north", "quality"): Table(neither=1),
    }
    assert pairing.found.answers == {"paired": 6, "no_verdict": 1}


def test_verdicts_of_an_earlier_version_of_a_scorer_are_left_out() -> None:
    pairing = Pairing(RULES)
    # Somebody answered last about a run that the earlier version has scored.
    for scorer, at in (("s 1", 5.0), ("s 2", 9.0), ("s 1", 6.0), ("s 2", 8.0), ("s 1", 7.0)):
        pairing.add("", at, [answer(label="pass")], [judged("q", passed=True, scorer=scorer)])
    assert pairing.found.tables == {CriterionKey("", "q"): Table(both=2)}

"""Whatever users do, the results of sessions are those of a simple model: sessions that are opened
again, mixed with others, given up, or never end, with restarts and kills in between.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from support.examples import examples
from support.session_course import SESSION, Course, Sent, truth

LONG = 10 * (SESSION.max_age + SESSION.reopen)
PAUSES = [0.0, 5.0, SESSION.settle, 50.0, SESSION.idle, 150.0, 350.0, SESSION.reopen + 120.0, 700.0]


@st.composite
def traffic(draw: st.DrawFn, max_turns: int = 25) -> list[Sent]:
    """Turns of a few conversations in any order, some with late spans."""
    sent: list[Sent] = []
    conversations = st.sampled_from(["a", "b", "c", "endless"])
    for number in range(draw(st.integers(1, max_turns))):
        ends = draw(st.integers(0, 5)) == 0
        one = Sent(draw(st.sampled_from(PAUSES)), draw(conversations), number, ends)
        sent.append(one)
        if draw(st.integers(0, 3)) == 0:
            late = draw(st.sampled_from([one for one in sent if not one.is_late]))
            sent.append(late._replace(pause=draw(st.sampled_from(PAUSES)), is_late=True))
    return sent


def told(sent: list[Sent], breaks: list[str]) -> Course:
    """The course of this traffic, with a restart or a kill after some of it."""
    course = Course()
    for one, what in zip(sent, breaks, strict=True):
        course.send(one, killed=what == "kill")
        if what == "restart":
            course.restart()
    course.wait(LONG)
    return course


def breaks(sent: list[Sent]) -> st.SearchStrategy[list[str]]:
    what = st.sampled_from(["", "", "", "restart", "kill"])
    return st.lists(what, min_size=len(sent), max_size=len(sent))


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_results_are_those_of_the_model_across_restarts_and_kills(data: st.DataObject) -> None:
    sent = data.draw(traffic())
    course = told(sent, data.draw(breaks(sent)))
    expected = truth(sent, LONG)
    assert course.told() == expected
    assert len(course.counted) == len(set(course.counted)) == len(expected)
    assert course.telemetry.sessions_ended.total() == len(expected)
    revisions = sum(one.results - 1 for one in expected)
    assert course.telemetry.session_revisions.get() == revisions
    assert course.left() == (0, 0)


@pytest.mark.slow
@settings(max_examples=examples(1_000, fewer=40), deadline=None)
@given(st.data())
def test_results_of_much_traffic_are_those_of_the_model(data: st.DataObject) -> None:
    sent = data.draw(traffic(max_turns=120))
    course = told(sent, data.draw(breaks(sent)))
    assert course.told() == truth(sent, LONG)
    assert course.left() == (0, 0)

"""Which run an answer is about, and which answer of a person counts."""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.feedback.subjects import About, about_runs, newest


def answer(span_id: str = "", **fields: Any) -> Answer:
    return Answer("", "t", span_id, **fields)


def test_an_answer_is_about_the_run_of_its_span_or_about_the_only_one() -> None:
    run, whole, inner = answer("a"), answer(), answer("z")
    assert about_runs([run, whole, inner], {"a"}) == About({"a": [run, whole, inner]}, [])
    assert about_runs([run, whole, inner], {"a", "b"}) == About({"a": [run]}, [whole, inner])
    assert about_runs([run, whole], ()) == About({}, [run, whole])


def test_the_newest_answer_of_a_person_counts() -> None:
    first = answer("a", rater="ann", given_at=2.0, label="up")
    given = [
        first,
        answer("a", rater="ann", given_at=1.0, label="down"),
        answer("a", rater="bob", label="up"),
        answer("a", rater="bob", label="down"),
        answer("b", rater="ann", label="up"),
        answer("a", rater="ann", name="tone", label="up"),
    ]
    assert list(newest(given)) == [first, given[3], given[4], given[5]]

"""Answers of people in the store: revised, sent again, counted with their results, and removed."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from pathgauge import ToolTrajectoryAvgScore
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.feedback.answer import Scale
from pathgauge.collector.core.feedback.kappa import Table
from pathgauge.collector.core.feedback.opinion import Opinion
from pathgauge.collector.core.feedback.pairs import CriterionKey, Pairs
from pathgauge.collector.core.feedback.verdict import VerdictRules
from pathgauge.collector.core.pipeline_events import FeedbackGiven, PublishedEvent
from pathgauge.collector.core.publication import Publication
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.store import Progress, Selection, StoreError, feedback
from pathgauge.collector.store.feedback import MAX_REPLACED
from pathgauge.collector.store.publications import decode, encode
from pathgauge.collector.store.queries.answered_sessions import Clock
from pathgauge.collector.store.queries.feedback import Subject, about, opinions, pairs
from pathgauge.collector.store.queries.reading import reading
from pathgauge.collector.store.queries.results import of_trace
from pathgauge.collector.store.retention import Retention
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.purging import Purging
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import span_id, trace_id
from support.answered import SELECTIONS, answer, content, given, of_tenants
from support.evaluated import WALL, commit, evaluation, opened

RULES = VerdictRules()


@contextmanager
def rows(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / files.DATABASE)) as connection:
        yield connection


def labels(folder: Path, subject: str = "a", tenant: str | None = None) -> list[str | None]:
    with reading(folder) as connection:
        found = about(connection, Subject(trace_id(subject)), tenant)
    return [one.answer.label for one in found]


def test_an_answer_is_stored_as_it_was_given(tmp_path: Path) -> None:
    given = answer(
        rating=4.0,
        scale=Scale(1, 5),
        name="stars",
        comment="näh \ud800\0",
        rater="ann@example.org",
        source="ui",
        given_at=5.0,
    )
    with opened(tmp_path) as store:
        assert store.record_feedback([given]) == ["created"]
    with reading(tmp_path) as connection:
        [found] = about(connection, Subject(trace_id("a")))
    assert found.answer == replace(given, comment="näh ?", rater=found.answer.rater)
    assert found.at == pytest.approx(time.time(), abs=60)


def test_an_answer_about_an_old_run_does_not_bring_back_an_earlier_version_of_a_scorer(
    tmp_path: Path,
) -> None:
    old = evaluation("old")
    earlier = replace(old.results[0].criterion, scorer=_EarlierScore())
    old = replace(old, results=(replace(old.results[0], criterion=earlier),))
    with opened(tmp_path) as store:
        commit(store, [old])
        commit(store, [evaluation("b"), *given(answer("b", "down"))], WALL + 1)
        commit(store, given(answer("old", "up")), WALL + 2)
    with reading(tmp_path) as connection:
        found = pairs(connection, RULES, Clock(WALL + 3), 0.0)
    assert found.tables == {CriterionKey("", "trajectory"): Table(neither=1)}


class _EarlierScore(ToolTrajectoryAvgScore):
    version = "0"


def test_nobody_learns_who_the_rater_is(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.record_feedback([answer(rater="ann@example.org"), answer("b", rater="bob")])
        store.record_feedback([answer("c", rater="ann@example.org")])
    assert b"ann@" not in (tmp_path / files.DATABASE).read_bytes()
    with rows(tmp_path) as connection:
        found = dict(connection.execute("SELECT trace_id, rater FROM feedback"))
    assert found[trace_id("a")] == found[trace_id("c")] != found[trace_id("b")]


def test_the_newest_answer_of_a_person_counts(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        assert store.record_feedback([answer(rater="ann", given_at=10.0)]) == ["created"]
        down = answer("a", "down", rater="ann", given_at=20.0)
        assert store.record_feedback([down]) == ["replaced"]
        assert store.record_feedback([answer("a", "yes", rater="ann", given_at=15.0)]) == [
            "outdated"
        ]
        assert store.record_feedback([answer("a", "good", rater="bob")]) == ["created"]
        assert store.record_feedback([answer("a", "no", rater="ann", name="tone")]) == ["created"]
    assert labels(tmp_path) == ["no", "good", "down"]


def test_an_answer_counts_after_one_that_came_while_the_clock_was_ahead(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, given(answer(rater="ann")), WALL + 400 * 86_400)
        commit(store, given(answer("a", "down", rater="ann", given_at=WALL - 5)))
        assert labels(tmp_path) == ["down"]
        commit(store, given(answer("a", "yes", rater="ann", given_at=WALL - 10)), WALL + 1)
        assert labels(tmp_path) == ["down"]


def test_without_a_rater_the_newest_answer_counts(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        outcomes = store.record_feedback([answer(), answer("a", "down"), answer("b")])
    assert outcomes == ["created", "replaced", "created"]
    assert labels(tmp_path) == ["down"]


def test_an_answer_that_is_sent_again_changes_nothing(tmp_path: Path) -> None:
    first, second = answer(rater="ann"), answer("a", "down", rater="ann")
    with opened(tmp_path) as store:
        store.record_feedback([first, second])
        assert store.record_feedback([first, second]) == ["repeated", "repeated"]
        assert store.record_feedback([replace(first, label="down")]) == ["conflict"]
        assert store.record_feedback([replace(first, tenant="north")]) == ["created"]
    assert labels(tmp_path, tenant="") == ["down"]


def test_a_person_who_revises_forever_takes_little_space(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for number in range(3 * MAX_REPLACED):
            store.record_feedback([answer("a", f"{number}")])
    with rows(tmp_path) as connection:
        [found] = connection.execute("SELECT count(*) FROM feedback").fetchone()
    assert found == MAX_REPLACED + 1
    assert labels(tmp_path) == [f"{3 * MAX_REPLACED - 1}"]


def test_a_damaged_row_is_left_out(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.record_feedback([answer(), answer("b")])
    with rows(tmp_path) as connection:
        connection.execute("UPDATE feedback SET name = 'x' WHERE trace_id = ?", (trace_id("a"),))
        connection.commit()
    assert labels(tmp_path) == []
    assert labels(tmp_path, "b") == ["up"]


def test_a_store_that_is_closed_takes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        pass
    with pytest.raises(StoreError):
        store.record_feedback([answer()])


def found_pairs(folder: Path, since: float = 0.0) -> Pairs:
    with reading(folder) as connection:
        return pairs(connection, RULES, Clock(WALL), since)


TRAJECTORY = CriterionKey("", "trajectory")


def test_answers_are_paired_with_results_whatever_comes_first(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, given(answer("a", "down"), answer("b", "up"), answer("unknown")))
        commit(store, [evaluation("a"), evaluation("b", "passed"), evaluation("c", "passed")])
        commit(store, given(answer("c", "down")))
    found = found_pairs(tmp_path)
    assert found.tables == {TRAJECTORY: Table(both=1, criterion_only=1, neither=1)}
    assert found.answers == {"paired": 3, "waiting": 1}


def test_a_revision_of_either_side_replaces_its_pair(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, [evaluation("a")])
        commit(store, given(answer("a", "up")))
        assert found_pairs(tmp_path).tables == {TRAJECTORY: Table(people_only=1)}
        commit(store, [evaluation("a", "passed", revision=1)])
        assert found_pairs(tmp_path).tables == {TRAJECTORY: Table(both=1)}
        commit(store, given(answer("a", "down")))
    assert found_pairs(tmp_path).tables == {TRAJECTORY: Table(criterion_only=1)}


def two_runs() -> list[PublishedEvent]:
    """Two runs of one trace."""
    other = evaluation("b")
    moved = replace(other.invocation, trace_id=trace_id("a"))
    return [evaluation("a"), replace(other, invocation=moved)]


def test_an_answer_about_a_trace_with_several_runs_is_about_none(tmp_path: Path) -> None:
    whole = replace(answer("a", "down"), span_id="")
    inner = replace(answer("a", "down", rater="x"), span_id="f" * 16)
    with opened(tmp_path) as store:
        commit(store, [evaluation("a")])
        commit(store, given(whole, inner))
        assert found_pairs(tmp_path).tables == {TRAJECTORY: Table(neither=1)}
        commit(store, two_runs())
    found = found_pairs(tmp_path)
    assert found.tables == {}
    assert found.answers == {"ambiguous": 2}


def test_people_are_counted_for_each_run_of_some_traces(tmp_path: Path) -> None:
    whole = replace(answer("a", "down"), span_id="")
    b = answer("a", "up", rater="x")
    with opened(tmp_path) as store:
        commit(store, [*two_runs(), evaluation("c"), evaluation("n", tenant="north")])
        commit(store, given(whole, replace(b, span_id=span_id("b")), answer("c", "down")))
        commit(store, given(answer("c", "up", rater="x"), answer("c", "no", name="trajectory")))
    with reading(tmp_path) as connection:
        asked = [one for name in "acn" for one in of_trace(connection, trace_id(name))]
        found = opinions(connection, asked, RULES)
        assert opinions(connection, [], RULES) == {}
    assert found == {
        ("", trace_id("a"), span_id("b")): Opinion(good=1),
        ("", trace_id("c"), span_id("c")): Opinion(good=1, bad=1),
    }


def test_only_the_window_counts_and_tenants_are_apart(tmp_path: Path) -> None:
    north = replace(answer("n", "down"), tenant="north")
    with opened(tmp_path) as store:
        commit(store, [evaluation("a"), evaluation("b"), evaluation("n", tenant="north")], WALL)
        commit(store, given(answer("a", "down")), WALL)
        commit(store, given(answer("b", "down"), north, replace(north, tenant="")), WALL + 100)
    found = found_pairs(tmp_path, WALL + 50)
    assert found.tables == {
        TRAJECTORY: Table(neither=1),
        CriterionKey("north", "trajectory"): Table(neither=1),
    }
    assert found.answers == {"paired": 2, "waiting": 1}


def test_old_answers_are_removed_and_counted(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path, Retention(results_s=3600.0))
    store.open()
    store.start(lambda _: True, lambda: 0.0)
    with closing(store):
        store.record_feedback([answer(), answer("b")])
        with rows(tmp_path) as connection:
            connection.execute(
                "UPDATE feedback SET at = at - 7200 WHERE trace_id = ?", (trace_id("a"),)
            )
            connection.commit()
        assert store.commit(Progress(0, 0.0, time.time()))
        assert store.usage().feedback_removed == {"age": 1, "space": 0}
    assert labels(tmp_path) == []
    assert labels(tmp_path, "b") == ["up"]


def test_a_tenant_with_many_answers_pushes_out_its_own_only(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.record_feedback([replace(answer("n"), tenant="north")])
        store.record_feedback([answer(f"{number}") for number in range(9)])
        with rows(tmp_path) as connection:
            assert feedback.drop_excess(connection, 4, 100) == 6
            connection.commit()
            kept = connection.execute("SELECT tenant FROM feedback ORDER BY id").fetchall()
    assert kept == [("north",), ("",), ("",), ("",)]


@pytest.mark.parametrize("how", SELECTIONS)
def test_a_purge_removes_what_was_said_of_a_run(tmp_path: Path, how: str) -> None:
    with opened(tmp_path) as store:
        for events, wall in content():
            commit(store, events, wall)
        assert store.purge(SELECTIONS[how]).unfinished is None
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("*") if path.is_file())
    assert b"secret of a" not in kept
    assert b"secret of b" in kept
    assert b"talk a" not in kept
    with rows(tmp_path) as connection:
        found = connection.execute("SELECT conversation FROM feedback ORDER BY id").fetchall()
    assert found == [("",), ("talk b",)]


def test_a_purge_finds_a_trace_of_which_only_feedback_is_stored(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, given(answer()))
        store.purge(Selection(trace_id=trace_id("a")))
    assert labels(tmp_path) == []


@pytest.mark.parametrize("how", SELECTIONS)
def test_nothing_more_is_recorded_about_a_purged_trace(tmp_path: Path, how: str) -> None:
    with opened(tmp_path) as store:
        for events, wall in content():
            commit(store, events, wall)
        store.purge(SELECTIONS[how])
        again = [answer("a"), replace(answer("a"), tenant="north"), answer("c")]
        assert store.record_feedback(again) == ["purged", "created", "created"]


def test_a_purge_of_a_tenant_removes_all_that_was_said_there(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, given(*of_tenants("blue", "green")))
        assert store.purge(Selection(tenant="blue")).unfinished is None
        with rows(tmp_path) as connection:
            found = connection.execute("SELECT tenant FROM feedback").fetchall()
        assert store.record_feedback(of_tenants("blue")) == ["purged", "created"]
    assert found == [("green",)] * 2


def test_nothing_is_recorded_about_traces_that_scorers_have_purged(tmp_path: Path) -> None:
    """Only these had them, so the results of the gauge do not name them."""
    with opened(tmp_path) as store:
        store.purge(Selection(scenario="refund"), frozenset({("", trace_id("a"))}))
        assert store.record_feedback([answer("a"), answer("b")]) == ["purged", "created"]


def test_nothing_is_recorded_about_a_trace_while_it_is_purged(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, [evaluation("a")])
        purging = Purging(tmp_path, store._database, store._writer.call, 0.0)
        store._purging = purging
        purging.begin(Selection(trace_id=trace_id("a")), None)
        outcomes = [store.record_feedback([answer("a"), answer("b")])]
        purging.remove()
        outcomes.append(store.record_feedback([answer("a"), answer("c")]))
    assert outcomes == [["purged", "created"]] * 2


def test_purged_traces_are_remembered_within_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathgauge.collector.store.sqlite.store.MAX_PURGED", 2)
    with opened(tmp_path) as store:
        for name in "abc":
            store.purge(Selection(scenario="refund"), frozenset({("", trace_id(name))}))
        assert store.record_feedback([answer(name) for name in "abc"]) == [
            "created",
            "purged",
            "purged",
        ]


def test_scorers_tell_the_gauge() -> None:
    one = answer(scale=Scale(1, 5), rating=2.0, comment="c", rater="ann", given_at=7.5)
    event = FeedbackGiven(one)
    found = decode(encode(Publication(WALL, [event])), Evaluator(()), ReferenceSet([]))
    assert found.events == [event]

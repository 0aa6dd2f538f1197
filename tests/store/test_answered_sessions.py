"""Answers about conversations are paired with the results of their sessions."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.feedback.kappa import Table
from pathgauge.collector.core.feedback.pairs import CriterionKey, Pairs
from pathgauge.collector.core.feedback.verdict import VerdictRules
from pathgauge.collector.core.pipeline_events import Judged, Withdrawn
from pathgauge.collector.store import Selection
from pathgauge.collector.store.queries.answered_sessions import Clock
from pathgauge.collector.store.queries.feedback import about_run, pairs
from pathgauge.collector.store.queries.reading import reading
from pathgauge.collector.store.queries.results import of_trace
from pathgauge.collector.store.schema import MIGRATIONS, migrate
from pathgauge.collector.store.sqlite import files
from support.answered import about_talk, answer, answered_talks, given, paired_talks
from support.evaluated import commit, evaluation, opened
from support.sessions import BOUNDS, session

TRAJECTORY = CriterionKey("", "trajectory")
NOW = 10_000.0


def found_pairs(folder: Path, now: float = NOW) -> Pairs:
    with reading(folder) as connection:
        return pairs(connection, VerdictRules(), Clock(now, BOUNDS), 0.0)


def said_of(folder: Path, result: Evaluation) -> list[str | None]:
    with reading(folder) as connection:
        [found] = of_trace(connection, result.key[1])
        return [one.answer.label for one in about_run(connection, found, Clock(NOW, BOUNDS))]


def test_answers_are_paired_with_the_session_whatever_comes_first(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        for events in answered_talks():
            commit(store, events)
    assert found_pairs(tmp_path) == paired_talks()


def test_an_answer_waits_until_its_session_has_ended(tmp_path: Path) -> None:
    turn = evaluation("a")
    talking = replace(turn, invocation=replace(turn.invocation, conversation_id="talk"))
    with opened(tmp_path) as store:
        commit(store, [talking, *given(about_talk("talk", "up", at=2.0))])
        waiting = found_pairs(tmp_path)
        assert (waiting.tables, waiting.answers) == ({}, {"waiting": 1})
        commit(store, [session("a", "talk", "failed")])
    found = found_pairs(tmp_path)
    assert found.tables == {TRAJECTORY: Table(people_only=1)}
    assert found.answers == {"paired": 1}


def test_a_reopened_session_is_counted_once_with_its_newest_result(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, [session("a", "talk", "failed"), *given(about_talk("talk", "up", at=2.0))])
        commit(store, [session("a", "talk", "passed", revision=1)])
    assert found_pairs(tmp_path).tables == {TRAJECTORY: Table(both=1)}


def test_of_several_sessions_the_last_one_that_had_begun_counts(tmp_path: Path) -> None:
    first, second = session("a", "talk", at=1_000.0), session("b", "talk", "failed", at=3_000.0)
    with opened(tmp_path) as store:
        commit(store, [first, *given(about_talk("talk", "up", at=1_001.0))])
        commit(store, given(about_talk("talk", "down", at=3_001.0, rater="ann")))
        # The later session has no result yet, so nothing says that the earlier one is meant.
        assert found_pairs(tmp_path, 3_002.0).answers == {"paired": 1, "waiting": 1}
        assert found_pairs(tmp_path, 3_002.0).tables == {TRAJECTORY: Table(both=1)}
        commit(store, [second])
    found = found_pairs(tmp_path, 3_002.0)
    assert found.tables == {TRAJECTORY: Table(both=1, neither=1)}
    assert (said_of(tmp_path, first), said_of(tmp_path, second)) == (["up"], ["down"])


def test_after_a_session_at_a_limit_an_answer_waits_for_the_next_one(tmp_path: Path) -> None:
    full = session("a", "talk", at=1_000.0, ended_by="turns")
    with opened(tmp_path) as store:
        commit(store, [full, *given(about_talk("talk", "down", at=1_003.0))])
        assert found_pairs(tmp_path, 1_004.0).answers == {"waiting": 1}
        assert found_pairs(tmp_path).answers == {"paired": 1}


def test_results_of_judges_and_revisions_in_any_order_leave_the_session_to_be_found(
    tmp_path: Path,
) -> None:
    newest = session("a", "talk", "failed", revision=1)
    judge = replace(newest.results[0].criterion, name="judge", judge="m@1")
    judged = replace(newest, results=(replace(newest.results[0], criterion=judge),))
    with opened(tmp_path) as store:
        commit(store, [newest, *given(about_talk("talk", "up", at=2.0))])
        commit(store, [session("a", "talk", "passed")])
        assert found_pairs(tmp_path).tables == {TRAJECTORY: Table(people_only=1)}
        commit(store, [Judged(judged, first=True)])
    assert found_pairs(tmp_path).tables == {
        TRAJECTORY: Table(people_only=1),
        CriterionKey("", "judge", "m@1"): Table(people_only=1),
    }


def test_what_was_said_on_the_page_of_a_session_is_about_the_same_case(tmp_path: Path) -> None:
    result = session("a", "talk", "failed", at=1.0)
    _, trace_id, span_id = result.key
    clicked = replace(answer("a", "down", rater="bob"), trace_id=trace_id, span_id=span_id)
    with opened(tmp_path) as store:
        commit(store, [result, *given(about_talk("talk", "down", at=2.0), clicked)])
    found = found_pairs(tmp_path)
    assert found.tables == {TRAJECTORY: Table(neither=1)}
    assert found.answers == {"paired": 2}
    assert said_of(tmp_path, result) == ["down", "down"]


def test_an_answer_to_a_question_about_a_criterion_is_about_that_one(tmp_path: Path) -> None:
    other = about_talk("talk", "down", at=2.0, name="trajectory", rater="ann")
    with opened(tmp_path) as store:
        commit(store, [session("a", "talk"), *given(about_talk("talk", "up", at=2.0), other)])
    assert found_pairs(tmp_path).tables == {}  # a tie


def test_a_session_that_lost_its_turns_has_no_pair(tmp_path: Path) -> None:
    result = session("a", "talk")
    with opened(tmp_path) as store:
        commit(store, [result, *given(about_talk("talk", "up", at=2.0))])
        commit(store, [Withdrawn(result.key)])
    assert found_pairs(tmp_path).answers == {"waiting": 1}


def test_a_purge_of_a_turn_removes_both_sides(tmp_path: Path) -> None:
    turn = evaluation("a")
    talking = replace(turn, invocation=replace(turn.invocation, conversation_id="talk"))
    with opened(tmp_path) as store:
        said = given(about_talk("talk", "up", at=2.0))
        commit(store, [talking, session("a", "talk"), *said])
        store.purge(Selection(trace_id=turn.key[1]))
    assert found_pairs(tmp_path) == Pairs()


def test_sessions_of_an_earlier_version_are_found(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, [session("a", "talk"), *given(about_talk("talk", "up", at=2.0))])
    with closing(sqlite3.connect(tmp_path / files.DATABASE)) as connection:
        _undo_last_migration(connection)
        migrate(connection)
    assert found_pairs(tmp_path).tables == {TRAJECTORY: Table(both=1)}


def _undo_last_migration(connection: sqlite3.Connection) -> None:
    connection.executescript(
        "DROP INDEX results_of_conversation; ALTER TABLE results DROP COLUMN conversation;"
        f" PRAGMA user_version = {len(MIGRATIONS) - 1}"
    )

"""What is done about an answer does not grow with the results and answers that are stored."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.feedback.verdict import VerdictRules
from pathgauge.collector.store.feedback import record
from pathgauge.collector.store.queries.answered_sessions import Clock
from pathgauge.collector.store.queries.feedback import Subject, about, opinions, pairs
from pathgauge.collector.store.queries.results import of_trace
from pathgauge.collector.store.schema import migrate
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.testing import trace_id
from support.answered import about_talk, answer, given
from support.evaluated import commit, evaluation, opened
from support.sessions import BOUNDS, session

RULES = VerdictRules()
ASKED = (answer("run 1", "up"), about_talk("talk 1", "up", at=2.0))
Work = Callable[[sqlite3.Connection], object]


def filled(folder: Path, runs: int) -> Path:
    """A store with so many runs and sessions of one tenant, of which two are answered."""
    with opened(folder) as store:
        commit(store, [evaluation(f"run {number}") for number in range(runs)])
        commit(store, [session(f"s {n}", f"talk {n}") for n in range(runs)])
        commit(store, given(*ASKED))
    return folder / files.DATABASE


def steps(path: Path, work: Work) -> int:
    """How much SQLite does, in tens of instructions of its machine."""
    count = 0

    def tick() -> int:
        nonlocal count
        count += 1
        return 0

    with closing(sqlite3.connect(path)) as connection:
        connection.set_progress_handler(tick, 10)
        work(connection)
    return count


@pytest.mark.slow
@pytest.mark.parametrize(
    "work",
    [
        lambda c: pairs(c, RULES, Clock(10.0, BOUNDS), 0.0),
        lambda c: opinions(c, of_trace(c, trace_id("run 1")), RULES),
    ],
    ids=["pairs", "opinions"],
)
def test_pairs_are_found_by_an_index(tmp_path: Path, work: Work) -> None:
    few, many = (steps(filled(tmp_path / f"{runs}", runs), work) for runs in (20, 400))
    assert many < 2 * few


@pytest.mark.parametrize("others", ["runs", "conversations"])
def test_an_answer_is_stored_and_found_by_an_index(tmp_path: Path, others: str) -> None:
    def made(number: int) -> Answer:
        if others == "runs":
            return answer(f"run {number}")
        return about_talk(f"talk {number}", at=1.0)

    def work(connection: sqlite3.Connection) -> None:
        assert record(connection, [made(0), made(-1)], 10.0) == ["repeated", "created"]
        assert len(about(connection, Subject(conversation_ids=("talk 0", "talk zero")), "")) <= 1
        assert len(about(connection, Subject(trace_id("run 0")))) <= 1

    def stored(answers: Sequence[Answer]) -> Path:
        path = tmp_path / f"{len(answers)}.db"
        with closing(sqlite3.connect(path)) as connection:
            migrate(connection)
            record(connection, answers, 10.0)
            connection.commit()
        return path

    few, many = (steps(stored([made(n) for n in range(count)]), work) for count in (20, 400))
    assert many < 2 * few

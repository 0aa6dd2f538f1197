"""Evaluations of one invocation come from two scorers in any order, at once or one by one."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from itertools import permutations
from pathlib import Path
from typing import Literal

import pytest

from pathgauge.collector.core.pipeline_events import Judged, PublishedEvent, Withdrawn
from pathgauge.collector.store.evidence.table import find
from pathgauge.collector.store.recent_results import evaluations_since
from pathgauge.collector.store.sqlite.files import DATABASE
from support.evaluated import WALL, commit, evaluation, opened

Outcome = Literal["passed", "failed", "stopped"]
OUTCOMES: dict[int, Outcome] = {0: "passed", 1: "failed", 16: "stopped"}
FAILED = evaluation("one", "failed")


def revision(number: int) -> PublishedEvent:
    return evaluation("one", OUTCOMES[number], revision=number, agent=f"agent {number}")


def written(folder: Path, *commits: Sequence[PublishedEvent]) -> list[tuple[int, str]]:
    """Revision and verdict of each row after these commits."""
    with opened(folder) as store:
        for number, events in enumerate(commits):
            commit(store, events, WALL + number)
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        rows = "SELECT revision, verdict FROM results ORDER BY revision"
        return connection.execute(rows).fetchall()


@pytest.mark.parametrize("order", [*permutations(OUTCOMES)])
def test_the_newest_revision_of_a_transaction_is_kept(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    assert written(tmp_path, list(map(revision, order))) == [(0, ""), (16, "failed")]


@pytest.mark.parametrize("order", [*permutations(OUTCOMES)])
def test_the_newest_revision_of_several_transactions_is_kept(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    commits = [[revision(number)] for number in order]
    assert written(tmp_path, *commits) == [(0, ""), (16, "failed")]
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        [(_, recent)] = evaluations_since(connection, WALL, lambda *row: None, lambda *names: True)
        assert recent.agent == "agent 16"
        evidence = find(connection, FAILED.key)
    assert evidence is not None
    assert evidence.invocation.agent == "agent 16"


def test_what_judges_say_of_an_earlier_revision_changes_nothing(tmp_path: Path) -> None:
    judged = Judged(replace(FAILED, revision=0), first=True)
    expected = [(0, ""), (16, "failed")]
    assert written(tmp_path / "later", [revision(0)], [revision(16)], [judged]) == expected
    assert written(tmp_path / "at once", [revision(0), judged, revision(16)]) == expected


def test_an_evaluation_that_was_withdrawn_begins_anew_with_the_first_revision(
    tmp_path: Path,
) -> None:
    events = revision(0), revision(16), Withdrawn(FAILED.key), revision(0)
    assert written(tmp_path / "at once", events)[0] == (0, "passed")
    found = written(tmp_path / "later", *([event] for event in events))
    assert found == [(0, "passed"), (16, "")]

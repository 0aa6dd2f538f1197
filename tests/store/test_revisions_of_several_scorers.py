"""Evaluations of one invocation come from two scorers in any order."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from pathgauge.collector.store import Progress
from pathgauge.collector.store.files import DATABASE
from pathgauge.collector.store.sqlite import SqliteStore
from support.evaluated import evaluation


@pytest.mark.parametrize("order", [*permutations((0, 1, 16))])
def test_the_newest_revision_of_a_transaction_is_kept(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    store = SqliteStore(tmp_path, part="gauge")
    store.open()
    store.start(lambda delivery: False, lambda: 0.0)
    outcomes = [replace(evaluation("one"), revision=revision) for revision in order]
    assert store.commit(Progress(0, 0.0, 0.0, outcomes))
    store.close()
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        found = connection.execute("SELECT revision FROM results ORDER BY revision").fetchall()
    assert found == [(0,), (16,)]

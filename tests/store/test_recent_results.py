"""After a restart, results that no window wants are passed over, and nothing else is."""

from __future__ import annotations

import random
import sqlite3
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from pathgauge.collector.core.evaluations.recent import Wants
from pathgauge.collector.store import recent_results
from pathgauge.collector.store.recent_results import evaluations_since
from pathgauge.collector.store.sqlite.files import DATABASE
from support.evaluated import WALL, commit, evaluation, opened

Names = tuple[str, str, str]
Read = Callable[..., list[tuple[int, str, float]]]


def first(size: int, seen: Counter[Names]) -> Wants:
    """Windows of so many results. All that they are asked about is counted."""

    def wants(*names: str) -> bool:
        tenant, agent, scenario = names
        seen[tenant, agent, scenario] += 1
        return seen[tenant, agent, scenario] <= size

    return wants


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Read:
    """The keys, agents and times of what is found, with these limits."""

    def read(
        wants: Wants, since: float = WALL, *, at_once: int, left_out: int
    ) -> list[tuple[int, str, float]]:
        monkeypatch.setattr(recent_results, "SLICE", at_once)
        monkeypatch.setattr(recent_results, "MAX_UNWANTED", left_out)
        with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
            found = evaluations_since(connection, since, lambda *row: None, wants)
            return [(row, recent.agent, recent.at) for row, recent in found]

    return read


def test_full_windows_are_asked_about_few_further_results(tmp_path: Path, read: Read) -> None:
    with opened(tmp_path) as store:
        commit(store, [evaluation(f"{number}") for number in range(100)])
    seen: Counter[Names] = Counter()
    assert len(read(first(3, seen), at_once=5, left_out=1)) == 3
    assert seen.total() == 5


@pytest.mark.parametrize("seed", range(10))
def test_what_is_found_does_not_depend_on_how_much_is_read_at_once(
    tmp_path: Path, read: Read, seed: int
) -> None:
    chosen = random.Random(seed)
    with opened(tmp_path) as store:
        for number in range(60):
            new = evaluation(f"{number}", agent=chosen.choice("aaab"), tenant=chosen.choice("TTU"))
            late = evaluation(
                f"{chosen.randrange(number + 1)}",
                agent=chosen.choice("ab"),
                tenant=chosen.choice("TTU"),
                revision=number + 1,
            )
            commit(store, [new] if chosen.random() < 0.7 else [new, late], WALL + number)
    since = WALL + chosen.choice([0, 10])
    expected = read(first(4, Counter()), since, at_once=1_000, left_out=0)
    assert len(expected) > 8
    assert min(at for _, _, at in expected) >= since
    for at_once in (2, 7, 30):
        assert read(first(4, Counter()), since, at_once=at_once, left_out=9) == expected

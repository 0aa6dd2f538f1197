"""Which misses an incident is made of."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.drift.tallies import (
    FADE_AFTER,
    MAX_MISSES,
    MAX_ROWS,
    OTHER,
    Row,
    Tallies,
)
from pathgauge.collector.core.evidence.miss import Miss

SEARCH = Miss("missing", "search")
CITY = Miss("argument", "book", "city")


def add(tallies: Tallies, count: int, *misses: Miss, loss: float = 1.0) -> None:
    for _ in range(count):
        tallies.add(misses, loss if misses else 0.0)


def test_misses_are_ranked_by_their_share_of_the_additional_loss() -> None:
    tallies = Tallies()
    add(tallies, 90)
    add(tallies, 10, SEARCH)
    add(tallies, 10, SEARCH)
    add(tallies, 30, CITY)
    add(tallies, 60)
    tallies.begin(100)
    assert tallies.changes() == [Row(CITY, 0.3, 0.0, 1.0)]
    add(tallies, 100, SEARCH, CITY)
    search, city = sorted(tallies.changes(), key=lambda row: row.miss != SEARCH)
    assert (search.rate, search.rate_before) == (0.55, 0.1)
    assert (city.rate, city.rate_before) == (0.65, 0.0)
    assert search.share + city.share == pytest.approx(1.0)
    assert city.share > search.share


def test_the_loss_of_an_evaluation_is_divided_among_its_misses() -> None:
    tallies = Tallies()
    add(tallies, 1, SEARCH, CITY, loss=0.5)
    add(tallies, 1, SEARCH, loss=0.25)
    tallies.begin(2)
    rows = tallies.changes()
    assert [row.miss for row in rows] == [SEARCH, CITY]
    assert [row.share for row in rows] == pytest.approx([2 / 3, 1 / 3])


def test_there_are_no_rows_without_an_incident() -> None:
    tallies = Tallies()
    add(tallies, 10, SEARCH)
    assert tallies.changes() == []
    tallies.begin(5)
    tallies.end()
    assert tallies.changes() == []


def test_the_misses_of_an_incident_do_not_count_as_before_the_next_one() -> None:
    tallies = Tallies()
    add(tallies, 100)
    tallies.begin(0)
    add(tallies, 100, SEARCH)
    tallies.end()
    add(tallies, 100)
    add(tallies, 10, SEARCH)
    tallies.begin(10)
    assert tallies.changes() == [Row(SEARCH, 1.0, 0.0, 1.0)]


def test_an_incident_with_more_misses_than_are_kept_is_about_the_latest() -> None:
    tallies = Tallies()
    add(tallies, 500, SEARCH)
    add(tallies, 100, CITY)
    tallies.begin(550)
    assert tallies.changes() == [Row(CITY, 1.0, 0.0, 1.0)]


def test_at_most_ten_rows_are_shown() -> None:
    tallies = Tallies()
    for number in range(20):
        add(tallies, 1, Miss("unexpected", f"tool{number:02}"))
    tallies.begin(20)
    rows = tallies.changes()
    assert [row.miss.tool for row in rows] == [f"tool{number:02}" for number in range(MAX_ROWS)]
    assert sum(row.share for row in rows) == pytest.approx(0.5)


def test_an_evaluation_with_many_misses_does_not_hide_the_others() -> None:
    tallies = Tallies()
    many = [Miss("unexpected", f"tool{number}") for number in range(40)]
    add(tallies, 20, SEARCH)
    add(tallies, 5, *many)
    tallies.begin(5)
    rows = tallies.changes()
    assert [row.miss for row in rows[:2]] == [OTHER, many[0]]
    assert [row.share for row in rows[:2]] == pytest.approx([3 / 4, 1 / 40])


def test_rare_misses_are_other() -> None:
    tallies = Tallies()
    tallies.begin(0)
    add(tallies, 50, SEARCH)
    for number in range(1000):
        add(tallies, 1, Miss("unexpected", f"tool{number}"))
    rows = tallies.changes()
    assert (rows[0].miss, rows[1].miss) == (OTHER, SEARCH)
    assert rows[0].rate > 0.85
    assert len(tallies.state()[4][1]) <= MAX_MISSES + 1


def test_what_was_long_ago_fades() -> None:
    tallies = Tallies()
    add(tallies, FADE_AFTER, SEARCH)
    for _ in range(4):
        add(tallies, FADE_AFTER - 100)
        add(tallies, 100, CITY)
    tallies.begin(0)
    add(tallies, 10, SEARCH)
    (row,) = tallies.changes()
    assert row.rate_before < 0.1


evaluations = st.lists(
    st.tuples(
        st.lists(st.integers(0, 90).map(lambda number: Miss("missing", str(number))), max_size=4),
        st.floats(0, 1),
        st.sampled_from(["", "", "", "begin", "end"]),
    ),
    max_size=60,
)


def play(tallies: Tallies, steps: list[tuple[list[Miss], float, str]]) -> None:
    for misses, loss, event in steps:
        tallies.add(misses, loss)
        if event == "begin":
            tallies.begin(3)
        elif event == "end":
            tallies.end()


@given(evaluations, evaluations)
def test_restored_tallies_continue_exactly(
    before: list[tuple[list[Miss], float, str]], after: list[tuple[list[Miss], float, str]]
) -> None:
    tallies = Tallies()
    play(tallies, before)
    restored = Tallies.restored(json.loads(json.dumps(tallies.state())))
    play(tallies, after)
    play(restored, after)
    assert restored.state() == tallies.state()
    assert restored.changes() == tallies.changes()
    assert sum(row.share for row in tallies.changes()) <= 1 + 1e-9


def test_an_incident_is_compared_with_the_misses_of_other_evaluations() -> None:
    other, tallies = Tallies(), Tallies()
    add(other, 30, SEARCH)
    add(other, 30)
    add(tallies, 10, SEARCH, CITY, loss=2)
    tallies.begin(10)
    rows = tallies.changes(other.sums())
    assert rows == [Row(CITY, 1.0, 0.0, 1 / 1.5), Row(SEARCH, 1.0, 0.5, 0.5 / 1.5)]

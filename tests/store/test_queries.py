"""Results are found newest first, by what people filter by, and grouped by what failed."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from pathgauge.collector.core.evaluations.label_values import MAX_NAME_BYTES, label_value
from pathgauge.collector.core.pipeline_events import Withdrawn
from pathgauge.collector.store import Selection, StoreError
from pathgauge.collector.store.queries import results, rows
from pathgauge.collector.store.queries.clusters import Clusters, clusters
from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.queries.reading import QueryTooSlowError, reading
from pathgauge.collector.store.queries.results import Page, find
from pathgauge.collector.store.queries.runs import last_runs
from pathgauge.collector.store.queries.stored_result import StoredResult
from support.evaluated import WALL, commit, evaluation, opened

RUNS = {
    "a": evaluation("a"),
    "b": evaluation("b", "passed"),
    "c": evaluation("c", "stopped", scenario="other", version="2"),
    "d": evaluation("d", agent="billing", tenant="north"),
    "e": evaluation("e", "passed", matched=False),
}
"""One a second, in this order."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store")
    with opened(folder) as store:
        for number, one in enumerate(RUNS.values()):
            commit(store, [one], WALL + number)
    return folder


def names(page: Page) -> list[str]:
    by_trace = {one.invocation.trace_id: name for name, one in RUNS.items()}
    return [by_trace[one.trace_id] for one in page.results]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Filter(), "edcba"),
        (Filter(tenant=""), "ecba"),
        (Filter(tenant="north"), "d"),
        (Filter(agent="billing"), "d"),
        (Filter(scenario="other"), "c"),
        (Filter(tenant="", agent="support", scenario="parcel"), "eba"),
        (Filter(verdict="failed"), "dca"),
        (Filter(verdict="passed"), "b"),
        (Filter(verdict="not_evaluated"), "e"),
        (Filter(verdict="failed", agent="support"), "ca"),
        (Filter(criterion="trajectory"), "dcba"),
        (Filter(criterion="trajectory", verdict="failed"), "dca"),
        (Filter(criterion="unknown"), ""),
        (Filter(version="2"), "c"),
        (Filter(reason="unknown_scenario"), "e"),
        (Filter(reason="no_reference"), ""),
        (Filter(flag="truncated"), ""),
        (Filter(category="wrong_argument"), "da"),
        (Filter(since=WALL + 2), "edc"),
        (Filter(until=WALL + 2), "ba"),
        (Filter(since=WALL + 1, until=WALL + 3), "cb"),
        (Filter(verdict="failed", until=WALL + 3), "ca"),
        (Filter(trace_id=RUNS["b"].invocation.trace_id), "b"),
    ],
)
def test_results_are_found_by_what_people_filter_by(
    folder: Path, wanted: Filter, expected: str
) -> None:
    with reading(folder) as connection:
        assert "".join(names(find(connection, wanted))) == expected


def test_a_withdrawn_result_that_is_published_again_is_the_newest(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as store:
        commit(store, [RUNS["a"], RUNS["b"]])
        commit(store, [Withdrawn(RUNS["a"].key)])
        commit(store, [RUNS["a"]])
        with reading(tmp_path / "store") as connection:
            assert names(find(connection, Filter())) == ["a", "b"]


def test_every_failure_is_found_by_its_category_and_its_signature(folder: Path) -> None:
    with reading(folder) as connection:
        for failed in find(connection, Filter(verdict="failed")).results:
            assert failed.category is not None
            by_category = find(connection, Filter(category=failed.category)).results
            by_signature = find(connection, Filter(signature=failed.signature)).results
            assert failed in by_category
            assert failed in by_signature


def test_pages_follow_each_other_without_gap_or_overlap(folder: Path) -> None:
    found, cursor = [], None
    with reading(folder) as connection:
        while True:
            page = find(connection, Filter(), 2, cursor)
            found += names(page)
            assert len(page.results) <= 2
            if (cursor := page.next) is None:
                break
    assert found == ["e", "d", "c", "b", "a"]


def test_a_search_that_takes_long_continues_with_the_next_page(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rows, "FIRST_WINDOW", 1)
    ticks = count()
    clock: Callable[[], float] = lambda: float(next(ticks))  # noqa: E731
    with reading(folder) as connection:
        first = find(connection, Filter(version="2"), clock=clock)
        assert first == Page([], 5, WALL + 4)
        found, cursor = [], first.next
        while cursor is not None:
            page = find(connection, Filter(version="2"), before=cursor, clock=clock)
            found += names(page)
            cursor = page.next
    assert found == ["c"]


def test_a_result_says_what_its_row_holds(folder: Path) -> None:
    with reading(folder) as connection:
        [found] = find(connection, Filter(version="2")).results
    assert found == StoredResult(
        row=3,
        tenant="",
        trace_id=RUNS["c"].invocation.trace_id,
        span_id=RUNS["c"].invocation.span_id,
        at=WALL + 2,
        agent="support",
        agent_version="2",
        scenario_id="other",
        verdict="failed",
        category=found.category,
        signature=found.signature,
        reference_version="v1",
        unmatched=None,
        flags=(),
        duration_s=2.0,
        criteria=found.criteria,
    )
    [criterion] = found.criteria
    assert (criterion.name, criterion.verdict, criterion.value, criterion.threshold) == (
        "trajectory",
        "failed",
        0.0,
        1.0,
    )


def test_only_the_newest_revision_is_found_and_nothing_withdrawn(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, [evaluation("a"), evaluation("b")])
        commit(store, [evaluation("a", "passed", revision=1), Withdrawn(evaluation("b").key)])
        with reading(tmp_path) as connection:
            [found] = find(connection, Filter()).results
    assert (found.trace_id, found.revision, found.verdict) == (
        evaluation("a").invocation.trace_id,
        1,
        "passed",
    )


def test_failures_are_grouped_by_what_failed(tmp_path: Path) -> None:
    runs = [*(evaluation(f"a{n}") for n in range(3)), evaluation("b", "stopped")]
    with opened(tmp_path) as store:
        for number, one in enumerate([*runs, evaluation("c", "passed")]):
            commit(store, [one], WALL + number)
        found = grouped(tmp_path, Filter())
        [most, other] = found.clusters
        assert (most.failures, most.first_at, most.last_at) == (3, WALL, WALL + 2)
        assert most.trace_id == runs[2].invocation.trace_id
        assert (other.failures, other.trace_id) == (1, runs[3].invocation.trace_id)
        assert (found.failures, found.complete) == (4, True)
        assert most.signature != other.signature
        assert [one.failures for one in grouped(tmp_path, Filter(since=WALL + 1)).clusters] == [
            2,
            1,
        ]
        assert grouped(tmp_path, Filter(agent="unknown")).clusters == []


def grouped(folder: Path, wanted: Filter) -> Clusters:
    with reading(folder) as connection:
        return clusters(connection, wanted)


def test_the_last_run_of_each_scenario_is_known(folder: Path) -> None:
    with reading(folder) as connection:
        found = last_runs(connection, None, ["parcel", "other", "unused"])
    assert found.last == {"parcel": WALL + 4, "other": WALL + 2}
    assert (found.matched, found.invocations) == (4, 5)


def test_a_damaged_result_is_not_shown(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, [evaluation("a"), evaluation("b")])
    with closing(sqlite3.connect(tmp_path / "pathgauge.db")) as connection, connection:
        connection.execute("UPDATE results SET body = replace(body, 'genai', 'other') WHERE id = 1")
    with reading(tmp_path) as connection:
        assert [one.row for one in find(connection, Filter()).results] == [2]


def test_a_folder_without_a_store_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="found no store"), reading(tmp_path):
        pass


@pytest.mark.parametrize(("version", "writer"), [(1, "an earlier"), (99, "a later")])
def test_a_store_of_another_version_is_an_error(tmp_path: Path, version: int, writer: str) -> None:
    with closing(sqlite3.connect(tmp_path / "pathgauge.db")) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(StoreError, match=f"{writer} version"), reading(tmp_path):
        pass


def test_a_statement_that_takes_too_long_is_interrupted(folder: Path) -> None:
    with pytest.raises(QueryTooSlowError), reading(folder, max_seconds=0.05) as connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n"
        ).fetchone()


def test_a_query_does_not_stop_the_collector_from_writing(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        commit(store, [evaluation("a")])
        with reading(tmp_path) as connection:
            before = find(connection, Filter())
            began = time.monotonic()
            commit(store, [evaluation("b")])
            assert time.monotonic() - began < 1.0
            assert find(connection, Filter()) == before
        with reading(tmp_path) as connection:
            assert len(find(connection, Filter()).results) == 2


NOISE = [evaluation(f"noise {n}", tenant="loud", scenario="loud") for n in range(300)]


@pytest.fixture(scope="module")
def noisy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which another tenant and another scenario have failed much more often since."""
    folder = tmp_path_factory.mktemp("noisy")
    with opened(folder) as store:
        commit(store, [evaluation("a", tenant="quiet"), evaluation("b", "passed", tenant="quiet")])
        commit(store, NOISE)
        loud = [replace(one, invocation=replace(one.invocation, tenant="quiet")) for one in NOISE]
        commit(store, loud)
    return folder


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(tenant="quiet", scenario="parcel"),
        Filter(tenant="quiet", scenario="parcel", verdict="failed"),
        Filter(scenario="parcel"),
        Filter(scenario="parcel", agent="support", verdict="failed"),
    ],
)
def test_what_others_do_more_often_hides_nothing(
    noisy: Path, wanted: Filter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "ROWS_BETWEEN_LOOKS", 1)
    ticks = count()
    with reading(noisy) as connection:
        page = find(connection, wanted, limit=1, clock=lambda: float(next(ticks)) / 1000)
        assert [one.scenario_id for one in page.results] == ["parcel"]
        assert last_runs(connection, "quiet", ["parcel"]).last == {"parcel": WALL}


@pytest.mark.parametrize(
    "wanted",
    [
        Filter(agent="shy"),
        Filter(tenant="", agent="shy", verdict="failed"),
        Filter(version="7"),
        Filter(version="7", criterion="trajectory", verdict="failed"),
        Filter(signature="track missing"),
    ],
)
def test_rows_that_cannot_match_take_no_time_of_the_search(
    tmp_path: Path, wanted: Filter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "ROWS_BETWEEN_LOOKS", 1)
    with opened(tmp_path) as store:
        commit(store, [evaluation("a", "stopped", agent="shy", version="7")])
        commit(store, NOISE)
        commit(
            store, [replace(one, invocation=replace(one.invocation, tenant="")) for one in NOISE]
        )
    ticks = count()
    with reading(tmp_path) as connection:
        page = find(connection, wanted, limit=1, clock=lambda: float(next(ticks)) / 1000)
    assert [one.agent for one in page.results] == ["shy"]


def test_a_search_ends_where_its_time_begins(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "FIRST_WINDOW", 1)
    ticks = count()
    with reading(folder) as connection:
        wanted = Filter(version="9", since=WALL + 3)
        page = find(connection, wanted, clock=lambda: float(next(ticks)))
        assert page == Page([], 5, WALL + 4)
        assert find(connection, wanted, before=5) == Page([], None)


LONG = evaluation("long", agent="a" * 100, scenario="ж" * 100, version="v" * 65)


@pytest.mark.parametrize(
    ("wanted", "is_found"),
    [
        (Filter(agent=label_value(LONG.invocation.agent or "", MAX_NAME_BYTES)), True),
        (Filter(scenario=label_value(LONG.invocation.scenario_id or "")), True),
        (Filter(version=label_value("v" * 65, MAX_NAME_BYTES)), True),
        (Filter(tenant="", agent="a" * 64, scenario="ж" * 64, verdict="failed"), True),
        (Filter(agent="a" * 100, scenario="ж" * 100, version="v" * 65), True),
        (Filter(agent="a" * 63), False),
        (Filter(agent="a" * 65), False),
        (Filter(scenario="ж" * 63), False),
        (Filter(version="v" * 63), False),
    ],
)
def test_labels_of_metrics_lead_to_the_results_of_long_names(
    tmp_path: Path, wanted: Filter, is_found: bool
) -> None:
    with opened(tmp_path) as store:
        commit(store, [LONG, *RUNS.values()])
        with reading(tmp_path) as connection:
            found = [one.key for one in find(connection, wanted).results]
    assert found == [LONG.key] * is_found
    if wanted.version is None:
        assert grouped(tmp_path, wanted).failures == is_found


def test_names_that_no_database_can_store_match_nothing(folder: Path) -> None:
    for odd in ("parcel\udc80", "parcel\0"):
        for wanted in (Filter(scenario=odd), Filter(agent=odd), Filter(version=odd)):
            with reading(folder) as connection:
                assert find(connection, wanted) == Page([], None)


def test_groups_are_those_of_the_scenario_however_often_others_fail(
    noisy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathgauge.collector.store.queries.clusters.MAX_FAILURES", 100)
    wanted = Filter(tenant="quiet", scenario="parcel")
    [cluster] = grouped(noisy, wanted).clusters
    assert (cluster.failures, grouped(noisy, wanted).complete) == (1, True)
    assert grouped(noisy, Filter(tenant="loud")).failures == 100
    assert not grouped(noisy, Filter(tenant="loud")).complete


def test_names_of_senders_are_cut(tmp_path: Path) -> None:
    one = evaluation("a", scenario="s" * 10_000, agent="a" * 10_000, version="v\ud800" * 10_000)
    with opened(tmp_path) as store:
        commit(store, [one])
        with reading(tmp_path) as connection:
            [found] = find(connection, Filter()).results
        store.purge(Selection(scenario="s" * 10_000))
    assert (found.agent, found.scenario_id) == ("a" * 200, "s" * 200)
    assert found.agent_version == "v?" * 100
    with reading(tmp_path) as connection:
        assert find(connection, Filter()).results == []

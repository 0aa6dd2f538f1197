"""Counts that scrapes see when they are stored, and that a restart restores."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st
from prometheus_client.core import Metric

from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.durable_series import Source
from support.examples import examples

BOUNDS = (0.5, 1)
Stored = dict[tuple[str, ...], list[float]]
"""The numbers in a store, by key."""


class MetricsHarness:
    """A counter, a histogram and stored values, all with one label."""

    def __init__(
        self,
        rows: Iterable[Row] = (),
        *,
        labels: tuple[str, ...] = ("agent",),
        bounds: tuple[float, ...] = BOUNDS,
        optional_label: str = "",
    ) -> None:
        self.metrics = DurableMetrics()
        self.calls = self.metrics.counter("calls", "Calls.", labels, optional_label)
        self.seconds = self.metrics.histogram(
            "seconds", "Time.", labels, optional_label, bounds=bounds
        )
        self.notes = self.metrics.stored_values("notes", labels)
        self.metrics.restore(rows)

    def count(self, agent: str, n: float) -> None:
        self.calls.of(agent).add(n)
        self.seconds.of(agent).observe(n)
        self.notes.of(agent).put(n, n)

    def drop(self, agent: str) -> None:
        for family in (self.calls, self.seconds, self.notes):
            family.keep({tally.labels for tally in family} - {(agent,)})

    def shown(self) -> dict[str, dict[str, float]]:
        """What scrapes see: the numbers of each agent, by sample and bucket."""
        return numbers(self.metrics.collect())


def numbers(families: Iterable[Metric]) -> dict[str, dict[str, float]]:
    shown: dict[str, dict[str, float]] = {}
    for family in families:
        for sample in family.samples:
            shown.setdefault(sample.labels.get("agent", ""), {})[
                sample.name + sample.labels.get("le", "")
            ] = sample.value
    return shown


def counted(*values: float) -> dict[str, float]:
    """The numbers of an agent that was counted with these values."""
    at_most = [sum(value <= bound for value in values) for bound in BOUNDS]
    buckets = {
        "seconds_bucket0.5": at_most[0],
        "seconds_bucket1.0": at_most[1],
        "seconds_bucket+Inf": len(values),
    }
    return {
        "calls_total": sum(values),
        **buckets,
        "seconds_count": len(values),
        "seconds_sum": sum(values),
    }


def store(rows: Iterable[Row], stored: Stored) -> None:
    """Store rows, by way of JSON as in a real store."""
    for key, state in json.loads(json.dumps(rows)):
        if state is None:
            stored.pop(tuple(key), None)
        else:
            stored[tuple(key)] = state


def rows(stored: Stored) -> list[Row]:
    return [Row(key, state) for key, state in stored.items()]


def test_a_count_is_shown_when_it_is_committed_and_0_until_then() -> None:
    harness = MetricsHarness()
    seen = []
    for step in (
        lambda: harness.count("a", 1),
        harness.metrics.pending,
        harness.metrics.commit,
        lambda: harness.count("a", 0.75),
    ):
        step()
        seen.append(harness.shown())
    assert seen == [{"a": counted()}, {"a": counted()}, {"a": counted(1)}, {"a": counted(1)}]


def test_pending_rows_have_the_whole_state_until_they_are_committed() -> None:
    harness = MetricsHarness()
    harness.count("a", 1)
    harness.metrics.pending()
    harness.count("a", 2)
    harness.count("b", 0.5)
    assert set(harness.metrics.pending()) == {
        Row(("calls", "a"), (3,)),
        Row(("calls", "b"), (0.5,)),
        Row(("seconds", "a"), (3.0, 0, 1, 1)),
        Row(("seconds", "b"), (0.5, 1, 0, 0)),
        Row(("notes", "a"), (2, 2)),
        Row(("notes", "b"), (0.5, 0.5)),
        Row(("bucket_bounds", "seconds"), BOUNDS),
    }
    harness.metrics.commit()
    assert harness.metrics.pending() == []


def test_a_count_between_pending_and_commit_is_pending_afterwards() -> None:
    harness = MetricsHarness()
    harness.count("a", 1)
    harness.metrics.pending()
    harness.count("a", 2)
    harness.count("b", 1)
    harness.metrics.commit()
    assert harness.shown() == {"a": counted(1), "b": counted()}
    assert {row.key for row in harness.metrics.pending()} == {
        (name, agent) for name in ("calls", "seconds", "notes") for agent in "ab"
    }
    harness.metrics.commit()
    assert harness.shown() == {"a": counted(1, 2), "b": counted(1)}


def test_a_dropped_series_is_shown_until_the_next_commit() -> None:
    harness = MetricsHarness()
    harness.count("a", 1)
    harness.metrics.pending()
    harness.metrics.commit()
    harness.drop("a")
    assert harness.shown() == {"a": counted(1)}
    assert set(harness.metrics.pending()) == {
        Row((name, "a"), None) for name in ("calls", "seconds", "notes")
    }
    harness.metrics.commit()
    assert harness.shown() == {}


def test_a_dropped_series_that_comes_back_starts_at_0_with_the_next_commit() -> None:
    harness = MetricsHarness()
    harness.count("a", 1)
    harness.metrics.pending()
    harness.metrics.commit()
    harness.drop("a")
    harness.count("a", 0.25)
    assert harness.shown() == {"a": counted(1)}
    harness.metrics.pending()
    harness.metrics.commit()
    assert harness.shown() == {"a": counted(0.25)}


def test_a_restored_series_is_shown_at_once_and_continues() -> None:
    stored: Stored = {}
    first = MetricsHarness()
    first.count("a", 1)
    store(first.metrics.pending(), stored)
    second = MetricsHarness(rows(stored))
    assert second.shown() == {"a": counted(1)}
    assert {row.key for row in second.metrics.pending()} == {("bucket_bounds", "seconds")}
    assert [(note.labels, note.numbers) for note in second.notes] == [(("a",), (1, 1))]
    second.count("a", 2)
    store(second.metrics.pending(), stored)
    assert MetricsHarness(rows(stored)).shown() == {"a": counted(1, 2)}


def test_integers_stay_exact() -> None:
    harness = MetricsHarness()
    harness.calls.of("a").add(2**53)
    harness.calls.of("a").add(1)
    stored: Stored = {}
    store(harness.metrics.pending(), stored)
    again = MetricsHarness(rows(stored))
    again.calls.of("a").add(1)
    assert Row(("calls", "a"), (2**53 + 2,)) in again.metrics.pending()


@pytest.mark.parametrize("bounds", [(0.5, 1, 2), (0.5, 0.75)])
def test_a_histogram_with_other_bounds_starts_at_0_and_is_deleted_from_the_store(
    bounds: tuple[float, ...],
) -> None:
    stored: Stored = {}
    old = MetricsHarness()
    old.count("a", 1)
    store(old.metrics.pending(), stored)
    new = MetricsHarness(rows(stored), bounds=bounds)
    assert new.shown() == {"a": {"calls_total": 1}}
    store(new.metrics.pending(), stored)
    assert stored == {
        ("calls", "a"): [1],
        ("notes", "a"): [1, 1],
        ("bucket_bounds", "seconds"): list(bounds),
    }


def test_series_with_other_labels_start_at_0_and_are_deleted_from_the_store() -> None:
    stored: Stored = {}
    old = MetricsHarness()
    old.count("a", 1)
    store(old.metrics.pending(), stored)
    new = MetricsHarness(rows(stored), labels=("tenant", "agent"))
    assert new.shown() == {}
    store(new.metrics.pending(), stored)
    assert stored == {("bucket_bounds", "seconds"): list(BOUNDS)}


@pytest.mark.parametrize(
    ("lost", "shown"),
    [
        (("bucket_bounds", "seconds"), counted(1)),
        (
            ("calls", "a"),
            {name: value for name, value in counted(1).items() if name != "calls_total"},
        ),
    ],
)
def test_a_lost_row_does_not_affect_other_series(
    lost: tuple[str, ...], shown: dict[str, float]
) -> None:
    stored: Stored = {}
    old = MetricsHarness()
    old.count("a", 1)
    store(old.metrics.pending(), stored)
    del stored[lost]
    assert MetricsHarness(rows(stored)).shown() == {"a": shown}


def test_a_state_of_another_size_is_refused() -> None:
    harness = MetricsHarness(
        [Row(("calls", "a"), (1, 2)), Row(("seconds", "a"), (1, 2)), Row(("seconds", "b"), None)]
    )
    assert harness.shown() == {}
    assert {row.key for row in harness.metrics.pending() if row.state is None} == {
        ("calls", "a"),
        ("seconds", "a"),
    }


def test_rows_of_families_that_do_not_exist_any_more_are_deleted_from_the_store() -> None:
    harness = MetricsHarness([Row(("scores_of_day", "a", "20000"), (3,))])
    gone = [row.key for row in harness.metrics.pending() if row.state is None]
    assert gone == [("scores_of_day", "a", "20000")]


def test_rows_of_other_names_are_ignored() -> None:
    harness = MetricsHarness([Row(("spans_dropped", "late"), (3,)), Row(("calls", "a"), (2,))])
    assert harness.shown() == {"a": {"calls_total": 2}}
    assert {row.key for row in harness.metrics.pending()} == {("bucket_bounds", "seconds")}


class JudgedSeries(MetricsHarness):
    """Series of which some have an optional label."""

    def __init__(self, rows: Iterable[Row] = (), *, bounds: tuple[float, ...] = BOUNDS) -> None:
        super().__init__(rows, bounds=bounds, optional_label="judge")

    def judge(self, agent: str, judge: str, n: float) -> None:
        self.calls.of(agent, judge).add(n)
        self.seconds.of(agent, judge).observe(n)

    def sums(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        samples = [sample for family in self.metrics.collect() for sample in family.samples]
        return {
            (s.name, frozenset(s.labels.items())): s.value
            for s in samples
            if s.name in ("calls_total", "seconds_sum")
        }


def test_series_with_an_optional_label_have_a_name_of_their_own_in_the_store_only() -> None:
    stored: Stored = {}
    harness = JudgedSeries()
    harness.count("a", 1)
    harness.judge("a", "j", 0.75)
    store(harness.metrics.pending(), stored)
    harness.metrics.commit()
    plain, judged = frozenset({("agent", "a")}), frozenset({("agent", "a"), ("judge", "j")})
    sums = {
        ("calls_total", plain): 1,
        ("seconds_sum", plain): 1,
        ("calls_total", judged): 0.75,
        ("seconds_sum", judged): 0.75,
    }
    assert harness.sums() == sums
    assert [family.name for family in harness.metrics.collect()] == ["calls", "seconds"]
    assert JudgedSeries(rows(stored)).sums() == sums
    assert MetricsHarness(rows(stored)).shown() == {"a": counted(1)}


def test_other_bounds_affect_series_with_the_optional_label_too() -> None:
    stored: Stored = {}
    harness = JudgedSeries()
    harness.judge("a", "j", 0.75)
    store(harness.metrics.pending(), stored)
    assert [name for name, _ in JudgedSeries(rows(stored), bounds=(0.5, 0.75)).sums()] == [
        "calls_total"
    ]


def test_a_series_without_labels_continues() -> None:
    metrics = DurableMetrics()
    lag = metrics.histogram("lag", "Lag.", bounds=(1,)).of()
    metrics.restore([Row(("lag",), (5.0, 1, 1)), Row(("bucket_bounds", "lag"), (1,))])
    lag.observe(0.5)
    assert Row(("lag",), (5.5, 2, 1)) in metrics.pending()


def test_a_series_that_begins_again_while_its_end_is_stored_is_shown_as_0() -> None:
    harness = MetricsHarness()
    harness.count("a", 1)
    harness.metrics.pending()
    harness.metrics.commit()
    harness.drop("a")
    harness.metrics.pending()
    harness.count("a", 1)
    harness.metrics.commit()
    assert harness.shown() == {"a": counted()}
    harness.metrics.pending()
    harness.metrics.commit()
    assert harness.shown() == {"a": counted(1)}


def test_a_bucket_includes_its_upper_bound() -> None:
    harness = MetricsHarness()
    for value in (0, 0.5, 0.75, 1, 1.25):
        harness.seconds.of("a").observe(value)
    assert Row(("seconds", "a"), (3.5, 2, 2, 1)) in harness.metrics.pending()


def test_exemplars_are_shown_with_their_count_and_are_not_stored() -> None:
    harness = MetricsHarness()
    harness.calls.of("a").add(1, Source({"trace_id": "t"}, 7.0))
    harness.seconds.of("a").observe(0.75, Source({"trace_id": "t"}, 7.0))
    found = []
    for step in (harness.metrics.pending, harness.metrics.commit):
        step()
        exemplars = [
            (sample.labels.get("le"), sample.exemplar)
            for family in harness.metrics.collect()
            for sample in family.samples
        ]
        found.append(
            [
                (le, exemplar.labels, exemplar.value, exemplar.timestamp)
                for le, exemplar in exemplars
                if exemplar
            ]
        )
    assert found == [[], [(None, {"trace_id": "t"}, 1, 7.0), ("1.0", {"trace_id": "t"}, 0.75, 7.0)]]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["count", "count", "count", "begin", "drop", "stage", "commit", "crash"]),
        st.sampled_from("abc"),
        st.integers(0, 8).map(lambda n: n / 4),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=examples(300))
@given(STEPS)
def test_in_any_order_scrapes_see_what_is_stored_and_a_crash_loses_what_is_not(
    steps: list[tuple[str, str, float]],
) -> None:
    harness, stored = MetricsHarness(), dict[tuple[str, ...], list[float]]()
    live, durable = dict[str, list[float]](), dict[str, list[float]]()
    offered: tuple[dict[str, list[float]], list[Row]] = {}, []
    for step, agent, value in steps:
        match step:
            case "count":
                harness.count(agent, value)
                live.setdefault(agent, []).append(value)
            case "begin":
                harness.calls.of(agent)
                harness.seconds.of(agent)
            case "drop":
                harness.drop(agent)
                live.pop(agent, None)
            case "stage":
                offered = (
                    {agent: list(values) for agent, values in live.items()},
                    harness.metrics.pending(),
                )
            case "commit":
                store(offered[1], stored)
                harness.metrics.commit()
                durable, offered = (offered[0] if offered[1] else durable), (offered[0], [])
            case "crash":
                harness, live, offered = (
                    MetricsHarness(rows(stored)),
                    {agent: list(values) for agent, values in durable.items()},
                    ({}, []),
                )
        # Series that were started and not committed are shown as 0.
        assert {agent: shown for agent, shown in harness.shown().items() if shown != counted()} == {
            agent: counted(*values) for agent, values in durable.items() if values
        }


def test_concurrent_scrapes_see_whole_states_that_never_go_back() -> None:
    harness = MetricsHarness()
    harness.count("a", 1)  # both families have the series from here on
    stop, seen = threading.Event(), list[dict[str, float]]()

    def scrape() -> None:
        while not stop.is_set():
            seen.append(harness.shown()["a"])

    scraper = threading.Thread(target=scrape)
    scraper.start()
    for number in range(3000):
        harness.count("a", 1)
        harness.calls.of(f"other {number}")
        harness.metrics.pending()
        harness.metrics.commit()
    stop.set()
    scraper.join()
    assert all(shown == counted(*[1] * int(shown["calls_total"])) for shown in seen)
    assert all(before["calls_total"] <= after["calls_total"] for before, after in pairwise(seen))

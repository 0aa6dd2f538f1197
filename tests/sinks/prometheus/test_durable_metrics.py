"""Counts that scrapes see when they are stored, and that go on after a restart from what was
stored.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st
from prometheus_client.core import Metric

from pathgauge.collector.core.internal_telemetry import Row
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.durable_series import Source

BOUNDS = (0.5, 1)
Stored = dict[tuple[str, ...], list[float]]
"""A store, by key."""


class Bench:
    """Tallies of a counter, a histogram and notes, all with one label."""

    def __init__(
        self,
        rows: Iterable[Row] = (),
        *,
        labels: tuple[str, ...] = ("agent",),
        bounds: tuple[float, ...] = BOUNDS,
    ) -> None:
        self.metrics = DurableMetrics()
        self.calls = self.metrics.counter("calls", "Calls.", labels)
        self.seconds = self.metrics.histogram("seconds", "Time.", labels, bounds=bounds)
        self.notes = self.metrics.notes("notes", labels)
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
    """What a store does with rows, by the way of JSON."""
    for key, state in json.loads(json.dumps(rows)):
        if state is None:
            stored.pop(tuple(key), None)
        else:
            stored[tuple(key)] = state


def rows(stored: Stored) -> list[Row]:
    return [Row(key, state) for key, state in stored.items()]


def test_what_is_counted_is_shown_when_it_is_settled_and_0_until_then() -> None:
    bench = Bench()
    seen = []
    for step in (
        lambda: bench.count("a", 1),
        bench.metrics.pending,
        bench.metrics.commit,
        lambda: bench.count("a", 0.75),
    ):
        step()
        seen.append(bench.shown())
    assert seen == [{"a": counted()}, {"a": counted()}, {"a": counted(1)}, {"a": counted(1)}]


def test_staged_rows_have_the_whole_state_and_are_given_until_they_are_settled() -> None:
    bench = Bench()
    bench.count("a", 1)
    bench.metrics.pending()
    bench.count("a", 2)
    bench.count("b", 0.5)
    assert set(bench.metrics.pending()) == {
        Row(("calls", "a"), (3,)),
        Row(("calls", "b"), (0.5,)),
        Row(("seconds", "a"), (3.0, 0, 1, 1)),
        Row(("seconds", "b"), (0.5, 1, 0, 0)),
        Row(("notes", "a"), (2, 2)),
        Row(("notes", "b"), (0.5, 0.5)),
        Row(("bucket_bounds", "seconds"), BOUNDS),
    }
    bench.metrics.commit()
    assert bench.metrics.pending() == []


def test_what_is_counted_between_staging_and_settling_is_staged_the_next_time() -> None:
    bench = Bench()
    bench.count("a", 1)
    bench.metrics.pending()
    bench.count("a", 2)
    bench.count("b", 1)
    bench.metrics.commit()
    assert bench.shown() == {"a": counted(1), "b": counted()}
    assert {row.key for row in bench.metrics.pending()} == {
        (name, agent) for name in ("calls", "seconds", "notes") for agent in "ab"
    }
    bench.metrics.commit()
    assert bench.shown() == {"a": counted(1, 2), "b": counted(1)}


def test_a_dropped_series_is_shown_until_that_is_settled() -> None:
    bench = Bench()
    bench.count("a", 1)
    bench.metrics.pending()
    bench.metrics.commit()
    bench.drop("a")
    assert bench.shown() == {"a": counted(1)}
    assert set(bench.metrics.pending()) == {
        Row((name, "a"), None) for name in ("calls", "seconds", "notes")
    }
    bench.metrics.commit()
    assert bench.shown() == {}


def test_a_series_that_was_dropped_and_came_back_begins_anew_once_that_is_settled() -> None:
    bench = Bench()
    bench.count("a", 1)
    bench.metrics.pending()
    bench.metrics.commit()
    bench.drop("a")
    bench.count("a", 0.25)
    assert bench.shown() == {"a": counted(1)}
    bench.metrics.pending()
    bench.metrics.commit()
    assert bench.shown() == {"a": counted(0.25)}


def test_a_restored_series_is_shown_at_once_and_goes_on() -> None:
    stored: Stored = {}
    first = Bench()
    first.count("a", 1)
    store(first.metrics.pending(), stored)
    second = Bench(rows(stored))
    assert second.shown() == {"a": counted(1)}
    assert {row.key for row in second.metrics.pending()} == {("bucket_bounds", "seconds")}
    assert [(note.labels, note.numbers) for note in second.notes] == [(("a",), [1, 1])]
    second.count("a", 2)
    store(second.metrics.pending(), stored)
    assert Bench(rows(stored)).shown() == {"a": counted(1, 2)}


def test_whole_numbers_stay_exact() -> None:
    bench = Bench()
    bench.calls.of("a").add(2**53)
    bench.calls.of("a").add(1)
    stored: Stored = {}
    store(bench.metrics.pending(), stored)
    again = Bench(rows(stored))
    again.calls.of("a").add(1)
    assert Row(("calls", "a"), (2**53 + 2,)) in again.metrics.pending()


@pytest.mark.parametrize("bounds", [(0.5, 1, 2), (0.5, 0.75)])
def test_a_histogram_with_other_bounds_begins_anew_and_leaves_the_store(
    bounds: tuple[float, ...],
) -> None:
    stored: Stored = {}
    old = Bench()
    old.count("a", 1)
    store(old.metrics.pending(), stored)
    new = Bench(rows(stored), bounds=bounds)
    assert new.shown() == {"a": {"calls_total": 1}}
    store(new.metrics.pending(), stored)
    assert stored == {
        ("calls", "a"): [1],
        ("notes", "a"): [1, 1],
        ("bucket_bounds", "seconds"): list(bounds),
    }


def test_series_with_other_labels_begin_anew_and_leave_the_store() -> None:
    stored: Stored = {}
    old = Bench()
    old.count("a", 1)
    store(old.metrics.pending(), stored)
    new = Bench(rows(stored), labels=("tenant", "agent"))
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
def test_a_row_that_was_lost_takes_no_other_with_it(
    lost: tuple[str, ...], shown: dict[str, float]
) -> None:
    stored: Stored = {}
    old = Bench()
    old.count("a", 1)
    store(old.metrics.pending(), stored)
    del stored[lost]
    assert Bench(rows(stored)).shown() == {"a": shown}


def test_a_state_of_another_size_is_not_taken() -> None:
    bench = Bench(
        [Row(("calls", "a"), (1, 2)), Row(("seconds", "a"), (1, 2)), Row(("seconds", "b"), None)]
    )
    assert bench.shown() == {}
    assert {row.key for row in bench.metrics.pending() if row.state is None} == {
        ("calls", "a"),
        ("seconds", "a"),
    }


def test_rows_of_other_names_are_passed_over() -> None:
    bench = Bench([Row(("spans_dropped", "late"), (3,)), Row(("calls", "a"), (2,))])
    assert bench.shown() == {"a": {"calls_total": 2}}
    assert {row.key for row in bench.metrics.pending()} == {("bucket_bounds", "seconds")}


class Judged(Bench):
    """Series of which some have one label more."""

    def __init__(self, rows: Iterable[Row] = (), *, bounds: tuple[float, ...] = BOUNDS) -> None:
        super().__init__(bounds=bounds)
        self.judged = (
            self.metrics.beside(self.calls, "judge"),
            self.metrics.beside(self.seconds, "judge"),
        )
        self.metrics.restore(rows)

    def judge(self, agent: str, judge: str, n: float) -> None:
        calls, seconds = self.judged
        calls.of(agent, judge).add(n)
        seconds.of(agent, judge).observe(n)

    def sums(self) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
        samples = [sample for family in self.metrics.collect() for sample in family.samples]
        return {
            (s.name, frozenset(s.labels.items())): s.value
            for s in samples
            if s.name in ("calls_total", "seconds_sum")
        }


def test_series_with_a_label_more_are_shown_under_one_name_and_stored_apart() -> None:
    stored: Stored = {}
    bench = Judged()
    bench.count("a", 1)
    bench.judge("a", "j", 0.75)
    store(bench.metrics.pending(), stored)
    bench.metrics.commit()
    plain, judged = frozenset({("agent", "a")}), frozenset({("agent", "a"), ("judge", "j")})
    sums = {
        ("calls_total", plain): 1,
        ("seconds_sum", plain): 1,
        ("calls_total", judged): 0.75,
        ("seconds_sum", judged): 0.75,
    }
    assert bench.sums() == sums
    assert [family.name for family in bench.metrics.collect()] == ["calls", "seconds"]
    assert Judged(rows(stored)).sums() == sums
    assert Bench(rows(stored)).shown() == {"a": counted(1)}


def test_a_histogram_with_other_bounds_begins_anew_with_a_label_more_too() -> None:
    stored: Stored = {}
    bench = Judged()
    bench.judge("a", "j", 0.75)
    store(bench.metrics.pending(), stored)
    assert [name for name, _ in Judged(rows(stored), bounds=(0.5, 0.75)).sums()] == ["calls_total"]


def test_a_series_without_labels_goes_on() -> None:
    metrics = DurableMetrics()
    lag = metrics.histogram("lag", "Lag.", bounds=(1,)).of()
    metrics.restore([Row(("lag",), (5.0, 1, 1)), Row(("bucket_bounds", "lag"), (1,))])
    lag.observe(0.5)
    assert Row(("lag",), (5.5, 2, 1)) in metrics.pending()


def test_a_bound_belongs_to_its_bucket() -> None:
    bench = Bench()
    for value in (0, 0.5, 0.75, 1, 1.25):
        bench.seconds.of("a").observe(value)
    assert Row(("seconds", "a"), (3.5, 2, 2, 1)) in bench.metrics.pending()


def test_exemplars_are_shown_with_the_count_that_they_belong_to_and_are_not_stored() -> None:
    bench = Bench()
    bench.calls.of("a").add(1, Source({"trace_id": "t"}, 7.0))
    bench.seconds.of("a").observe(0.75, Source({"trace_id": "t"}, 7.0))
    found = []
    for step in (bench.metrics.pending, bench.metrics.commit):
        step()
        exemplars = [
            (sample.labels.get("le"), sample.exemplar)
            for family in bench.metrics.collect()
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
        st.sampled_from(["count", "count", "count", "begin", "drop", "stage", "settle", "crash"]),
        st.sampled_from("abc"),
        st.integers(0, 8).map(lambda n: n / 4),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=300)
@given(STEPS)
def test_in_any_order_scrapes_see_what_is_stored_and_a_crash_loses_what_is_not(
    steps: list[tuple[str, str, float]],
) -> None:
    bench, stored = Bench(), dict[tuple[str, ...], list[float]]()
    live, durable = dict[str, list[float]](), dict[str, list[float]]()
    offered: tuple[dict[str, list[float]], list[Row]] = {}, []
    for step, agent, value in steps:
        match step:
            case "count":
                bench.count(agent, value)
                live.setdefault(agent, []).append(value)
            case "begin":
                bench.calls.of(agent)
                bench.seconds.of(agent)
            case "drop":
                bench.drop(agent)
                live.pop(agent, None)
            case "stage":
                offered = (
                    {agent: list(values) for agent, values in live.items()},
                    bench.metrics.pending(),
                )
            case "settle":
                store(offered[1], stored)
                bench.metrics.commit()
                durable, offered = (offered[0] if offered[1] else durable), (offered[0], [])
            case "crash":
                bench, live, offered = (
                    Bench(rows(stored)),
                    {agent: list(values) for agent, values in durable.items()},
                    ({}, []),
                )
        # What was begun and not settled is shown as 0.
        assert {agent: shown for agent, shown in bench.shown().items() if shown != counted()} == {
            agent: counted(*values) for agent, values in durable.items() if values
        }


def test_a_scrape_beside_counting_and_settling_sees_whole_states_that_never_go_back() -> None:
    bench = Bench()
    bench.count("a", 1)  # both families have the series from here on
    stop, seen = threading.Event(), list[dict[str, float]]()

    def scrape() -> None:
        while not stop.is_set():
            seen.append(bench.shown()["a"])

    scraper = threading.Thread(target=scrape)
    scraper.start()
    for number in range(3000):
        bench.count("a", 1)
        bench.calls.of(f"other {number}")
        bench.metrics.pending()
        bench.metrics.commit()
    stop.set()
    scraper.join()
    assert all(shown == counted(*[1] * int(shown["calls_total"])) for shown in seen)
    assert all(before["calls_total"] <= after["calls_total"] for before, after in pairwise(seen))

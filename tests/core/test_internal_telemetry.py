"""A durable ledger shows what is stored, and goes on from it; any other shows what is counted."""

from __future__ import annotations

import json

from hypothesis import given, strategies as st

from pathgauge.collector.core.internal_telemetry import Counter, InternalTelemetry, Row


def shown(telemetry: InternalTelemetry) -> dict[tuple[str, ...], int]:
    """What scrapes see of everything that is not 0."""
    return {
        (counter.name, *values): count
        for counter in telemetry
        for values, count in counter.items()
        if count
    }


def count_one_of_each(telemetry: InternalTelemetry) -> set[tuple[str, ...]]:
    for counter in telemetry:
        counter.add(*counter.labels)
    return {(counter.name, *counter.labels) for counter in telemetry}


def test_by_itself_a_ledger_shows_what_is_counted_and_stages_nothing() -> None:
    telemetry = InternalTelemetry()
    counted = count_one_of_each(telemetry)
    assert shown(telemetry).keys() == counted
    assert telemetry.pending() == []


def test_a_durable_ledger_shows_what_is_settled_and_local_counters_at_once() -> None:
    telemetry = InternalTelemetry(durable=True)
    count_one_of_each(telemetry)
    assert shown(telemetry).keys() == {
        (counter.name, *counter.labels) for counter in telemetry if counter.local
    }
    assert telemetry.accepted.items() == [(("transport", "format"), 0)]
    telemetry.pending()
    telemetry.commit()
    assert shown(telemetry).keys() == {(counter.name, *counter.labels) for counter in telemetry}


def test_the_live_count_is_there_before_it_is_shown() -> None:
    telemetry = InternalTelemetry(durable=True)
    telemetry.spans_dropped.add("late", n=3)
    assert (telemetry.spans_dropped.get("late"), telemetry.spans_dropped.total()) == (3, 3)
    assert telemetry.spans_dropped.items() == [(("late",), 0)]


def test_staged_rows_are_whole_and_are_given_until_they_are_settled() -> None:
    telemetry = InternalTelemetry(durable=True)
    telemetry.pending()
    telemetry.commit()
    telemetry.spans_dropped.add("late", n=2)
    assert telemetry.pending() == [Row(("spans_dropped", "late"), (2,))]
    telemetry.spans_dropped.add("late")
    assert telemetry.pending() == [Row(("spans_dropped", "late"), (3,))]
    telemetry.spans_dropped.add("late")
    telemetry.commit()
    assert shown(telemetry) == {("spans_dropped", "late"): 3}
    assert telemetry.pending() == [Row(("spans_dropped", "late"), (4,))]


def test_counters_without_labels_are_stored_from_the_first_time() -> None:
    telemetry = InternalTelemetry(durable=True)
    assert Row(("spans_assembled",), (0,)) in telemetry.pending()


def test_a_restored_ledger_shows_what_was_stored_and_goes_on() -> None:
    first = InternalTelemetry(durable=True)
    count_one_of_each(first)
    rows = [Row(*row) for row in json.loads(json.dumps(first.pending()))]
    second = InternalTelemetry(durable=True)
    second.restore(rows)
    assert shown(second).keys() == {
        (counter.name, *counter.labels) for counter in first if not counter.local
    }
    assert second.pending() == []
    second.spans_assembled.add(n=2)
    assert second.pending() == [Row(("spans_assembled",), (3,))]


def test_rows_of_anything_else_are_passed_over() -> None:
    telemetry = InternalTelemetry(durable=True)
    telemetry.restore(
        [
            Row(("pathgauge_score", "planner"), (1.0, 0, 1)),
            Row(("receiver_requests", "grpc", "traces", "OK"), (5,)),
            Row(("spans_dropped", "late", "and more"), (5,)),
            Row(("spans_dropped", "late"), None),
            Row(("spans_dropped", "duplicate"), (5,)),
        ]
    )
    assert shown(telemetry) == {("spans_dropped", "duplicate"): 5}


def test_a_counter_by_itself_is_not_held_back() -> None:
    counter = Counter("n", "N.")
    counter.add()
    assert counter.items() == [((), 1)]


@given(st.lists(st.sampled_from(["late", "duplicate", "stage", "settle", "crash"]), max_size=30))
def test_whatever_happens_in_any_order_the_ledger_shows_what_is_stored(steps: list[str]) -> None:
    telemetry, stored = InternalTelemetry(durable=True), dict[tuple[str, ...], Row]()
    pending: list[Row] = []
    for step in steps:
        match step:
            case "stage":
                pending = telemetry.pending()
            case "settle":
                stored |= {tuple(row.key): row for row in pending}
                telemetry.commit()
            case "crash":
                telemetry, pending = InternalTelemetry(durable=True), []
                telemetry.restore(stored.values())
            case reason:
                telemetry.spans_dropped.add(reason)
        assert shown(telemetry) == {
            key: row.state[0] for key, row in stored.items() if row.state and row.state[0]
        }

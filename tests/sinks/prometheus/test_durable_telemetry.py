"""The counters of the collector itself are shown when they are stored, and survive a restart."""

from __future__ import annotations

import json
from collections.abc import Iterable

from hypothesis import given, strategies as st

from pathgauge.collector.core.counters import Counter
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics


class DurableTelemetry:
    """Counters with their durable metrics, as in one process."""

    def __init__(self, rows: Iterable[Row] = ()) -> None:
        self.telemetry, self.metrics = InternalTelemetry(), DurableMetrics()
        self.metrics.add_telemetry(self.telemetry)
        self.metrics.restore(rows)

    def shown(self) -> dict[tuple[str, ...], float]:
        """What scrapes see of everything that is not 0."""
        return {
            (name.removeprefix("pathgauge_"), *labels): state.numbers[0]
            for name, series in self.metrics.published().items()
            for labels, state in series.items()
            if state.numbers[0]
        }

    def changes(self) -> list[Row]:
        """The changed counters that are not 0."""
        return [row for row in self.metrics.pending() if row.state is None or row.state[0]]


def count_one_of_each(telemetry: InternalTelemetry) -> None:
    for counter in telemetry:
        counter.add(*counter.labels)


def keys(counters: Iterable[Counter]) -> set[tuple[str, ...]]:
    return {(counter.name, *counter.labels) for counter in counters}


def test_local_counters_are_shown_at_once_and_the_others_when_they_are_stored() -> None:
    process = DurableTelemetry()
    count_one_of_each(process.telemetry)
    local = [counter for counter in process.telemetry if counter.local]
    assert process.shown().keys() == keys(local)
    process.metrics.pending()
    assert process.shown().keys() == keys(local)
    process.metrics.commit()
    assert process.shown().keys() == keys(process.telemetry)


def test_counters_without_labels_are_shown_and_stored_from_the_start() -> None:
    process = DurableTelemetry()
    assert process.metrics.published()["pathgauge_spans_assembled"][()].numbers == (0,)
    assert Row(("spans_assembled",), (0,)) in process.metrics.pending()


def test_pending_rows_have_the_whole_count_until_they_are_committed() -> None:
    process = DurableTelemetry()
    dropped = process.telemetry.spans_dropped
    dropped.add("late", n=2)
    assert process.changes() == [Row(("spans_dropped", "late"), (2,))]
    dropped.add("late")
    assert process.changes() == [Row(("spans_dropped", "late"), (3,))]
    dropped.add("late")
    process.metrics.commit()
    assert process.shown() == {("spans_dropped", "late"): 3}
    assert process.changes() == [Row(("spans_dropped", "late"), (4,))]


def test_restored_counters_are_shown_at_once_and_continue() -> None:
    first = DurableTelemetry()
    count_one_of_each(first.telemetry)
    rows = [Row(*row) for row in json.loads(json.dumps(first.metrics.pending()))]
    second = DurableTelemetry(rows)
    assert second.shown().keys() == keys(
        counter for counter in first.telemetry if not counter.local
    )
    assert second.metrics.pending() == []
    second.telemetry.spans_assembled.add(n=2)
    assert second.metrics.pending() == [Row(("spans_assembled",), (3,))]


def test_rows_of_local_counters_are_ignored_and_rows_with_other_labels_are_deleted() -> None:
    process = DurableTelemetry(
        [
            Row(("receiver_requests", "grpc", "traces", "OK"), (5,)),
            Row(("spans_dropped", "late", "and more"), (5,)),
            Row(("spans_dropped", "late"), None),
            Row(("spans_dropped", "duplicate"), (5,)),
        ]
    )
    assert process.shown() == {("spans_dropped", "duplicate"): 5}
    assert process.changes() == [Row(("spans_dropped", "late", "and more"), None)]


@given(st.lists(st.sampled_from(["late", "duplicate", "stage", "commit", "crash"]), max_size=30))
def test_in_any_order_scrapes_see_what_is_stored(steps: list[str]) -> None:
    process, stored = DurableTelemetry(), dict[tuple[str, ...], Row]()
    pending: list[Row] = []
    for step in steps:
        match step:
            case "stage":
                pending = process.changes()
            case "commit":
                stored |= {tuple(row.key): row for row in pending}
                process.metrics.commit()
            case "crash":
                process, pending = DurableTelemetry(stored.values()), []
            case reason:
                process.telemetry.spans_dropped.add(reason)
        assert process.shown() == {key: row.state[0] for key, row in stored.items() if row.state}

"""Counters by label values."""

from __future__ import annotations

from pathgauge.collector.core.counters import Counter
from pathgauge.collector.core.internal_telemetry import InternalTelemetry


def test_a_counter_counts_by_label_values() -> None:
    counter = Counter("spans_dropped", "Spans.", "reason")
    counter.add("late", n=3)
    counter.add("late")
    counter.add("duplicate")
    assert (counter.get("late"), counter.get("never"), counter.total()) == (4, 0, 5)
    assert counter.items() == [(("late",), 4), (("duplicate",), 1)]


def test_a_counter_without_labels_starts_at_0() -> None:
    assert Counter("n", "N.").items() == [((), 0)]


def test_a_restored_counter_continues() -> None:
    counter = Counter("spans_dropped", "Spans.", "reason")
    counter.restore(("late",), 3)
    counter.add("late")
    assert counter.items() == [(("late",), 4)]


def test_every_counter_has_a_name_and_a_description_of_its_own() -> None:
    counters = list(InternalTelemetry())
    assert len({counter.name for counter in counters}) == len(counters)
    assert all(counter.documentation.endswith(".") for counter in counters)

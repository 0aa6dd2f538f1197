"""What an invocation says about its agent's behaviour."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.traffic.events import bin_of, events_of, kind_of, name_of


def test_an_invocation_tells_its_tools_its_transitions_its_path_and_its_number_of_calls() -> None:
    assert events_of(["search", "fetch", "fetch", "answer"]) == (
        "tool search",
        "tool fetch",
        "tool answer",
        "transition (start) → search",
        "transition search → fetch",
        "transition fetch → fetch",
        "transition fetch → answer",
        "transition answer → (end)",
        "path search → fetch → answer",
        "calls 4",
    )


def test_an_invocation_without_calls_goes_from_start_to_end() -> None:
    assert events_of([]) == ("transition (start) → (end)", "path ", "calls 0")


@pytest.mark.parametrize(
    ("calls", "text"),
    [(0, "0"), (4, "4"), (5, "5-6"), (6, "5-6"), (7, "7-9"), (159, "113-159"), (10**6, "160+")],
)
def test_numbers_of_calls_are_counted_in_ranges(calls: int, text: str) -> None:
    assert bin_of(calls) == text


def test_long_paths_that_differ_late_are_different_and_short() -> None:
    one, other = [f"t{i}" for i in range(40)], [f"t{i}" for i in range(39)] + ["other"]
    paths = [
        next(key for key in events_of(names) if kind_of(key) == "path") for names in (one, other)
    ]
    assert paths[0] != paths[1]
    assert name_of(paths[0]).startswith("t0 → t1 → t2 → ")
    assert max(map(len, paths)) < 100


@settings(deadline=None)
@given(st.lists(st.text(max_size=3), max_size=5))
def test_each_event_has_a_kind_and_a_name_whatever_tools_are_called(names: list[str]) -> None:
    events = events_of(names)
    assert len(set(events)) == len(events)
    assert [f"{kind_of(key)} {name_of(key)}" for key in events] == list(events)


def test_the_events_of_an_endless_invocation_are_few_and_short() -> None:
    events = events_of([f"{i}" * 1000 for i in range(5000)])
    assert len(events) < 100
    assert max(map(len, events)) < 2000

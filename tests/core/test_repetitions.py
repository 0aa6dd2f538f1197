"""Which of many equal events are logged."""

from __future__ import annotations

from pathgauge.collector.core.repetitions import Repetitions


def test_a_line_tells_of_the_events_since_the_line_before() -> None:
    repetitions = Repetitions(60.0, 10)
    assert [repetitions.due("a", now) for now in (0.0, 1.0, 59.0, 60.0, 61.0, 200.0)] == [
        *(1, 0, 0, 3, 0, 2),
    ]
    assert repetitions.due("b", 200.0) == 1


def test_further_kinds_wait_until_others_were_not_logged_for_an_interval() -> None:
    repetitions = Repetitions(60.0, 2)
    assert [repetitions.due(kind, 0.0) for kind in "abcb"] == [1, 1, 0, 0]
    assert repetitions.due("c", 59.0) == 0
    assert [repetitions.due(kind, 60.0) for kind in "bcd"] == [2, 1, 0]

"""Invocations that lost spans are counted by agent, each once."""

from __future__ import annotations

from pathgauge.scorers.authoring.builders import tool_calls
from pathgauge.scorers.types import LOSSES, Flag
from support.sink_harness import ANSWER, SinkHarness

LOST = "pathgauge_lost_telemetry_total"


def publish(harness: SinkHarness, *flags: Flag, agent: str = "planner") -> None:
    harness.publish(1.0, agent=agent, tool_calls=tool_calls("find"), flags=frozenset(flags))


def test_an_invocation_is_counted_by_its_first_sign() -> None:
    harness = SinkHarness(ANSWER)
    publish(harness)
    assert harness.series(LOST) == {("planner", reason): 0 for reason in LOSSES}
    publish(harness, "lost_tool_calls", "lost_parents", "truncated")
    publish(harness, "lost_model_calls", "content_missing")
    publish(harness, "lost_model_calls", agent="other")
    found = {labels: count for labels, count in harness.series(LOST).items() if count}
    assert found == {
        ("planner", "lost_parents"): 1,
        ("planner", "lost_model_calls"): 1,
        ("other", "lost_model_calls"): 1,
    }


def test_tool_calls_that_are_not_all_known_are_not_counted() -> None:
    harness = SinkHarness(ANSWER)
    publish(harness, "lost_model_calls")
    publish(harness, "orphan_spans")
    assert harness.series("pathgauge_invocation_tool_calls_count") == {("planner", ""): 1}

"""Which field paths are left for a span, and that what is remembered about its keys stays small."""

from __future__ import annotations

import tracemalloc

import pytest

from pathgauge.collector.core.invocations.dialects.dialect import Fields
from pathgauge.collector.core.invocations.dialects.field_plan import FieldPlan

MERGED = Fields(agent_name=("name", "agent"), request_model=("model",))


def test_only_paths_to_keys_of_the_span_are_left_in_their_order() -> None:
    plan = FieldPlan(MERGED)
    for _ in range(2):
        assert plan.of({"agent": "a", "x": 1}) == Fields(agent_name=("agent",))
        assert plan.of({"agent": "a", "name": "n"}) == Fields(agent_name=("name", "agent"))


@pytest.mark.slow
def test_keys_that_senders_invent_take_a_bounded_memory() -> None:
    plan = FieldPlan(MERGED)
    tracemalloc.start()
    try:
        for number in range(2_000):
            plan.of({f"{number}" * 2_000: 1})
            plan.of({f"key {number}": 1})
        assert tracemalloc.get_traced_memory()[0] < 2 << 20
    finally:
        tracemalloc.stop()

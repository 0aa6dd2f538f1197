"""The evidence: equal to its simple form, and rarely large while the bounds hold."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.traffic.baseline import Bound
from pathgauge.collector.core.traffic.evidence import FACTORS, Evidence, gain

BOUNDS = (Bound("a", 0.02, 0.5), Bound("b", 0.3, 0.25), Bound("c", 0.9, 0.25))


class SimpleForm:
    """Each detector of each bet is updated with each invocation."""

    def __init__(self) -> None:
        self.values = {(bound, factor): 0.0 for bound in BOUNDS for factor in FACTORS}

    def update(self, happened: set[str], weight: float) -> float:
        for (bound, factor), value in self.values.items():
            step = gain(bound.limit, factor) if bound.key in happened else factor
            self.values[bound, factor] = (value + weight) * step
        return sum(bound.weight * value for (bound, _), value in self.values.items()) / len(FACTORS)


@settings(deadline=None)
@given(st.lists(st.tuples(st.sets(st.sampled_from("abc")), st.floats(0, 5)), max_size=60))
def test_the_evidence_is_that_of_the_simple_form(course: list[tuple[set[str], float]]) -> None:
    evidence, simple = Evidence(BOUNDS), SimpleForm()
    for happened, weight in course:
        found = evidence.update(evidence.places(sorted(happened)), weight)
        assert found == pytest.approx(simple.update(happened, weight), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("limit", [0.01, 0.3, 0.9])
@pytest.mark.parametrize("factor", FACTORS)
def test_a_bet_is_fair_at_the_limit_and_loses_below(limit: float, factor: float) -> None:
    def expected(share: float) -> float:
        return share * gain(limit, factor) + (1 - share) * factor

    assert expected(limit) == pytest.approx(1)
    assert expected(0.9 * limit) < 1 < expected(1.05 * limit)


def test_at_the_limits_chance_brings_evidence_as_rarely_as_it_says() -> None:
    luck, alarms, days = random.Random(4), 0, 30.0
    for _ in range(100):
        evidence = Evidence(BOUNDS)
        for _ in range(100):
            happened = [bound.key for bound in BOUNDS if luck.random() < bound.limit]
            if evidence.update(evidence.places(happened), 0.1) >= days:
                alarms += 1
                break
    assert alarms <= 100 * 10 / days


def test_the_strongest_bound_is_the_one_that_was_exceeded_most() -> None:
    evidence = Evidence(BOUNDS)
    for _ in range(20):
        evidence.update(evidence.places(["b", "c"]), 0.1)
    assert evidence.strongest()[0].key == "b"


def test_evidence_continues_exactly_from_its_state() -> None:
    evidence = Evidence(BOUNDS)
    for number in range(50):
        evidence.update(evidence.places("ac" if number % 7 else "b"), 0.01)
    restored = Evidence.restore(BOUNDS, json.loads(json.dumps(evidence.state())))
    assert [restored.update((0,), 0.3) for _ in range(9)] == [
        evidence.update((0,), 0.3) for _ in range(9)
    ]

"""Counting in bounded memory."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from pathgauge.collector.core.traffic.counts import CAPACITY, Counts

HOUR = 3600.0


def test_a_sketch_never_counts_too_little_and_its_error_is_bounded() -> None:
    luck, counts, exact = random.Random(1), Counts(0.0), Counter[str]()
    for number in range(20_000):
        key = f"path {int(luck.paretovariate(0.8))}"
        exact[key] += 1
        counts.add([key], number * 60.0)
    counts.close_block()
    kept = counts.events()
    assert len(kept) == CAPACITY["path"]
    assert all(counts.certain(key) <= exact[key] <= counts.count(key) for key in kept)
    bound = 20_000 / CAPACITY["path"]
    assert max(counts.count(key) - exact[key] for key in kept) <= bound
    assert {key for key, count in exact.items() if count > bound} <= set(kept)


def hourly(shares: list[float], traffic: list[int], seed: int) -> Counts:
    """An event with these shares in turn, an hour each, and so many invocations in each hour."""
    luck, counts = random.Random(seed), Counts(0.0)
    for hour in range(400):
        share, number = shares[hour % len(shares)], traffic[hour % len(traffic)]
        for place in range(number):
            happens = luck.random() < share
            counts.add(["tool a"] if happens else [], (hour + place / number) * HOUR)
    counts.close_block()
    return counts


@pytest.mark.parametrize("traffic", [[60], [30, 120], [120, 30]])
def test_the_wander_of_a_share_is_measured_without_sampling_error(traffic: list[int]) -> None:
    measured = hourly([0.2, 0.4], traffic, 2).wander("tool a")
    assert measured == pytest.approx(0.1, abs=0.025)


def test_a_constant_share_does_not_wander() -> None:
    assert max(hourly([0.3], [60], seed).wander("tool a") for seed in range(5)) < 0.03


def test_counts_continue_exactly_from_their_state() -> None:
    luck, counts = random.Random(3), Counts(0.0)
    for number in range(500):
        counts.add([f"tool {luck.randrange(60)}"], number * 100.0)
    restored = Counts.restore(json.loads(json.dumps(counts.state())))
    for number in range(500, 1000):
        key = f"tool {luck.randrange(60)}"
        counts.add([key], number * 100.0)
        restored.add([key], number * 100.0)
    assert restored.state() == counts.state()


def test_merged_counts_are_the_sum_and_can_weigh_less() -> None:
    old, new = Counts(0.0), Counts(100.0)
    for number in range(10):
        old.add(["tool a"], number)
        new.add(["tool b"], 100.0 + number)
    merged = Counts(0.0)
    merged.merge(old, 0.5)
    merged.merge(new)
    assert (merged.total, merged.count("tool a"), merged.count("tool b")) == (15, 5, 10)
    assert (merged.started, merged.ended, merged.items("tool")) == (0.0, 109.0, 15)

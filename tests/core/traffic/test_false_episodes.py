"""Simulated years without a change: at most one false episode in an agent's year, in fact fewer.

The mix of tasks wanders from hour to hour and differs between day, night and weekend; each course
includes the learning of its baseline. `make noise` simulates twenty years for each rate.
"""

from __future__ import annotations

import os

import pytest

from pathgauge.collector.core.traffic.drift import TrafficDrift
from support.simulated_traffic import SimulatedAgent

YEAR_HOURS = 8766


def false_episodes(rate: float, seeds: range, years: float) -> int:
    opened = 0
    for seed in seeds:
        drift = TrafficDrift()
        for at, names in SimulatedAgent(seed, rate).runs(years * YEAR_HOURS):
            changes = drift.observe("", "planner", None, names, at)
            opened += sum(change.episode.outcome is None for change in changes)
    return opened


@pytest.mark.parametrize(
    ("rate", "seeds", "years"), [(1, range(2), 0.5), (10, range(2), 0.06), (100, range(1), 0.01)]
)
def test_usual_traffic_opens_no_episode(rate: float, seeds: range, years: float) -> None:
    assert false_episodes(rate, seeds, years) == 0


@pytest.mark.slow
@pytest.mark.skipif("NOISE" not in os.environ, reason="takes minutes; `make noise` runs it")
@pytest.mark.parametrize(
    ("rate", "seeds", "years"), [(1, range(20), 1), (10, range(40), 0.5), (100, range(40), 0.5)]
)
def test_twenty_years_of_usual_traffic_open_two_episodes_at_most(
    rate: float, seeds: range, years: float
) -> None:
    assert false_episodes(rate, seeds, years) <= 2

"""Memory of a series, as docs/alerting.md states it."""

from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Sequence
from random import Random

import pytest

from pathgauge.collector.core.drift.drift import SeriesKey
from pathgauge.collector.core.drift.measure import Measure
from pathgauge.collector.core.drift.policy import HOUR_S
from pathgauge.collector.core.drift.registry import Drifts
from pathgauge.collector.core.evidence.miss import Miss

pytestmark = pytest.mark.slow

SERIES = 2


def misses(hour: int, each: int) -> Sequence[Miss]:
    return [Miss("argument", f"tool{(hour + number) % 70}", "amount") for number in range(each)]


@pytest.mark.parametrize(("each", "max_kib"), [(0, 20), (1, 115), (3, 115)])
def test_a_series_with_two_versions_takes_no_more_than_documented(each: int, max_kib: int) -> None:
    drifts, random = Drifts(), Random(1)
    keys = [SeriesKey("planner", f"s{number}", "quality") for number in range(SERIES)]
    gc.collect()
    tracemalloc.start()
    for hour in range(500):
        version = "v1" if hour < 350 else "v2"
        for key in keys:
            score = float(random.random() < 0.9)
            found = misses(hour, each)
            drifts.observe(key, Measure(), score, hour * HOUR_S, version=version, misses=found)
    gc.collect()
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / SERIES < max_kib * 1024

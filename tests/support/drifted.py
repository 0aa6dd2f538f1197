"""Streams of scores that became worse."""

from __future__ import annotations

from pathgauge.collector.core.drift.drift import SeriesKey
from pathgauge.collector.core.drift.measure import Measure
from pathgauge.collector.core.drift.registry import Drifts
from pathgauge.collector.core.evidence.miss import Miss

WALL = 1_795_400_000.0
MEASURE = Measure(threshold=0.9)
MISS = Miss("missing", "search")


def drifted(*keys: SeriesKey, bad: int = 40) -> Drifts:
    """Each has 50 perfect scores, one a minute, and then `bad` scores of 0 that miss a call."""
    drifts = Drifts()
    for key in keys:
        for number in range(50 + bad):
            value, misses = (1.0, ()) if number < 50 else (0.0, (MISS,))
            drifts.observe(key, MEASURE, value, WALL + 60 * number, misses=misses)
    return drifts

"""Years of scores for the detectors behind the sink, without the sink: an evaluation takes 20 us
instead of 150. The alerts are read from the series that the sink would show.
"""

from __future__ import annotations

from random import Random

from pathgauge.collector.core.drift.drift import SeriesKey
from pathgauge.collector.core.drift.measure import Measure
from pathgauge.collector.core.drift.policy import DriftPolicy
from pathgauge.collector.core.drift.registry import Drifts
from pathgauge.collector.sinks.prometheus.drift.gauges import drift_gauges
from pathgauge.collector.sinks.prometheus.drift.recording import Explained
from pathgauge.collector.sinks.prometheus.labels import TenantLabel
from support.drift_course import SCRAPE_S, Wandering
from support.drift_pages import Page, firing
from support.sink_harness import NOW

LIMIT = DriftPolicy().evidence_days
MEASURE = Measure(threshold=1.0)


def false_pages(
    seed: str, seconds: float, traffic: Wandering, scrape_s: float = SCRAPE_S
) -> list[Page]:
    """The alerts that begin to fire while nothing but chance changes the scores of an agent. An
    alarm lasts for many scores, so less frequent scrapes miss none.
    """
    random, drifts, scrape = Random(seed), Drifts(), NOW
    before: set[Page] = set()
    pages: list[Page] = []
    keys = [SeriesKey("planner", f"s{number}", "answer") for number in range(traffic.scenarios)]
    for at, number, value in traffic.scores(random, NOW, NOW + seconds):
        if at >= scrape:  # what earlier scores have changed is seen before this one
            found = shown(drifts, scrape)
            pages += sorted(found - before)
            before, scrape = found, (at // scrape_s + 1) * scrape_s
        drifts.observe(keys[number], MEASURE, value, at)
    return pages + sorted(shown(drifts, scrape) - before)


def shown(drifts: Drifts, now: float) -> set[Page]:
    """The alerts that a scrape would raise."""
    streams = drifts.snapshot()
    if all(one.adjusted <= LIMIT for one in streams):
        return set()
    explained = [Explained(one, (), "") for one in streams]
    families = drift_gauges(explained, now, TenantLabel(False), limit_days=LIMIT)
    return firing(family.metric() for family in families)

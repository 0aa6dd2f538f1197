"""What the detectors have learned after some days, as rows of the store from which a sink goes on.

The days before a change are the same for all changes, and without the sink they take a tenth.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random

from pathgauge.collector.core.drift.drift import SeriesKey
from pathgauge.collector.core.drift.measure import Measure
from pathgauge.collector.core.drift.registry import Drifts
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.sinks.prometheus.drift.recording import NAME
from pathgauge.collector.sinks.prometheus.measure_fingerprint import MeasureFingerprints
from support.drift_course import DAY_S, HOUR_S, Sender
from support.sink_harness import NOW


def learned(
    seed: str, days: float, criterion: Criterion, senders: Sequence[Sender]
) -> list[Row] | None:
    """The states after so many days that end at `NOW`; `None` if an alarm is open then."""
    random, drifts, at = Random(seed), Drifts(), NOW - days * DAY_S
    scorer, rates = criterion.scorer, [one.per_hour for one in senders]
    measure = Measure(
        scorer.low,
        scorer.high,
        scorer.higher_is_better,
        threshold=criterion.threshold,
        fingerprint=MeasureFingerprints(None).of(criterion),
    )
    while True:
        at += random.expovariate(sum(rates) / HOUR_S)
        if at > NOW:
            break
        sender = random.choices(senders, rates)[0]
        key = SeriesKey("planner", sender.fields.get("scenario", "s0"), criterion.name)
        version = sender.fields.get("agent_version")
        drifts.observe(key, measure, sender.draw(random), at, version=version)
    if any(one.raised is not None for one in drifts.snapshot()):
        return None
    return [
        Row((NAME, key.tenant, key.agent, key.scenario, key.metric, key.judge), [_stored(state)])
        for key, state in drifts.pending()
    ]


def _stored(state: object) -> object:
    return json.loads(json.dumps(state))

"""Scores normalized to 0..1, and the buckets of their histograms."""

from __future__ import annotations

import math

from pathgauge.collector.sinks.prometheus.durable_series import Buckets
from pathgauge.scorers.types import Scorer

SCORE_BUCKETS = (0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1)
"""Counted and stored. Scrapes see some of them, as most series of `/metrics` are these."""
GRADED = Buckets.of(SCORE_BUCKETS, (0, 0.5, 0.7, 0.9, 0.99))
"""Shown of scores that have values between 0 and 1. The last bucket, +Inf, holds those of 1."""
BINARY = Buckets.of(SCORE_BUCKETS, (0, 0.99))
"""Shown of scores that are 0 or 1: a bucket for each, and an empty one between them, so that a
quantile is close to one of the two.
"""


def is_bounded(scorer: Scorer) -> bool:
    """Whether the range of the scorer is finite; scores of others cannot be normalized."""
    return math.isfinite(scorer.high - scorer.low) and scorer.high > scorer.low


def normalized(value: float, scorer: Scorer) -> float:
    """The place of a score in the range of its scorer, from 0 to 1."""
    return min(1.0, max(0.0, (value - scorer.low) / (scorer.high - scorer.low)))

"""The options of the drift detection, with their defaults, and its units of time."""

from __future__ import annotations

from dataclasses import dataclass

HOUR_S = 3600
DAY_S = 86_400
WEEK_S = 7 * DAY_S

MAX_WEIGHT_DAYS = 30.0
"""The time between two values counts for at most this. Otherwise the first value after a year of
silence would raise an alarm. A smaller weight makes false alarms rarer, never more frequent.
"""


MAX_BACK_S = HOUR_S
"""A clock that goes back by more was wrong before, such as a day ahead. Then time goes on from
there. Otherwise no time would pass, and no evidence could grow, until the wrong time has come.
"""


@dataclass(frozen=True, slots=True)
class DriftPolicy:
    """When an alarm is raised and ends, and how a baseline is learned."""

    evidence_days: float = 365.0
    """An alarm is raised above this evidence. It is also the mean time between false alarms of one
    series, in days, as long as scores are no worse than the baseline.
    """
    recovery: float = 1000.0
    """The evidence for recovery that ends an alarm, as a factor."""
    learn_days: int = 7
    """A baseline is learned from the scores of so many days,"""
    max_learn_days: int = 28
    """or from as many as needed for `enough_scores`, but no more than these."""
    enough_scores: int = 2000
    min_scores: int = 50
    """There is no learned baseline before so many scores,"""
    min_hours: int = 24
    """and so many hours with traffic."""
    margin: float = 0.01
    """The least distance of a learned baseline from the mean, as a share of the range."""
    max_fall_per_week: float = 0.01
    """How fast a learned baseline may follow a decline."""
    version_head_days: float = 11.0
    """The evidence that a new version starts with: a change is most likely at a rollout. The
    chance of a false alarm at a rollout is at most this divided by `evidence_days`.
    """
    version_days: float = 3.0
    """A new version is compared with the previous one for at least so many days, and until it has a
    learned baseline of its own.
    """

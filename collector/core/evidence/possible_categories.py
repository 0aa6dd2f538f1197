"""The categories that a failure can have, by the criteria that it may fail.

Counters start at 0 before the first failure, so these must be known before any score.
"""

from __future__ import annotations

from itertools import chain

from pathgauge.collector.core.evidence.categories import (
    CATEGORIES,
    OF_INVOCATIONS,
    OF_TRAJECTORIES,
    Category,
    category_of,
)
from pathgauge.scorers.composite.agent_view import OfAgent
from pathgauge.scorers.composite.composite import Composite
from pathgauge.scorers.types import Scorer


def possible_categories(scorer: Scorer) -> frozenset[Category]:
    """The categories of a failure of a criterion with this scorer. One that compares trajectories
    is not told from others that need a reference.
    """
    return _of(scorer).union(OF_INVOCATIONS)


def _of(scorer: Scorer) -> frozenset[Category]:
    if scorer.name == "failure_category":
        return frozenset(CATEGORIES)
    parts: list[Scorer] = []
    if isinstance(scorer, Composite):
        parts = [member.scorer for member in scorer.of]
    elif isinstance(scorer, OfAgent):
        parts = [scorer.scorer]
    own = {category_of(scorer)}
    if scorer.needs_reference and not parts:
        own.update(OF_TRAJECTORIES)
    return frozenset(own.union(chain.from_iterable(map(_of, parts))))

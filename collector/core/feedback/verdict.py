"""What an answer means: pass, fail, or neither.

A label that is known decides, unless it is only the number of a rating. Otherwise a rating does, by
its place on its scale. A rating in the middle is no verdict, and neither is one whose scale is
unknown: to guess would be to make up ground truth.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from pathgauge.collector.core.feedback.answer import Answer, Scale

PASSED = frozenset(
    {
        *("pass", "passed", "thumbs_up", "up", "+1", "1", "👍", "good", "great", "positive"),
        *("correct", "yes", "true", "helpful", "like", "liked", "accept", "accepted"),
        *("approve", "approved", "satisfied", "resolved"),
    }
)
FAILED = frozenset(
    {
        *("fail", "failed", "thumbs_down", "down", "-1", "0", "👎", "bad", "poor", "negative"),
        *("incorrect", "wrong", "no", "false", "unhelpful", "not_helpful", "dislike", "disliked"),
        *("reject", "rejected", "disapproved", "unsatisfied", "dissatisfied", "unresolved"),
    }
)
_NUMBERS = frozenset({"+1", "1", "-1", "0"})
"""Labels that are numbers. Beside a rating they repeat it: one of five stars is no pass."""
_UNIT = Scale(0.0, 1.0)
_NEAR = 1e-9
"""The part of a scale within which a rating is in the middle."""


@dataclass(frozen=True, slots=True)
class VerdictRules:
    """How answers become verdicts."""

    labels: Mapping[str, bool] = field(default_factory=lambda: MappingProxyType({}))
    """More labels, in lower case; they take precedence over the usual ones."""
    scales: Mapping[str, Scale] = field(default_factory=lambda: MappingProxyType({}))
    """The scales of ratings, by the name of the answer."""
    middle: float = 0.5
    """The part of a scale above which a rating passes, and below which it fails."""

    def verdict(self, answer: Answer) -> bool | None:
        """Whether the person says pass; `None`: neither pass nor fail."""
        if answer.label is not None:
            found = self._of_label(answer.label, is_rated=answer.rating is not None)
            if found is not None:
                return found
        return None if answer.rating is None else self._of_rating(answer, answer.rating)

    def _of_label(self, label: str, *, is_rated: bool) -> bool | None:
        plain = label.strip().lower()
        if plain in self.labels:
            return self.labels[plain]
        if is_rated and plain in _NUMBERS:
            return None
        plain = plain.replace("-", "_").replace(" ", "_") if len(plain) > 2 else plain
        if plain in PASSED:
            return True
        return False if plain in FAILED else None

    def _of_rating(self, answer: Answer, rating: float) -> bool | None:
        scale = self.scales.get(answer.name) or answer.scale or _UNIT
        if not scale.low <= rating <= scale.high:
            return None
        # Without the length of the scale, which is not finite between huge numbers.
        middle = scale.low * (1 - self.middle) + scale.high * self.middle
        near = scale.high * _NEAR - scale.low * _NEAR
        if math.isclose(rating, middle, rel_tol=0.0, abs_tol=near):
            return None
        return rating > middle


def majority(verdicts: Iterable[bool | None]) -> bool | None:
    """What most people say; `None` if as many say pass as fail, or nobody says either."""
    balance = sum(1 if verdict else -1 for verdict in verdicts if verdict is not None)
    return None if balance == 0 else balance > 0

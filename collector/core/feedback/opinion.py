"""What people say of a run as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import NamedTuple

from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.feedback.pairs import by_person
from pathgauge.collector.core.feedback.verdict import VerdictRules


class Opinion(NamedTuple):
    """How many people call a run good, and how many bad."""

    good: int = 0
    bad: int = 0

    @property
    def verdict(self) -> bool | None:
        """What most of them say; `None` for a tie, and if nobody says anything."""
        return None if self.good == self.bad else self.good > self.bad


NOBODY = Opinion()
"""What is said of a run that nobody has answered."""


def opinion(rules: VerdictRules, answers: Iterable[Answer], criteria: Set[str]) -> Opinion:
    """Count the people. Answers about one of the criteria are not about the run."""
    verdicts = list(by_person(rules, answers, "", criteria))
    return Opinion(verdicts.count(True), verdicts.count(False))

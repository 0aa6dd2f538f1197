"""The verdict on several numbered items: a majority for each item, and the mean over all items."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pathgauge.scorers.judges.answers import Item, Items
from pathgauge.scorers.judges.samples import SampleResults, is_decided, majority
from pathgauge.scorers.judges.verdicts import MAX_REASONING, Verdict, one_line, with_samples
from pathgauge.scorers.types import Json, Score


@dataclass(frozen=True)
class Checklist(Verdict[Items]):
    """The mean over all items. There is no value as long as one item has no majority."""

    answer: type[Items]
    texts: tuple[str, ...]
    """The text of each item, in the order of their numbers."""
    values: Mapping[str, float | None]
    """The value of each label; `None` excludes an item from the mean. Labels with the same value
    are counted together in a vote.
    """
    plural: str
    """The name of the items, such as `rubrics`."""

    def is_decided(self, answers: Sequence[Items], left: int, requested: int) -> bool:
        """Whether every item has a majority, or one item cannot get one."""
        votes = self._votes(answers)
        decided = [is_decided(labels, left, requested) for labels in votes]
        return all(decided) or any(
            done and majority(labels, requested) is None
            for done, labels in zip(decided, votes, strict=True)
        )

    def score(self, results: SampleResults[Items]) -> Score:
        """The mean. The details have each item with its verdict and a reasoning."""
        votes = self._votes(results.answers)
        majorities = [majority(labels, results.requested) for labels in votes]
        winners = [winner for winner in majorities if winner is not None]
        if undecided := len(majorities) - len(winners):
            line = f"no majority on {undecided} of {len(votes)} {self.plural}"
            return with_samples(results.undecided(line), results)
        agreement = statistics.mean(
            labels.count(winner) / len(labels)
            for labels, winner in zip(votes, winners, strict=True)
        )
        return with_samples(self._mean(results, winners), results, agreement=float(agreement))

    def _mean(self, results: SampleResults[Items], winners: Sequence[str]) -> Score:
        details = {
            self.plural: [
                self._details(results, index, winner) for index, winner in enumerate(winners)
            ]
        }
        values = [value for winner in winners if (value := self.values[winner]) is not None]
        if not values:
            return Score.not_evaluated(
                "not_applicable", f"none of {len(winners)} {self.plural} applies", **details
            )
        return Score(float(statistics.mean(values)), None, self._explanation(winners), details)

    def _votes(self, answers: Sequence[Items]) -> list[list[str]]:
        """For each item the votes of all answers."""
        rows = [[self._vote(item) for item in answer.in_order()] for answer in answers]
        return [[row[index] for row in rows] for index in range(len(self.texts))]

    def _vote(self, item: Item) -> str:
        """The first of all labels with the same value as the item's label."""
        value = self.values[item.verdict]
        return next(label for label, other in self.values.items() if other == value)

    def _explanation(self, winners: Sequence[str]) -> str:
        counts = Counter(winners)
        parts = [f"{counts[vote]} {vote.replace('_', ' ')}" for vote in self.values if counts[vote]]
        line = f"{', '.join(parts)} of {len(winners)} {self.plural}"
        for text, vote in zip(self.texts, winners, strict=True):
            if self.values[vote] == 0:
                return f"{line}; {one_line(text)}"
        return line

    def _details(self, results: SampleResults[Items], index: int, vote: str) -> Json:
        """One item, with the reasoning of the first answer that voted like the majority."""
        items = (answer.in_order()[index] for answer in results.answers)
        item = next(item for item in items if self._vote(item) == vote)
        return {
            "text": self.texts[index],
            "verdict": item.verdict,
            "reasoning": item.reasoning[:MAX_REASONING],
        }

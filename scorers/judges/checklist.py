"""Checklists: for several numbered things the verdicts of all samples come in, a majority on each
of them and their mean go out.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pathgauge.scorers.judges.answers import Item, Items
from pathgauge.scorers.judges.samples import Panel, is_decided, majority
from pathgauge.scorers.judges.verdicts import MAX_REASONING, Verdict, one_line, with_panel
from pathgauge.scorers.types import Json, Score


@dataclass(frozen=True)
class Checklist(Verdict[Items]):
    """The mean over things on each of which the samples agree by majority; there is none as long as
    they disagree on one.
    """

    answer: type[Items]
    things: tuple[str, ...]
    """What is judged, in the order of their numbers."""
    values: Mapping[str, float | None]
    """What each label is worth; `None` leaves a thing out. Labels of the same worth are one vote.
    """
    called: str
    """What the things are called, in the plural."""

    def is_decided(self, answers: Sequence[Items], left: int, requested: int) -> bool:
        """Whether there is a majority on everything, or can be none on one thing."""
        votes = self._votes(answers)
        decided = [is_decided(labels, left, requested) for labels in votes]
        return all(decided) or any(
            done and majority(labels, requested) is None
            for done, labels in zip(decided, votes, strict=True)
        )

    def score(self, panel: Panel[Items]) -> Score:
        """The mean, and in the details every thing with its verdict and a reasoning for it."""
        votes = self._votes(panel.answers)
        winners = [majority(labels, panel.requested) for labels in votes]
        if undecided := [
            thing for thing, winner in zip(self.things, winners, strict=True) if winner is None
        ]:
            line = f"no majority on {len(undecided)} of {len(winners)} {self.called}"
            return with_panel(panel.undecided(line), panel)
        decided = [winner for winner in winners if winner is not None]
        values = [value for value in map(self._worth, decided) if value is not None]
        agreement = statistics.mean(
            labels.count(winner) / len(labels)
            for labels, winner in zip(votes, decided, strict=True)
        )
        details = {
            self.called: [self._told(panel, index, winner) for index, winner in enumerate(decided)]
        }
        if not values:
            score = Score.not_evaluated(
                "not_applicable", f"none of {len(winners)} {self.called} applies", **details
            )
        else:
            score = Score(float(statistics.mean(values)), None, self._line(decided), details)
        return with_panel(score, panel, agreement=float(agreement))

    def _votes(self, answers: Sequence[Items]) -> list[list[str]]:
        """For each thing the votes of all answers."""
        rows = [[self._vote(item) for item in answer.in_order()] for answer in answers]
        return [[row[index] for row in rows] for index in range(len(self.things))]

    def _vote(self, item: Item) -> str:
        """What all labels of the same worth are called: the first of them."""
        worth = self.values[item.verdict]
        return next(label for label, value in self.values.items() if value == worth)

    def _worth(self, vote: str) -> float | None:
        return self.values[vote]

    def _line(self, votes: Sequence[str]) -> str:
        counts = Counter(votes)
        line = (
            ", ".join(
                f"{counts[vote]} {vote.replace('_', ' ')}" for vote in self.values if vote in counts
            )
            + f" of {len(votes)} {self.called}"
        )
        worst = [
            thing for thing, vote in zip(self.things, votes, strict=True) if self._worth(vote) == 0
        ]
        return f"{line}; {one_line(worst[0])}" if worst else line

    def _told(self, panel: Panel[Items], index: int, vote: str) -> Json:
        item = next(
            item for answer in panel.answers if self._vote(item := answer.in_order()[index]) == vote
        )
        return {
            "text": self.things[index],
            "verdict": item.verdict,
            "reasoning": item.reasoning[:MAX_REASONING],
        }

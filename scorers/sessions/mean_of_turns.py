"""Scores a session by the mean of another criterion over its turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.matching.measures import mean_of
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.session_protocol import SessionTurn
from pathgauge.scorers.sessions.whole_session import WholeSession
from pathgauge.scorers.types import Json, Reference, Score, Scorer


@dataclass(frozen=True)
class ScoredCriterion:
    """A criterion for single invocations."""

    # Pydantic validates the options of a scorer, and knows no schema for scorers.
    __pydantic_config__: ClassVar[Mapping[str, bool]] = {"arbitrary_types_allowed": True}

    name: str
    scorer: Scorer


@dataclass(frozen=True)
class MeanOfTurns(WholeSession):
    """The mean of another criterion over the turns that have a value of it. Its range and direction
    are those of the criterion.
    """

    name: ClassVar[str] = "mean_of_turns"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    of: ScoredCriterion | None = None
    """The criterion; in a configuration, its name."""

    def __post_init__(self) -> None:
        if self.of is not None:
            for name in ("low", "high", "higher_is_better"):
                object.__setattr__(self, name, getattr(self.of.scorer, name))

    @property
    def missing_option(self) -> str:
        """The option without which there is never a score."""
        return "" if self.of is not None else "of"

    def score_session(self, turns: Sequence[SessionTurn], reference: Reference | None) -> Score:
        """Average the scores that the turns have. The reference is not used."""
        if self.of is None:
            return Score.not_evaluated("not_applicable", "no criterion is named")
        found = [turn.scores.get(self.of.name) for turn in turns]
        values = [value for value in found if value is not None]
        if not values:
            text = f"{self.of.name} scored none of {counted(len(turns), 'turn')}"
            return Score.not_evaluated("undefined", text)
        mean = min(max(mean_of(values), self.low), self.high)
        details: dict[str, Json] = {"turns": found}
        explanation = f"{self.of.name} over {len(values)} of {counted(len(turns), 'turn')}"
        return Score(mean, None, explanation, details)

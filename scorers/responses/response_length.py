"""Scores whether the final response is neither too short nor too long."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

Unit = Literal["characters", "words"]
UNITS: tuple[Unit, ...] = get_args(Unit)


@dataclass(frozen=True)
class ResponseLength(Share):
    """1 if the length of the response is within all limits, else 0."""

    name: ClassVar[str] = "response_length"
    binary: ClassVar[bool] = True

    min_characters: int | None = None
    """Minimum characters, blanks included."""
    max_characters: int | None = None
    """Maximum characters, blanks included."""
    min_words: int | None = None
    """Minimum words. White space separates words, so text in Chinese, Japanese or Thai needs limits
    in characters.
    """
    max_words: int | None = None
    """Maximum words."""

    def __post_init__(self) -> None:
        for unit in UNITS:
            low, high = self._limits(unit)
            for option, limit in ((f"min_{unit}", low), (f"max_{unit}", high)):
                if limit is not None and limit < 0:
                    raise ValueError(f"{option}: found {limit}, expected a number from 0")
            if low is not None and high is not None and low > high:
                raise ValueError(
                    f"min_{unit}, max_{unit}: found {low} and {high}, expected a maximum that is"
                    " not below the minimum"
                )

    @property
    def missing_option(self) -> str:
        """What must be configured before there can be a score."""
        return "" if any(self._limits(unit) != (None, None) for unit in UNITS) else "limit"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        limited = [unit for unit in UNITS if self._limits(unit) != (None, None)]
        if not limited:
            return Score.not_evaluated("no_reference", "no limit of the length is given")
        response = actual.final_response
        if response is None:
            return Score.not_evaluated("response_not_recorded")
        lengths: dict[Unit, int] = {"characters": len(response), "words": len(response.split())}
        problems = [problem for unit in limited if (problem := self._problem(unit, lengths[unit]))]
        within = ", ".join(counted(lengths[unit], unit[:-1]) for unit in limited)
        details: dict[str, Json] = {str(unit): length for unit, length in lengths.items()}
        return Score(float(not problems), None, "; ".join(problems) or within, details)

    def _problem(self, unit: Unit, length: int) -> str:
        low, high = self._limits(unit)
        found = counted(length, unit[:-1])
        if low is not None and length < low:
            return f"{found}, expected at least {low}"
        if high is not None and length > high:
            return f"{found}, expected at most {high}"
        return ""

    def _limits(self, unit: Unit) -> tuple[int | None, int | None]:
        if unit == "words":
            return self.min_words, self.max_words
        return self.min_characters, self.max_characters

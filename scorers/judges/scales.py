"""The scales of scores: for each, the schema of the answers and how they become a score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pathgauge.scorers.judges import answers
from pathgauge.scorers.judges.answers import Holds, Number
from pathgauge.scorers.judges.verdicts import Average, Grade, Verdict, Vote


def boolean() -> Verdict[Any]:
    """True or false by majority: 1 or 0."""
    return Vote(Holds, _holds, {True: 1.0, False: 0.0}, {True: "true", False: "false"})


def continuous(low: float, high: float, average: Average) -> Verdict[Any]:
    """Any number in a range, averaged."""
    return Grade(answers.number(low, high), low, high, average)


def choices(values: Sequence[float], average: Average) -> Verdict[Any]:
    """One of several numbers: the majority of two (they mean yes and no), the average of more."""
    if len(values) == 2:
        return Vote(
            answers.choice(*values),
            _score,
            {value: value for value in values},
            {value: f"{value:g}" for value in values},
        )
    return Grade(answers.choice(*values), min(values), max(values), average)


def checked_choices(option: str, values: Sequence[float]) -> tuple[float, ...]:
    """The choices as floats. Raises `ValueError` unless they are at least 2 different numbers."""
    numbers = tuple(float(value) for value in values)
    if len(set(numbers)) < max(2, len(numbers)) or not all(map(math.isfinite, numbers)):
        found = ", ".join(f"{value:g}" for value in numbers) or "nothing"
        raise ValueError(f"{option}: found {found}, expected several different numbers")
    return numbers


def _holds(answer: Holds) -> bool:
    return answer.score


def _score(answer: Number) -> float:
    return answer.score

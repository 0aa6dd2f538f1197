"""Scales: which scores a judge may give comes in, the form of its answers and what becomes of them
goes out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from pathgauge.scorers.judges import answers
from pathgauge.scorers.judges.answers import Holds, Number
from pathgauge.scorers.judges.verdicts import Average, Grade, Verdict, Vote


def boolean() -> Verdict[Any]:
    """Whether it holds, by the majority: 1 or 0."""
    return Vote(Holds, _holds, {True: 1.0, False: 0.0}, {True: "true", False: "false"})


def continuous(low: float, high: float, average: Average) -> Verdict[Any]:
    """Any number of a range, averaged."""
    return Grade(answers.number(low, high), low, high, average)


def choices(values: Sequence[float], average: Average) -> Verdict[Any]:
    """One of several numbers: of two the majority, as they are a yes and a no; of more the average."""
    if len(values) == 2:
        return Vote(
            answers.choice(*values),
            _score,
            {value: value for value in values},
            {value: f"{value:g}" for value in values},
        )
    return Grade(answers.choice(*values), min(values), max(values), average)


def checked_choices(option: str, values: Sequence[float]) -> tuple[float, ...]:
    """The numbers to choose from. Raises `ValueError` for numbers that are no choice."""
    numbers = tuple(float(value) for value in values)
    if len(set(numbers)) < max(2, len(numbers)) or not all(map(math.isfinite, numbers)):
        raise ValueError(
            f"{option}: found {', '.join(f'{value:g}' for value in numbers) or 'nothing'}, expected"
            " several different numbers"
        )
    return numbers


def _holds(answer: Holds) -> bool:
    return answer.score


def _score(answer: Number) -> float:
    return answer.score

"""How well a judge agrees with people: pairs of a label and a verdict come in, the usual measures
of agreement go out.

A verdict that is `None` was not given; it is counted, and nothing else is made of it. A measure
that these pairs do not define is `None`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from math import fsum


@dataclass(frozen=True, slots=True)
class Quality:
    """What all labels have in common."""

    labelled: int
    """Pairs."""
    answered: int
    """Pairs with a verdict: the ones that all measures are about."""
    agreement: float | None
    """The share of verdicts that are as the label says."""
    kappa: float | None
    """Cohen's kappa: 1 is full agreement, 0 what chance gives. `None` where all labels and verdicts
    are one: chance gives that, too.
    """


@dataclass(frozen=True, slots=True)
class BinaryQuality(Quality):
    """Of verdicts that are yes or no. Precision, recall and F1 are those of yes."""

    balanced_accuracy: float | None
    """The mean of the recalls of yes and of no."""
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True, slots=True)
class OrdinalQuality(Quality):
    """Of verdicts that are numbers. Kappa is weighted by the squares of the differences."""

    mean_absolute_error: float | None
    bias: float | None
    """How much higher than the labels the verdicts are in the mean."""


def binary(pairs: Sequence[tuple[bool, bool | None]]) -> BinaryQuality:
    """Of labels and verdicts that are yes or no."""
    given = [(label, verdict) for label, verdict in pairs if verdict is not None]
    yes = [verdict for label, verdict in given if label]
    no = [verdict for label, verdict in given if not label]
    right, wrong = yes.count(True), no.count(True)
    recall, recall_of_no = _share(right, len(yes)), _share(no.count(False), len(no))
    return BinaryQuality(
        len(pairs),
        len(given),
        agreement=_share(right + no.count(False), len(given)),
        kappa=kappa(given),
        balanced_accuracy=None
        if recall is None or recall_of_no is None
        else (recall + recall_of_no) / 2,
        precision=_share(right, right + wrong),
        recall=recall,
        f1=_share(2 * right, len(yes) + right + wrong),
    )


def ordinal(pairs: Sequence[tuple[float, float | None]]) -> OrdinalQuality:
    """Of labels and verdicts that are numbers of one scale."""
    given = [(label, verdict) for label, verdict in pairs if verdict is not None]
    off = [verdict - label for label, verdict in given]
    return OrdinalQuality(
        len(pairs),
        len(given),
        agreement=_share(sum(abs(difference) < 1e-9 for difference in off), len(given)),
        kappa=kappa(given),
        mean_absolute_error=fsum(map(abs, off)) / len(off) if off else None,
        bias=fsum(off) / len(off) if off else None,
    )


def kappa(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Cohen's kappa of two numbers for each thing, weighted by the squares of their differences; of
    yes and no that is the plain one.

    1 less the mean squared difference, over the one of the same numbers in all other pairings.
    `None` where that is 0.
    """
    if not pairs:
        return None
    left, right = [Fraction(one) for one, _ in pairs], [Fraction(other) for _, other in pairs]
    by_chance = (
        statistics.pvariance(left)
        + statistics.pvariance(right)
        + (statistics.mean(left) - statistics.mean(right)) ** 2
    )
    observed = statistics.mean((one - other) ** 2 for one, other in zip(left, right, strict=True))
    return None if by_chance == 0 else float(1 - observed / by_chance)


def measures(quality: Quality) -> dict[str, float | int | None]:
    """All of it by name."""
    return {field.name: getattr(quality, field.name) for field in fields(quality)}


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None

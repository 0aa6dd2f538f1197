"""Agreement between the verdicts of a judge and the labels of people.

A verdict of `None` is missing: it is counted, and no measure uses it. A measure that is undefined
for the pairs is `None`.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from math import fsum


@dataclass(frozen=True, slots=True)
class Quality:
    """The measures for all kinds of labels."""

    labelled: int
    """Number of pairs."""
    answered: int
    """Number of pairs with a verdict. All measures use these only."""
    agreement: float | None
    """The share of verdicts equal to the label."""
    kappa: float | None
    """Cohen's kappa: 1 is full agreement, 0 is agreement by chance. `None` if all labels and
    verdicts are the same value, since chance alone gives that.
    """


@dataclass(frozen=True, slots=True)
class BinaryQuality(Quality):
    """For yes/no verdicts. Precision, recall and F1 refer to yes."""

    balanced_accuracy: float | None
    """The mean of the recall of yes and the recall of no."""
    precision: float | None
    recall: float | None
    f1: float | None


@dataclass(frozen=True, slots=True)
class OrdinalQuality(Quality):
    """For numeric verdicts. Kappa has quadratic weights."""

    mean_absolute_error: float | None
    bias: float | None
    """The mean of verdict minus label."""


def binary(pairs: Sequence[tuple[bool, bool | None]]) -> BinaryQuality:
    """The measures for yes/no labels and verdicts."""
    answered = [(label, verdict) for label, verdict in pairs if verdict is not None]
    on_yes = [verdict for label, verdict in answered if label]
    on_no = [verdict for label, verdict in answered if not label]
    true_yes, false_yes, true_no = on_yes.count(True), on_no.count(True), on_no.count(False)
    recall = _ratio(true_yes, len(on_yes))
    recall_of_no = _ratio(true_no, len(on_no))
    balanced_accuracy = None
    if recall is not None and recall_of_no is not None:
        balanced_accuracy = (recall + recall_of_no) / 2
    return BinaryQuality(
        len(pairs),
        len(answered),
        agreement=_ratio(true_yes + true_no, len(answered)),
        kappa=kappa(answered),
        balanced_accuracy=balanced_accuracy,
        precision=_ratio(true_yes, true_yes + false_yes),
        recall=recall,
        f1=_ratio(2 * true_yes, len(on_yes) + true_yes + false_yes),
    )


def ordinal(pairs: Sequence[tuple[float, float | None]]) -> OrdinalQuality:
    """The measures for labels and verdicts that are numbers of one scale."""
    answered = [(label, verdict) for label, verdict in pairs if verdict is not None]
    errors = [verdict - label for label, verdict in answered]
    return OrdinalQuality(
        len(pairs),
        len(answered),
        agreement=_ratio(sum(abs(error) < 1e-9 for error in errors), len(answered)),
        kappa=kappa(answered),
        mean_absolute_error=_ratio(fsum(map(abs, errors)), len(errors)),
        bias=_ratio(fsum(errors), len(errors)),
    )


def kappa(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Cohen's kappa of pairs of numbers, with quadratic weights; for yes and no, plain kappa.

    This is 1 - observed / expected: the mean squared difference of the pairs, divided by that of
    all possible pairings. `None` if the expected difference is 0.
    """
    if not pairs:
        return None
    left = [Fraction(first) for first, _ in pairs]
    right = [Fraction(second) for _, second in pairs]
    expected = (
        statistics.pvariance(left)
        + statistics.pvariance(right)
        + (statistics.mean(left) - statistics.mean(right)) ** 2
    )
    observed = statistics.mean((a - b) ** 2 for a, b in zip(left, right, strict=True))
    return None if expected == 0 else float(1 - observed / expected)


def measures(quality: Quality) -> dict[str, float | int | None]:
    """All measures by name."""
    return {field.name: getattr(quality, field.name) for field in fields(quality)}


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None

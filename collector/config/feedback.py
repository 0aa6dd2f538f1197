"""The section `feedback`: what people say of runs, and how it is compared with criteria."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from pathgauge.collector.config.section import Section
from pathgauge.collector.core.documents.quantities import Count, Duration, at_least, parse_duration
from pathgauge.collector.core.feedback.answer import Scale
from pathgauge.collector.core.feedback.verdict import VerdictRules
from pathgauge.scorers.types import Json


def _scale(value: Json) -> Json:
    expected = "the worst and the best rating, such as [1, 5]"
    if not isinstance(value, list) or len(value) != 2:
        raise ValueError(expected)
    if not all(isinstance(one, int | float) and not isinstance(one, bool) for one in value):
        raise ValueError(expected)
    low, high = float(value[0]), float(value[1])
    if not low < high < float("inf") or low == float("-inf"):
        raise ValueError(expected)
    return Scale(low, high)


def _lower(labels: dict[str, str]) -> dict[str, str]:
    return {label.strip().lower(): verdict for label, verdict in labels.items()}


class Feedback(Section):
    """Answers of people. Times in seconds."""

    window: Annotated[Duration, at_least(parse_duration, "1h")] = 7 * 86_400.0
    """The agreement of criteria with people is that of the runs that they judged since then."""
    min_kappa: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] = 0.4
    """A judge departs from people if its kappa is certainly lower."""
    min_pairs: Count = 20
    """No alert is based on fewer runs."""
    labels: Annotated[dict[str, Literal["passed", "failed"]], AfterValidator(_lower)] = Field(
        default_factory=dict
    )
    """What labels mean, besides the usual ones."""
    scales: dict[str, Annotated[Scale, BeforeValidator(_scale)]] = Field(default_factory=dict)
    """The scale of ratings, by the name of the answer."""
    pass_above: Annotated[float, Field(gt=0, lt=1)] = 0.5
    """The part of its scale above which a rating means pass; below it, fail."""
    max_answers: Count = 100_000
    """The oldest of the tenant with the most answers give way."""

    def rules(self) -> VerdictRules:
        """How answers become verdicts."""
        labels = {label: verdict == "passed" for label, verdict in self.labels.items()}
        return VerdictRules(labels, dict(self.scales), self.pass_above)

"""The base class of judges that answer with a grade from 1 to 5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from pathgauge.scorers.authoring.options import check_choice
from pathgauge.scorers.judges import answers
from pathgauge.scorers.judges.model_judge import ModelJudge
from pathgauge.scorers.judges.verdicts import Average, Grade, Verdict
from pathgauge.scorers.types import Json


@dataclass(frozen=True)
class GradedJudge(ModelJudge):
    """The average of the grades of the samples. Higher is better."""

    version: ClassVar[str] = "1"
    low: ClassVar[float] = 1.0
    high: ClassVar[float] = 5.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    average: Average = "mean"
    """How to average several samples."""

    def __post_init__(self) -> None:
        check_choice("average", self.average, get_args(Average))
        super().__post_init__()

    def verdict(self, data: Mapping[str, Json]) -> Verdict[Any]:
        """A whole number from 1 to 5, averaged over the samples."""
        return Grade(answers.choice(1, 2, 3, 4, 5), self.low, self.high, self.average)

"""The base class of judges that answer with one of several labels, each of which has a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.judges import answers
from pathgauge.scorers.judges.answers import Label
from pathgauge.scorers.judges.model_judge import ModelJudge
from pathgauge.scorers.judges.prompt_members import legend, read_members
from pathgauge.scorers.judges.verdicts import Verdict, Vote
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score


@dataclass(frozen=True)
class LabelJudge(ModelJudge, Share):
    """The value of the label that has the majority of the samples."""

    question: ClassVar[str]
    """The instructions, which define the labels."""
    members: ClassVar[tuple[str, ...]]
    """The data to show."""
    optional: ClassVar[tuple[str, ...]] = ()
    """The data without which the question can still be answered."""
    labels: ClassVar[Mapping[str, float | None]]
    """The value of each label; `None`: what is asked does not apply."""

    @property
    def binary(self) -> bool:
        """Whether there is no value between 0 and 1."""
        return {0.0, 1.0, None}.issuperset(self.labels.values())

    def instruction_texts(self) -> tuple[str, ...]:
        """The question and a list of the data."""
        return (f"{self.question}\n\n{legend(self.members)}",)

    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """The members."""
        return read_members(self.members, actual, expected, self.optional)

    def verdict(self, data: Mapping[str, Json]) -> Verdict[Any]:
        """One of the labels."""
        words = {label: label for label in self.labels}
        return Vote(answers.label(*self.labels), label_of, self.labels, words)


def label_of(answer: Label) -> str:
    """The label that an answer gives."""
    return answer.verdict

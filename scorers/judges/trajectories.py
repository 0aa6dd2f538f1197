"""Judges of the trajectory: the tool calls of an invocation come in, whether they make sense goes
out; alone, or beside the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from pathgauge.scorers.authoring.options import check_choice
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.judges import scales
from pathgauge.scorers.judges.model_judge import ModelJudge
from pathgauge.scorers.judges.prompt_members import legend, shown
from pathgauge.scorers.judges.verdicts import Average, Verdict
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

_ACCURACY = """\
You are an expert labeler of data. You grade the accuracy of the trajectory of an AI agent: the tool calls that it made on the way to its
answer.

An accurate trajectory
- makes sense from step to step,
- shows clear progress,
- is relatively efficient, though it need not be perfectly efficient{reference}

Find out first what the trajectory was to achieve, from what the user asked and from the final answer; then grade it by that. Making no
tool call is accurate when none was needed."""

_EQUIVALENT = """,
- does the same as `expected_trajectory`: other calls, arguments or orders are fine where they mean the same."""


@dataclass(frozen=True)
class TrajectoryAccuracy(ModelJudge, Share):
    """1 when the tool calls make sense, progress and are efficient by the majority of the samples,
    else 0.
    """

    name: ClassVar[str] = "trajectory_accuracy"

    continuous: bool = False
    """Any number from 0 to 1 instead, averaged over the samples."""
    choices: tuple[float, ...] = ()
    """These numbers instead, averaged over the samples where there are more than two."""
    average: Average = "mean"
    """Of several samples."""

    def __post_init__(self) -> None:
        check_choice("average", self.average, get_args(Average))
        if self.choices and self.continuous:
            raise ValueError("choices: found beside continuous, expected one of them")
        if self.choices:
            object.__setattr__(self, "choices", scales.checked_choices("choices", self.choices))
            if not all(0 <= choice <= 1 for choice in self.choices):
                raise ValueError("choices: expected numbers from 0 to 1")
        super().__post_init__()

    members: ClassVar[tuple[str, ...]] = ("user_input", "trajectory", "response")
    reference: ClassVar[str] = "."

    def wordings(self) -> tuple[str, ...]:
        """What is accurate."""
        scale = (
            "how accurate it is" if self.continuous or self.choices else "whether it is accurate"
        )
        return (
            (
                f"{_ACCURACY.format(reference=self.reference)}\nThe score says"
                f" {scale}.\n\n{legend(self.members)}"
            ),
        )

    def shown(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """The question, the calls and the answer, where it was recorded."""
        return shown(self.members, actual, expected, optional=("response",))

    def verdict(self, shown: Mapping[str, Json]) -> Verdict[Any]:
        """As the options say."""
        if self.choices:
            return scales.choices(self.choices, self.average)
        return scales.continuous(0, 1, self.average) if self.continuous else scales.boolean()


@dataclass(frozen=True)
class TrajectoryAccuracyWithReference(TrajectoryAccuracy):
    """1 when the tool calls make sense and do the same as those of the reference by the majority of
    the samples, else 0.
    """

    name: ClassVar[str] = "trajectory_accuracy_with_reference"
    needs_reference: ClassVar[bool] = True
    members: ClassVar[tuple[str, ...]] = (
        "user_input",
        "expected_trajectory",
        "trajectory",
        "response",
    )
    reference: ClassVar[str] = _EQUIVALENT

    def shown(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """Both trajectories; the arguments of the agent's must be known where the reference has
        some to compare them with.
        """
        members = super().shown(actual, expected)
        if isinstance(members, Score) or expected is None:
            return members
        asked = [
            call for calls in (expected.tool_calls or (), *expected.alternatives) for call in calls
        ]
        if any(call.arguments is not None for call in asked) and any(
            call.arguments is None for call in actual.tool_calls
        ):
            return Score.not_evaluated(
                "args_not_recorded", "arguments not recorded, which the reference has"
            )
        return members

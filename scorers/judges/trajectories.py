"""Judges of the trajectory: whether the tool calls make sense, with or without a reference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, ClassVar, get_args

from pathgauge.scorers.authoring.options import check_choice
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.judges import scales
from pathgauge.scorers.judges.model_judge import ModelJudge
from pathgauge.scorers.judges.prompt_members import legend, read_members
from pathgauge.scorers.judges.verdicts import Average, Verdict
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

_ACCURACY = """\
You are an expert labeler of data. You grade the accuracy of the trajectory of an AI agent: the \
tool calls that it made on the way to its
answer.

An accurate trajectory
- makes sense from step to step,
- shows clear progress,
- is relatively efficient, though it need not be perfectly efficient{reference}

Find out first what the trajectory was to achieve, from what the user asked and from the final \
answer; then grade it by that. Making no
tool call is accurate when none was needed."""

_EQUIVALENT = """,
- does the same as `expected_trajectory`: other calls, arguments or orders are fine where they \
mean the same."""


@dataclass(frozen=True)
class TrajectoryAccuracy(ModelJudge, Share):
    """1 if the tool calls make sense, progress and are efficient by majority of the samples,
    else 0.
    """

    name: ClassVar[str] = "trajectory_accuracy"
    members: ClassVar[tuple[str, ...]] = ("user_input", "trajectory", "response")
    reference: ClassVar[str] = "."

    continuous: bool = False
    """Ask for any number from 0 to 1 instead, averaged over the samples."""
    choices: tuple[float, ...] = ()
    """Ask for one of these numbers instead; more than two are averaged over the samples."""
    average: Average = "mean"
    """How to average several samples."""

    def __post_init__(self) -> None:
        check_choice("average", self.average, get_args(Average))
        if self.choices and self.continuous:
            raise ValueError("choices: found together with continuous, expected only one of them")
        if self.choices:
            object.__setattr__(self, "choices", scales.checked_choices("choices", self.choices))
            if not all(0 <= choice <= 1 for choice in self.choices):
                raise ValueError("choices: expected numbers from 0 to 1")
        super().__post_init__()

    def instruction_texts(self) -> tuple[str, ...]:
        """The definition of an accurate trajectory."""
        scale = "whether it is accurate"
        if self.continuous or self.choices:
            scale = "how accurate it is"
        definition = _ACCURACY.format(reference=self.reference)
        return (f"{definition}\nThe score says {scale}.\n\n{legend(self.members)}",)

    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """Question, tool calls, and the answer if it was recorded."""
        return read_members(self.members, actual, expected, optional=("response",))

    def verdict(self, data: Mapping[str, Json]) -> Verdict[Any]:
        """The scale that the options select."""
        if self.choices:
            return scales.choices(self.choices, self.average)
        if self.continuous:
            return scales.continuous(0, 1, self.average)
        return scales.boolean()


@dataclass(frozen=True)
class TrajectoryAccuracyWithReference(TrajectoryAccuracy):
    """1 if the tool calls make sense and do the same as those of the reference by majority of the
    samples, else 0.
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

    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """Both trajectories. If the reference has arguments, the agent's must be recorded."""
        members = super().prompt_data(actual, expected)
        if isinstance(members, Score) or expected is None:
            return members
        reference = chain(expected.tool_calls or (), *expected.alternatives)
        has_arguments = any(call.arguments is not None for call in reference)
        if has_arguments and any(call.arguments is None for call in actual.tool_calls):
            return Score.not_evaluated(
                "args_not_recorded",
                "the reference has arguments, but not all of the agent's were recorded",
            )
        return members

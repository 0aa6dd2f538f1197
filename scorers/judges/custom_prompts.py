"""Judges with a user-defined question: a prompt, or criteria with a rating rubric."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, get_args

from pathgauge.scorers.authoring.options import FrozenMapping, check_choice, check_texts
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.judges import scales
from pathgauge.scorers.judges.model_judge import ModelJudge
from pathgauge.scorers.judges.prompt_members import (
    FROM_REFERENCE,
    legend,
    member_name,
    read_members,
)
from pathgauge.scorers.judges.prompt_template import Template, checked_members, template
from pathgauge.scorers.judges.verdicts import Average, Verdict
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score


@dataclass(frozen=True)
class LlmJudge(ModelJudge, Share):
    """The score that a model gives for your own prompt: a number in a range, or one of several."""

    name: ClassVar[str] = "llm_judge"

    prompt: str
    """The instructions. Variables such as `{response}` name the data to show."""
    inputs: tuple[str, ...] = ()
    """Data to show in addition to the variables of the prompt. Without inputs and variables, the
    question, the tool calls and the response are shown.
    """
    choices: tuple[float, ...] = ()
    """The scores to choose from, such as `[0, 0.5, 1]`. Two are decided by majority, more are
    averaged over the samples.
    """
    range: tuple[float, float] = (0.0, 1.0)
    """The lowest and the highest score, if there are no choices; averaged over the samples."""
    average: Average = "mean"
    """How to average several samples."""

    def __post_init__(self) -> None:
        check_choice("average", self.average, get_args(Average))
        check_texts("inputs", self.inputs)
        object.__setattr__(self, "inputs", tuple(self.inputs))
        if self.choices:
            object.__setattr__(self, "choices", scales.checked_choices("choices", self.choices))
            low, high = min(self.choices), max(self.choices)
        else:
            low, high = map(float, self.range)
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise ValueError(
                f"range: found {low:g} and {high:g}, expected a lower and a higher number"
            )
        _declare(self, low, high, self.read.members)
        super().__post_init__()

    @property
    def read(self) -> Template:
        """The parsed prompt."""
        return template(self.prompt, self.inputs)

    def instruction_texts(self) -> tuple[str, ...]:
        """The prompt and a list of the data."""
        return (self.read.instructions,)

    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """The members that the prompt names."""
        return read_members(self.read.members, actual, expected)

    def verdict(self, data: Mapping[str, Json]) -> Verdict[Any]:
        """The scale that the options select."""
        if self.choices:
            return scales.choices(self.choices, self.average)
        return scales.continuous(self.low, self.high, self.average)


@dataclass(frozen=True)
class Pointwise(ModelJudge, Share):
    """The rating that a model gives by criteria and a rating rubric, like Vertex AI's
    `PointwiseMetric`.
    """

    name: ClassVar[str] = "pointwise"

    criteria: Mapping[str, str]
    """What to evaluate: a text for each name."""
    rating_rubric: Mapping[Any, str]
    """The meaning of each rating, by its number. Two ratings are decided by majority, more are
    averaged over the samples.
    """
    input_variables: tuple[str, ...] = ()
    """Data to show besides the response, such as `prompt` and `predicted_trajectory`."""
    instruction: str = (
        "You are an expert evaluator. You evaluate the quality of the answer of an AI agent."
    )
    """The task of the judge."""
    metric_definition: str = ""
    """What the metric measures."""
    evaluation_steps: Mapping[str, str] = FrozenMapping()
    """How to evaluate: a text for each name."""
    average: Average = "mean"
    """How to average several samples."""

    def __post_init__(self) -> None:
        check_choice("average", self.average, get_args(Average))
        check_texts("input_variables", self.input_variables)
        if not self.criteria:
            raise ValueError("criteria: found nothing, expected what to look at")
        for option in ("criteria", "evaluation_steps"):
            object.__setattr__(self, option, FrozenMapping(getattr(self, option)))
        ratings = scales.checked_choices("rating_rubric", [*map(_rating, self.rating_rubric)])
        rubric = dict(zip(ratings, self.rating_rubric.values(), strict=True))
        object.__setattr__(self, "rating_rubric", FrozenMapping(rubric))
        object.__setattr__(self, "input_variables", tuple(self.input_variables))
        _declare(self, min(ratings), max(ratings), self.members)
        super().__post_init__()

    @property
    def members(self) -> tuple[str, ...]:
        """The data to show. The response is always included."""
        return checked_members([*(_variable(name) for name in self.input_variables), "response"])

    def instruction_texts(self) -> tuple[str, ...]:
        """Sections in the order of Vertex AI, each in its configured order."""
        ratings = {f"{rating:g}": text for rating, text in self.rating_rubric.items()}
        sections = {
            "Instruction": self.instruction,
            "Metric definition": self.metric_definition,
            "Criteria": _listed(self.criteria),
            "Rating rubric": _listed(ratings),
            "Evaluation steps": _listed(self.evaluation_steps),
            "Data": legend(self.members),
        }
        return ("\n\n".join(f"# {heading}\n{text}" for heading, text in sections.items() if text),)

    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """The members that the input variables name, and the response."""
        return read_members(self.members, actual, expected)

    def verdict(self, data: Mapping[str, Json]) -> Verdict[Any]:
        """One of the ratings."""
        return scales.choices(tuple(self.rating_rubric), self.average)


def _declare(judge: ModelJudge, low: float, high: float, members: tuple[str, ...]) -> None:
    """Set the attributes that depend on the options of one judge."""
    object.__setattr__(judge, "low", low)
    object.__setattr__(judge, "high", high)
    object.__setattr__(judge, "needs_reference", not FROM_REFERENCE.isdisjoint(members))


def _rating(written: Any) -> float:
    try:
        return float(written)
    except ValueError:
        raise ValueError(f"rating_rubric: found {written!r}, expected numbers as keys") from None


def _variable(written: str) -> str:
    try:
        return member_name(written)
    except ValueError as error:
        raise ValueError(f"input_variables: {error}") from None


def _listed(texts: Mapping[str, str]) -> str:
    return "\n".join(f"{name}: {text}" for name, text in texts.items())

"""A judge of what an agent makes of the results of its tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.judges.label_judge import LabelJudge
from pathgauge.scorers.matching.calls import outcome_known
from pathgauge.scorers.types import Invocation, Json, ReferenceTurn, Score

_QUESTION = """\
You decide whether an AI agent made right use of what its tools returned.

- It is `used` when every result that matters for the user's request shows in the later calls or \
in the final answer, as it was returned: values, names and states are the same, errors are taken \
as errors, and an empty result is taken as nothing found.
- It is `misused` when the agent ignores such a result, changes a value of it, mixes up results, \
calls on as if an error had been a success, or reports what no tool returned as if one had.

Results that turn out not to matter may be left out, and rounding or rewording is fine where it \
keeps the meaning. Judge the use alone: a bad choice of tools, or a wrong result, is not the \
subject."""


@dataclass(frozen=True)
class ToolOutputUtilization(LabelJudge):
    """1 if the agent uses the results of its tools correctly by majority of the samples, else 0."""

    name: ClassVar[str] = "tool_output_utilization"
    question: ClassVar[str] = _QUESTION
    members: ClassVar[tuple[str, ...]] = ("user_input", "trajectory", "response")
    labels: ClassVar[Mapping[str, float | None]] = {"used": 1.0, "misused": 0.0}

    def prompt_data(
        self, actual: Invocation, expected: ReferenceTurn | None
    ) -> Mapping[str, Json] | Score:
        """The members. The outcome of all calls must be recorded."""
        data = super().prompt_data(actual, expected)
        if isinstance(data, Score):
            return data
        functions = [call for call in actual.tool_calls if call.kind == "function"]
        if not functions:
            return Score.not_evaluated("not_applicable", "no tool was called")
        if not all(map(outcome_known, functions)):
            return Score.not_evaluated("results_not_recorded")
        return data

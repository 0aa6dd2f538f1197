"""A judge that says why a run failed, in one of the words of a fixed list.

The words are those of the categories under which failed runs are grouped, so that this verdict
decides about the group where no deterministic criterion does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.judges.label_judge import LabelJudge

_CATEGORIES = {
    "tool_error": "a tool failed or returned an error, and the agent could not make up for it",
    "loop": "the agent repeated calls that brought nothing new",
    "ended_early": "the agent stopped before it was done: no answer, or one that announces work",
    "missing_call": "a call that was needed was not made",
    "wrong_tool": "another tool was called than the one that was needed",
    "extra_call": "a call was made that was not asked for, or that does harm",
    "wrong_argument": "the right tool was called with a wrong, missing or invented argument",
    "order": "the right calls were made in an order that is not allowed or makes no sense",
    "ungrounded_value": "the answer states as a fact what neither the user nor a tool said",
    "wrong_answer": "the calls were right, and the answer is wrong, incomplete or about another"
    " thing",
}

_QUESTION = "\n".join(
    [
        "You find out whether a run of an AI agent failed, and why.",
        "",
        "It succeeded when the user got what was asked for, correctly as far as the data shows, or"
        " when it could not be had and the agent found that out and said so. Where"
        " `expected_trajectory` or `expected_response` is there, it is known to be right.",
        "",
        "Answer `none` when the run succeeded. Otherwise choose the first cause in the course of"
        " the run, of which the others are consequences:",
        *(f"- `{label}`: {meaning}." for label, meaning in _CATEGORIES.items()),
    ]
)


@dataclass(frozen=True)
class FailureCategory(LabelJudge):
    """1 if the invocation succeeded by majority of the samples, else 0; the verdict in the
    details is the category of the failure.
    """

    name: ClassVar[str] = "failure_category"
    question: ClassVar[str] = _QUESTION
    members: ClassVar[tuple[str, ...]] = (
        "user_input",
        "tools",
        "expected_trajectory",
        "expected_response",
        "trajectory",
        "response",
    )
    optional: ClassVar[tuple[str, ...]] = (
        "tools",
        "expected_trajectory",
        "expected_response",
        "response",
    )
    labels: ClassVar[Mapping[str, float | None]] = {
        "none": 1.0,
        **dict.fromkeys(_CATEGORIES, 0.0),
    }

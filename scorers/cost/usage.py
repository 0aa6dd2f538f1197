"""Scores the tokens and calls of an invocation, sub-agents included. Lower is better.

There is no value if the telemetry has no token counts (`tokens_not_recorded`), or may lack tool
calls (`tools_not_recorded`) or model calls (`incomplete`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.missing_telemetry import (
    models_incomplete,
    models_unknown,
    tools_unknown,
)
from pathgauge.scorers.authoring.ranges import Amount
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score


@dataclass(frozen=True)
class TotalTokens(Amount):
    """Input and output tokens of all models."""

    name: ClassVar[str] = "total_tokens"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        given, made = actual.input_tokens, actual.output_tokens
        total = None if given is None or made is None else given + made
        return _tokens(actual, total, f"{given} input and {made} output tokens")


@dataclass(frozen=True)
class InputTokens(Amount):
    """Input tokens of all models."""

    name: ClassVar[str] = "input_tokens"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        return _tokens(actual, actual.input_tokens, f"{actual.input_tokens} input tokens")


@dataclass(frozen=True)
class OutputTokens(Amount):
    """Output tokens of all models."""

    name: ClassVar[str] = "output_tokens"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        return _tokens(actual, actual.output_tokens, f"{actual.output_tokens} output tokens")


@dataclass(frozen=True)
class ModelCalls(Amount):
    """Requests to language models. There is no value if none is recorded."""

    name: ClassVar[str] = "model_calls"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        return models_unknown(actual) or _calls(len(actual.model_calls), "model")


@dataclass(frozen=True)
class ToolCalls(Amount):
    """Tool calls, including handoffs and final answers given through tools."""

    name: ClassVar[str] = "tool_calls"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        return tools_unknown(actual) or _calls(len(actual.tool_calls), "tool")


def _tokens(actual: Invocation, count: int | None, explanation: str) -> Score:
    if count is None:
        return Score.not_evaluated("tokens_not_recorded")
    details = {"input": actual.input_tokens, "output": actual.output_tokens}
    return models_incomplete(actual) or Score(float(count), None, explanation, details)


def _calls(count: int, kind: str) -> Score:
    return Score(float(count), None, counted(count, f"{kind} call"))

"""What an invocation cost: an invocation comes in, its tokens or its calls go out, sub-agents
included. Less is better.

- `tokens_not_recorded`: the telemetry does not say how many tokens there were,
- `tools_not_recorded`, `incomplete`: tool calls, or model calls, may be missing from the telemetry.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.options import tools_unknown
from pathgauge.scorers.authoring.ranges import Amount
from pathgauge.scorers.matching.calls import counted
from pathgauge.scorers.types import Flag, Invocation, ReferenceTurn, Score

_LOSING: frozenset[Flag] = frozenset({"dropped_spans", "llm_detail_unreliable"})


@dataclass(frozen=True)
class TotalTokens(Amount):
    """Tokens that went into the models and came out of them."""

    name: ClassVar[str] = "total_tokens"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        given, made = actual.input_tokens, actual.output_tokens
        total = None if given is None or made is None else given + made
        return _tokens(actual, total, f"{given} input and {made} output tokens")


@dataclass(frozen=True)
class InputTokens(Amount):
    """Tokens that went into the models."""

    name: ClassVar[str] = "input_tokens"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        return _tokens(actual, actual.input_tokens, f"{actual.input_tokens} input tokens")


@dataclass(frozen=True)
class OutputTokens(Amount):
    """Tokens that came out of the models."""

    name: ClassVar[str] = "output_tokens"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        return _tokens(actual, actual.output_tokens, f"{actual.output_tokens} output tokens")


@dataclass(frozen=True)
class ModelCalls(Amount):
    """Requests to language models; an agent of which none is known has no value."""

    name: ClassVar[str] = "model_calls"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        return models_unknown(actual) or _calls(len(actual.model_calls), "model")


@dataclass(frozen=True)
class ToolCalls(Amount):
    """Tool calls, handoffs and final answers made through tools included."""

    name: ClassVar[str] = "tool_calls"

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        return tools_unknown(actual) or _calls(len(actual.tool_calls), "tool")


def models_lost(actual: Invocation) -> Score | None:
    """The score of an invocation whose telemetry may lack model calls; `None` when it lacks none
    that are known of.
    """
    losing = sorted(_LOSING & actual.flags)
    if not losing:
        return None
    return Score.not_evaluated(
        "incomplete", f"model calls may be missing from the telemetry: {', '.join(losing)}"
    )


def models_unknown(actual: Invocation) -> Score | None:
    """As `models_lost`, and an agent that calls no model at all is one whose model calls are not
    traced.
    """
    return models_lost(actual) or (
        None if actual.model_calls else Score.not_evaluated("not_applicable", "no model calls")
    )


def _tokens(actual: Invocation, count: int | None, line: str) -> Score:
    if count is None:
        return Score.not_evaluated("tokens_not_recorded")
    details = {"input": actual.input_tokens, "output": actual.output_tokens}
    return models_lost(actual) or Score(float(count), None, line, details)


def _calls(count: int, kind: str) -> Score:
    return Score(float(count), None, counted(count, f"{kind} call"))

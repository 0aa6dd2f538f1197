"""Budgets: an invocation comes in, 1 goes out when it stayed within its limit and 0 when it did
not.

What was counted and is over the limit is over it whatever else the telemetry lacks; to be within
it, everything has to be known.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.options import tools_unknown
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.cost.usage import models_lost, models_unknown
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score


@dataclass(frozen=True)
class MaxTurns(Share):
    """1 when the turn is one of the first `limit` of its conversation, else 0."""

    name: ClassVar[str] = "max_turns"

    limit: int = 10
    """The most turns of a conversation, those of the user and the answers to them counted once."""

    def __post_init__(self) -> None:
        _check_limit("limit", self.limit)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at. Where its turn is not known, it has
        no value.
        """
        if actual.turn is None:
            return Score.not_evaluated(
                "not_applicable", "the place of the turn in its conversation is not known"
            )
        return _within(actual.turn + 1, self.limit, "turns")


@dataclass(frozen=True)
class MaxModelCalls(Share):
    """1 when there were at most `limit` model calls, sub-agents included, else 0."""

    name: ClassVar[str] = "max_model_calls"

    limit: int = 10
    """The most model calls of an invocation."""

    def __post_init__(self) -> None:
        _check_limit("limit", self.limit)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        calls = _within(len(actual.model_calls), self.limit, "model calls")
        return calls if not calls.value else models_unknown(actual) or calls


@dataclass(frozen=True)
class MaxToolCalls(Share):
    """1 when there were at most `limit` tool calls, sub-agents included, else 0."""

    name: ClassVar[str] = "max_tool_calls"

    limit: int = 10
    """The most tool calls of an invocation."""

    def __post_init__(self) -> None:
        _check_limit("limit", self.limit)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        calls = _within(len(actual.tool_calls), self.limit, "tool calls")
        return calls if not calls.value else tools_unknown(actual) or calls


@dataclass(frozen=True)
class TokenEfficiency(Share):
    """1 when input and output took at most `max_tokens` tokens together, sub-agents included, else
    0.
    """

    name: ClassVar[str] = "token_efficiency"

    max_tokens: int = 5_000
    """The most tokens of an invocation."""

    def __post_init__(self) -> None:
        _check_limit("max_tokens", self.max_tokens)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at."""
        given, made = actual.input_tokens, actual.output_tokens
        tokens = _within((given or 0) + (made or 0), self.max_tokens, "tokens")
        if not tokens.value:
            return tokens
        if given is None or made is None:
            return Score.not_evaluated("tokens_not_recorded")
        return models_lost(actual) or tokens


def _within(used: int, limit: int, what: str) -> Score:
    return Score(
        float(used <= limit),
        None,
        f"{used} of at most {limit} {what}",
        {"used": used, "limit": limit},
    )


def _check_limit(option: str, limit: int) -> None:
    if limit < 0:
        raise ValueError(f"{option}: found {limit}, expected a number that is not negative")

"""Scores 1 if an invocation stayed within its budget, else 0.

A count over the limit is certain even if the telemetry is incomplete. A count within the limit is
certain only if everything was recorded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from pathgauge.scorers.authoring.missing_telemetry import (
    models_incomplete,
    models_unknown,
    tools_unknown,
)
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score


@dataclass(frozen=True)
class MaxTurns(Share):
    """1 if there were at most `limit` turns, else 0."""

    name: ClassVar[str] = "max_turns"
    version: ClassVar[str] = "2"

    limit: int = 10
    """Maximum turns."""
    of: Literal["model", "user"] = "model"
    """What takes turns. `model`: the messages of the model in this invocation, without those of
    sub-agents that are called as tools. `user`: the messages of the user in the conversation so
    far, for telemetry with `pathgauge.turn` and for references with several turns.
    """

    def __post_init__(self) -> None:
        _check_limit("limit", self.limit)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        if self.of == "user":
            return self._score_user(actual)
        score = _within(_messages(actual), self.limit, "turns")
        if score.value and (unknown := models_unknown(actual)):
            return unknown
        return score

    def _score_user(self, actual: Invocation) -> Score:
        if actual.turn is None:
            return Score.not_evaluated(
                "not_applicable", "the position of the turn in its conversation is not known"
            )
        return _within(actual.turn + 1, self.limit, "turns")


@dataclass(frozen=True)
class MaxModelCalls(Share):
    """1 if there were at most `limit` model calls, sub-agents included, else 0."""

    name: ClassVar[str] = "max_model_calls"

    limit: int = 10
    """Maximum model calls of an invocation."""

    def __post_init__(self) -> None:
        _check_limit("limit", self.limit)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        score = _within(len(actual.model_calls), self.limit, "model calls")
        if score.value and (unknown := models_unknown(actual)):
            return unknown
        return score


@dataclass(frozen=True)
class MaxToolCalls(Share):
    """1 if there were at most `limit` tool calls, sub-agents included, else 0."""

    name: ClassVar[str] = "max_tool_calls"

    limit: int = 10
    """Maximum tool calls of an invocation."""

    def __post_init__(self) -> None:
        _check_limit("limit", self.limit)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        score = _within(len(actual.tool_calls), self.limit, "tool calls")
        if score.value and (unknown := tools_unknown(actual)):
            return unknown
        return score


@dataclass(frozen=True)
class TokenEfficiency(Share):
    """1 if input and output have at most `max_tokens` tokens, sub-agents included, else 0."""

    name: ClassVar[str] = "token_efficiency"

    max_tokens: int = 5_000
    """Maximum tokens of an invocation."""

    def __post_init__(self) -> None:
        _check_limit("max_tokens", self.max_tokens)

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        given, made = actual.input_tokens, actual.output_tokens
        score = _within((given or 0) + (made or 0), self.max_tokens, "tokens")
        if not score.value:
            return score
        if given is None or made is None:
            return Score.not_evaluated("tokens_not_recorded")
        return models_incomplete(actual) or score


def _messages(actual: Invocation) -> int:
    """The messages of the model: its calls that did not fail."""
    called: set[str | None] = set()
    for run in actual.sub_agents:  # in start order, so a parent comes before its children
        if run.via == "agent" or run.parent_run in called:
            called.add(run.span_id)
    return sum(call.error is None and call.run not in called for call in actual.model_calls)


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

"""Scores whether a model call had more input than the model's context can hold. Lower is better."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.missing_telemetry import models_unknown
from pathgauge.scorers.authoring.ranges import Rate
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Invocation, Json, ModelCall, ReferenceTurn, Score

# Error messages and types of providers and frameworks. "too many tokens" alone is missing, because
# it may also mean a rate limit.
_OVERFLOW = re.compile(
    r"context[ _-]?(length|window|size|limit|overflow)"
    r"|(prompt|input)( is)? too long"
    r"|token count[^a-z]{0,40}exceeds"
    r"|maximum prompt length"
    r"|(in the prompt cannot|inputs? tokens?) exceed"
    r"|exceed(s|ed)( the| model)* token limit"
    r"|reduce the length of the (messages|prompt|input)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class ContextOverflow(Rate):
    """1 if a model call failed because its input was too long for the model, or had more input
    tokens than `limit`, else 0.
    """

    name: ClassVar[str] = "context_overflow"

    limit: int | None = None
    """Maximum input tokens of a model call; `null` checks only errors."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit: found {self.limit}, expected a number of tokens from 1")

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used. An error that does not mention the
        context does not count as an overflow.
        """
        overflows = [*self._overflows(actual.model_calls), *_failed_runs(actual)]
        if overflows:
            causes = [
                str(overflow["error"] or f"{overflow['input_tokens']} input tokens")
                for overflow in overflows
            ]
            return Score(1.0, None, f"too long: {listed(causes)}", {"overflows": overflows})
        if unknown := models_unknown(actual):
            return unknown
        if self.limit is not None and any(
            call.input_tokens is None and call.error is None for call in actual.model_calls
        ):
            return Score.not_evaluated("tokens_not_recorded")
        return Score(
            0.0,
            None,
            f"none of {counted(len(actual.model_calls), 'model call')} was too long",
            {"overflows": []},
        )

    def _overflows(self, calls: tuple[ModelCall, ...]) -> Iterator[dict[str, Json]]:
        for at, call in enumerate(calls):
            error = _overflow_error(call.error)
            if error is not None or self._over_limit(call):
                yield {
                    "model_call": at,
                    "model": call.model,
                    "input_tokens": call.input_tokens,
                    "error": error,
                }

    def _over_limit(self, call: ModelCall) -> bool:
        if self.limit is None or call.input_tokens is None:
            return False
        return call.input_tokens > self.limit


def _failed_runs(actual: Invocation) -> Iterator[dict[str, Json]]:
    """Agents that ended with such an error; some instrumentations have no spans of model calls."""
    failures = [
        (actual.agent, actual.error_type),
        *((run.agent, run.error or run.error_type) for run in actual.sub_agents),
    ]
    for agent, message in failures:
        if error := _overflow_error(message):
            yield {"agent": agent, "input_tokens": None, "error": error}


def _overflow_error(error: str | None) -> str | None:
    """The error if it reports a context overflow."""
    if error is None or not _OVERFLOW.search(error):
        return None
    return error

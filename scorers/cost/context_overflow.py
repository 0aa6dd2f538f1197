"""Context overflow: the model calls of an invocation come in, whether one of them had more input
than fits goes out. Less is better.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.scorers.authoring.ranges import Rate
from pathgauge.scorers.cost.usage import models_unknown
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.types import Invocation, Json, ModelCall, ReferenceTurn, Score

# What providers and frameworks say and call it; "too many tokens" alone is what they also say of a
# rate limit.
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
    """1 when a model call failed as its input was too long for the model, or had more input tokens
    than `limit`, else 0.
    """

    name: ClassVar[str] = "context_overflow"

    limit: int | None = None
    """The most input tokens that a model call may have; `null` looks at errors alone."""

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise ValueError(f"limit: found {self.limit}, expected a number of tokens from 1")

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation; its reference is not looked at. An error that does not name the
        context is one of another kind.
        """
        found = [*self._too_long(actual.model_calls), *_failed_runs(actual)]
        if found:
            line = listed(
                [str(one["error"] or f"{one['input_tokens']} input tokens") for one in found]
            )
            return Score(1.0, None, f"too long: {line}", {"overflows": found})
        if unknown := models_unknown(actual):
            return unknown
        if self.limit is not None and any(
            call.input_tokens is None and call.error is None for call in actual.model_calls
        ):
            return Score.not_evaluated("tokens_not_recorded")
        return Score(
            0.0,
            None,
            f"none of {len(actual.model_calls)} model calls was too long",
            {"overflows": []},
        )

    def _too_long(self, calls: tuple[ModelCall, ...]) -> Iterator[dict[str, Json]]:
        for index, call in enumerate(calls):
            large = (
                self.limit is not None
                and call.input_tokens is not None
                and call.input_tokens > self.limit
            )
            error = call.error if call.error is not None and _OVERFLOW.search(call.error) else None
            if error is not None or large:
                yield {
                    "model_call": index,
                    "model": call.model,
                    "input_tokens": call.input_tokens,
                    "error": error,
                }


def _failed_runs(actual: Invocation) -> Iterator[dict[str, Json]]:
    """Agents that ended with such an error, as not every instrumentation has spans of model calls."""
    failures = [
        (actual.agent, actual.error_type),
        *((run.agent, run.error or run.error_type) for run in actual.sub_agents),
    ]
    for agent, error in failures:
        if error is not None and _OVERFLOW.search(error):
            yield {"agent": agent, "input_tokens": None, "error": error}

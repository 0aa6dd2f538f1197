"""What scorers of whole sessions receive and implement.

A session is everything that one user says under one conversation id. A scorer that has a method
`score_session` is asked once for each session, and not for its invocations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeGuard, runtime_checkable

from pathgauge.scorers.judge_protocol import Ask, Judge
from pathgauge.scorers.types import Invocation, Reference, Score, Scorer

ENDED = "ended"
"""The `session_end` of a turn whose signal says only that the session has ended, not how."""


@dataclass(frozen=True, slots=True)
class SessionTurn:
    """One turn of a session."""

    invocation: Invocation
    scores: Mapping[str, float | None] = field(default_factory=dict)
    """The score of the turn by each criterion for single invocations; `None`: not evaluated."""


@runtime_checkable
class SessionScorer(Scorer, Protocol):
    """A scorer of whole sessions. Its `score` is that of a session with a single turn; see
    `pathgauge.scorers.sessions.whole_session.WholeSession`.
    """

    def score_session(self, turns: Sequence[SessionTurn], reference: Reference | None) -> Score:
        """Score the turns, at least one, in the order of their start. `reference` is that of the
        scenario, if all turns are of one scenario that has a reference.
        """
        ...


@runtime_checkable
class SessionJudge(SessionScorer, Judge, Protocol):
    """A scorer of whole sessions that asks a model."""

    async def judge_session(
        self, turns: Sequence[SessionTurn], reference: Reference | None, ask: Ask
    ) -> Score:
        """Score the turns as `score_session` does."""
        ...


def scores_sessions(scorer: object) -> TypeGuard[SessionScorer]:
    """Whether a scorer is a `SessionScorer`."""
    return hasattr(scorer, "score_session")

"""The base class of session scorers: a single invocation is a session with one turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from pathgauge.scorers.session_protocol import SessionTurn
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn, Score


class WholeSession(ABC):
    """Scores whole sessions."""

    @abstractmethod
    def score_session(self, turns: Sequence[SessionTurn], reference: Reference | None) -> Score:
        """Score the turns, at least one, in the order of their start."""

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """The score of a session with this turn alone."""
        return self.score_session((SessionTurn(actual),), reference_of(actual, expected))


def reference_of(actual: Invocation, expected: ReferenceTurn | None) -> Reference | None:
    """The reference of a session with a single turn."""
    return None if expected is None else Reference(actual.scenario_id or "", (expected,))

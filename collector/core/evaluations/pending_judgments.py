"""Evaluations that wait for judges.

The judge queue receives each `PendingJudgment` through `Changes` and returns it with the results.
Each one ends exactly once: with scores, or with the reason why there are none.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from pathgauge.collector.core.evaluations.evaluator import (
    Evaluation,
    EvaluationKey,
    SessionResult,
)
from pathgauge.collector.core.evaluations.invocation_json import from_json, to_json
from pathgauge.collector.core.evaluations.session_json import (
    is_session,
    session_from_json,
    session_to_json,
)
from pathgauge.scorers.types import Invocation


@dataclass(frozen=True, slots=True)
class PendingJudgment:
    """An evaluation that waits for judges, with everything that a judge needs. It can be stored and
    resumed by another process.
    """

    key: EvaluationKey
    revision: int
    body: bytes
    """The invocation, or the session, as JSON, which takes less memory than the object."""
    turn: int | None
    """Index of the reference turn."""
    closed_by: str
    first: bool
    """Whether no result of judges was counted for this evaluation before."""
    unscored: bool
    """Whether the invocation is not counted as scored or skipped yet, because no other criterion
    gave a score.
    """
    failed: bool = False
    """Whether another criterion failed when the invocation was counted."""

    @property
    def size(self) -> int:
        """Size of the body in bytes."""
        return len(self.body)

    def invocation(self) -> Invocation:
        """The invocation. Raises `ValueError` if an incompatible version of pathgauge wrote it."""
        return from_json(self.body)

    def session(self) -> SessionResult | None:
        """The session, if it waits for judges, and not an invocation. Raises as `invocation`."""
        return session_from_json(self.body) if is_session(self.body) else None


class PendingJudgments:
    """All pending judgments. A newer revision replaces an older one."""

    def __init__(self) -> None:
        self._pending: dict[EvaluationKey, PendingJudgment] = {}
        self._changed: dict[EvaluationKey, None] = {}

    def __contains__(self, key: EvaluationKey) -> bool:
        return key in self._pending

    @property
    def has_changes(self) -> bool:
        """Whether `changes` would return anything."""
        return bool(self._changed)

    def update(self, evaluation: Evaluation) -> PendingJudgment | None:
        """Wait for the judges of an evaluation, or stop waiting if it needs none. Returns the
        earlier revision that was pending, if any.
        """
        if not evaluation.awaits:
            return self.end(evaluation.key)
        earlier = self._pending.get(evaluation.key)
        first = unscored = evaluation.revision == 0
        failed = evaluation.failed
        if earlier is not None:
            first, unscored, failed = earlier.first, earlier.unscored, earlier.failed
        self.restore(
            PendingJudgment(
                key=evaluation.key,
                revision=evaluation.revision,
                body=_body(evaluation),
                turn=evaluation.match.turn_index,
                closed_by=evaluation.closed_by,
                first=first,
                unscored=unscored and not evaluation.scored and evaluation.session is None,
                failed=failed,
            )
        )
        self._changed[evaluation.key] = None
        return earlier

    def restore(self, pending: PendingJudgment) -> None:
        """Add a judgment that an earlier process was waiting for."""
        self._pending[pending.key] = pending

    def end(self, key: EvaluationKey) -> PendingJudgment | None:
        """Stop waiting. Returns the judgment that was pending, if any."""
        pending = self._pending.pop(key, None)
        if pending is not None:
            self._changed[key] = None
        return pending

    def is_current(self, pending: PendingJudgment) -> bool:
        """Whether exactly this revision is still pending."""
        current = self._pending.get(pending.key)
        return current is not None and current.revision == pending.revision

    def discard(self, traces: Container[tuple[str, str]]) -> None:
        """Forget the judgments of these traces (tenant, trace id). The store has already deleted
        them, so they are not reported as changes.
        """
        for key in [key for key in self._pending if key[:2] in traces]:
            del self._pending[key]
            self._changed.pop(key, None)

    def changes(self) -> tuple[tuple[PendingJudgment, ...], tuple[EvaluationKey, ...]]:
        """Judgments that began, and keys of those that ended, since the last call."""
        changed, self._changed = self._changed, {}
        begun = tuple(self._pending[key] for key in changed if key in self._pending)
        return begun, tuple(key for key in changed if key not in self._pending)


def _body(evaluation: Evaluation) -> bytes:
    if evaluation.session is None:
        return to_json(evaluation.invocation)
    return session_to_json(evaluation.invocation, evaluation.session)

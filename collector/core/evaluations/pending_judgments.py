"""Evaluations that wait for judges.

The judge queue receives each `PendingJudgment` through `Changes` and returns it with the results.
Each one ends exactly once: with scores, or with the reason why there are none.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, replace

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
from pathgauge.collector.core.evaluations.shadow_result import AwaitedShadow, Verdicts
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
    shadow: AwaitedShadow | None = None
    """The judges in shadow that are asked, too, after the active ones."""
    uncompared: Verdicts = ()
    """Results in shadow that are compared, and counted, when the active judges have answered."""

    @property
    def in_shadow(self) -> bool:
        """Whether only judges in shadow are still asked."""
        return self.shadow is not None and self.shadow.asked

    @property
    def shadow_setup(self) -> str | None:
        """The fingerprint of the criteria in shadow that are asked, too."""
        return None if self.shadow is None else self.shadow.setup

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

    def waits(self, key: EvaluationKey) -> bool:
        """Whether active judges are asked about an evaluation."""
        pending = self._pending.get(key)
        return pending is not None and not pending.in_shadow

    def waits_in_shadow(self, key: EvaluationKey) -> bool:
        """Whether judges in shadow are asked about it, or will be."""
        pending = self._pending.get(key)
        return pending is not None and pending.shadow is not None

    @property
    def has_changes(self) -> bool:
        """Whether `changes` would return anything."""
        return bool(self._changed)

    def update(self, evaluation: Evaluation) -> PendingJudgment | None:
        """Wait for the judges of an evaluation, or stop waiting if it needs none. Returns the
        earlier revision that was pending, if any.
        """
        if not evaluation.awaits and evaluation.shadow_awaited is None:
            return self.end(evaluation.key)
        earlier = self._pending.get(evaluation.key)
        first = unscored = evaluation.revision == 0
        failed = evaluation.failed
        if earlier is not None and not earlier.in_shadow:
            first, unscored, failed = earlier.first, earlier.unscored, earlier.failed
        self.restore(
            PendingJudgment(
                key=evaluation.key,
                revision=evaluation.revision,
                body=_body(evaluation),
                turn=evaluation.match.turn_index,
                closed_by=evaluation.closed_by,
                first=first,
                unscored=(
                    unscored
                    and evaluation.awaits
                    and not evaluation.scored
                    and evaluation.session is None
                ),
                failed=failed,
                shadow=_awaited(evaluation, earlier),
                uncompared=_uncompared(evaluation, earlier),
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

    def answered(self, key: EvaluationKey, verdicts: Mapping[str, str]) -> None:
        """The active judges have answered. Wait for those in shadow, if there are any."""
        pending = self._pending[key]
        if pending.shadow is None:
            self.end(key)
            return
        known = {**pending.shadow.verdicts, **verdicts}
        shadow = pending.shadow._replace(verdicts=known, asked=True)
        self._pending[key] = replace(pending, unscored=False, shadow=shadow, uncompared=())
        self._changed[key] = None

    def is_current(self, pending: PendingJudgment) -> bool:
        """Whether exactly this revision is still pending, for the same judges."""
        current = self._pending.get(pending.key)
        if current is None or current.revision != pending.revision:
            return False
        return current.in_shadow == pending.in_shadow

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


def _awaited(evaluation: Evaluation, earlier: PendingJudgment | None) -> AwaitedShadow | None:
    awaited = evaluation.shadow_awaited
    if awaited is None:
        return None
    if earlier is not None and earlier.shadow is not None:
        awaited = awaited._replace(first=earlier.shadow.first)
    return awaited._replace(asked=not evaluation.awaits)


def _uncompared(evaluation: Evaluation, earlier: PendingJudgment | None) -> Verdicts:
    """Those of a revision, unless those of the first one were compared."""
    is_counted = evaluation.revision > 0 and (earlier is None or not earlier.uncompared)
    return () if is_counted else evaluation.shadow_uncompared


def _body(evaluation: Evaluation) -> bytes:
    if evaluation.session is None:
        return to_json(evaluation.invocation)
    return session_to_json(evaluation.invocation, evaluation.session)

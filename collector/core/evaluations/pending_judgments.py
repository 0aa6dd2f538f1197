"""Evaluations that wait for their judges: those that ask a model come in, what has to be kept until
it answered goes out.

No clock, no I/O: whoever judges is told of an `PendingJudgment`, and brings it back with what was said.
Each one is brought to an end once, however late: with scores, or with the reason why there are
none.
"""

from __future__ import annotations

import json
from collections.abc import Container
from dataclasses import dataclass

from pydantic import TypeAdapter

from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.scorers.types import Invocation

_INVOCATION = TypeAdapter(Invocation)


@dataclass(frozen=True, slots=True)
class PendingJudgment:
    """An evaluation that waits for judges, with all that a judge needs: it can be stored, and
    brought back by another process.
    """

    key: EvaluationKey
    revision: int
    body: bytes
    """The invocation as JSON, which costs less to keep."""
    turn: int | None
    """Which turn of its reference it is."""
    closed_by: str
    first: bool
    """Whether nothing was counted of its judges yet."""
    unscored: bool
    """Whether it is neither counted as scored nor as skipped yet, as no other criterion gave it a
    score.
    """

    @property
    def size(self) -> int:
        """In bytes."""
        return len(self.body)

    def invocation(self) -> Invocation:
        """The invocation. Raises ValueError when another version of pathgauge wrote it."""
        return _INVOCATION.validate_json(self.body)


class PendingJudgments:
    """Those of one partition. A newer revision takes the place of an older one."""

    def __init__(self) -> None:
        self._awaited: dict[EvaluationKey, PendingJudgment] = {}
        self._changed: dict[EvaluationKey, None] = {}

    def __contains__(self, key: EvaluationKey) -> bool:
        return key in self._awaited

    @property
    def has_changes(self) -> bool:
        """Whether `changes` has something to tell."""
        return bool(self._changed)

    def begin(self, evaluation: Evaluation) -> PendingJudgment | None:
        """Wait for the judges of an evaluation; returns the earlier revision of it that was waited
        for.
        """
        before = self._awaited.get(evaluation.key)
        first = evaluation.revision == 0 if before is None else before.first
        unscored = (
            first and not evaluation.scored
            if before is None
            else before.unscored and not evaluation.scored
        )
        body, turn = _written(evaluation.invocation), evaluation.match.turn_index
        self.restore(
            PendingJudgment(
                evaluation.key,
                evaluation.revision,
                body,
                turn,
                evaluation.closed_by,
                first,
                unscored,
            )
        )
        self._changed[evaluation.key] = None
        return before

    def restore(self, awaited: PendingJudgment) -> None:
        """Wait for what an earlier process waited for."""
        self._awaited[awaited.key] = awaited

    def end(self, key: EvaluationKey) -> PendingJudgment | None:
        """Wait no longer; returns what was waited for."""
        awaited = self._awaited.pop(key, None)
        if awaited is not None:
            self._changed[key] = None
        return awaited

    def is_current(self, awaited: PendingJudgment) -> bool:
        """Whether this very revision is still waited for."""
        current = self._awaited.get(awaited.key)
        return current is not None and current.revision == awaited.revision

    def discard(self, traces: Container[tuple[str, str]]) -> None:
        """Forget all of these traces, named by tenant and trace id; the store has done so already."""
        for key in [key for key in self._awaited if key[:2] in traces]:
            del self._awaited[key]
            self._changed.pop(key, None)

    def changes(self) -> tuple[tuple[PendingJudgment, ...], tuple[EvaluationKey, ...]]:
        """What is waited for since this was asked last, and what is not any more."""
        changed, self._changed = self._changed, {}
        begun = tuple(awaited for key in changed if (awaited := self._awaited.get(key)) is not None)
        return begun, tuple(key for key in changed if key not in self._awaited)


def _written(invocation: Invocation) -> bytes:
    try:
        return _INVOCATION.dump_json(invocation)
    except ValueError:  # half characters, which JSON cannot say
        return json.dumps(
            _INVOCATION.dump_python(invocation), ensure_ascii=False, default=list
        ).encode("utf-8", "replace")

"""What judges have to say about one evaluation: by which criteria, and the results."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    Evaluator,
    Result,
    SessionResult,
    failed,
    result_of,
)
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.scorer_watch import OnFailure
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.scorers.judge_protocol import Ask, Judge, asks_model
from pathgauge.scorers.session_protocol import SessionJudge
from pathgauge.scorers.types import Invocation, Score


@dataclass(frozen=True, slots=True)
class Judgment:
    """What is judged, and by which criteria."""

    invocation: Invocation
    match: Match
    criteria: tuple[Criterion, ...]
    session: SessionResult | None
    """Set if a whole session is judged, for which the invocation stands."""

    async def result(
        self, criterion: Criterion, ask: Ask, deadline: float, on_failure: OnFailure
    ) -> Result:
        """The result of one criterion; without a score after `deadline` seconds."""
        try:
            async with asyncio.timeout(deadline):
                result = result_of(criterion, await self._score(criterion, ask))
        except TimeoutError:
            text = f"not judged within {deadline:g} s"
            return result_of(criterion, Score.not_evaluated("judge_timeout", text))
        except BaseException as error:  # a judge is third-party code, like every scorer
            if is_cancelled(error):
                raise
            on_failure(criterion.name, error, self.invocation.trace_id)
            return failed(criterion, error)
        if result.verdict == "error":
            on_failure(criterion.name, None, self.invocation.trace_id)
        return result

    def evaluation(self, pending: PendingJudgment, results: Iterable[Result]) -> Evaluation:
        """The evaluation with nothing but these results."""
        return Evaluation(
            self.invocation,
            self.match,
            tuple(results),
            pending.closed_by,
            pending.revision,
            session=self.session,
        )

    async def _score(self, criterion: Criterion, ask: Ask) -> Score:
        if self.session is None:
            judge = cast(Judge, criterion.scorer)
            return await judge.judge(self.invocation, self.match.turn, ask)
        of_session = cast(SessionJudge, criterion.scorer)
        return await of_session.judge_session(self.session.turns, self.match.reference, ask)


@dataclass(frozen=True, slots=True)
class ActiveJudges:
    """The criteria and references that judge."""

    evaluator: Evaluator
    references: ReferenceSet
    shadow: str
    """The fingerprint of criteria in shadow; active ones have none."""

    def judgment(self, pending: PendingJudgment) -> Judgment:
        """What is judged of a pending evaluation."""
        invocation, session, turn = pending.invocation(), pending.session(), pending.turn
        if turn is None and pending.in_shadow:
            turn = invocation.turn  # the active references do not know the scenario
        if session is not None:
            match = self.references.match_session(invocation)
        else:
            match = self.references.match(invocation, turn)
        criteria: tuple[Criterion, ...] = ()
        if self._are_asked(pending):
            criteria = self.evaluator.judges_for(match, invocation, session=session is not None)
        return Judgment(invocation, match, criteria, session)

    def _are_asked(self, pending: PendingJudgment) -> bool:
        """Whether the result can be used: other judges in shadow would be paid for nothing."""
        return not pending.in_shadow or pending.shadow_setup == self.shadow


def is_cancelled(error: BaseException) -> bool:
    """Whether the current task caught `error` because it is to end. Whatever else a judge raises is
    its own failure, also `SystemExit`, which would end the loop and all other tasks.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling() > 0


def without_judges(
    pending: PendingJudgment, evaluator: Evaluator, references: ReferenceSet
) -> Evaluation:
    """The results of an evaluation that an earlier process left to judges, when this process has no
    judges: all of them are "not evaluated".
    """
    invocation, session = pending.invocation(), pending.session()
    if session is not None:
        match = references.match_session(invocation)
        evaluation = evaluator.evaluate_session(
            invocation, match, session, revision=pending.revision
        )
    else:
        evaluation = evaluator.evaluate(
            invocation,
            references.match(invocation, pending.turn),
            closed_by=pending.closed_by,
            revision=pending.revision,
        )
    judged = [result for result in evaluation.results if asks_model(result.criterion.scorer)]
    return replace(evaluation, results=tuple(judged))

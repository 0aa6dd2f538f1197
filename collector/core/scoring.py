"""Scores invocations, counts each one once, and knows which evaluations wait for judges."""

from __future__ import annotations

from collections.abc import Callable, Set

from pathgauge.collector.core.evaluations.accounting import (
    count_evaluation,
    count_scored,
    count_synthetic,
)
from pathgauge.collector.core.evaluations.evaluator import (
    Evaluation,
    EvaluationKey,
    Evaluator,
    SessionResult,
    WhenJudged,
    evaluation_key,
)
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment, PendingJudgments
from pathgauge.collector.core.evaluations.scorer_watch import UNWATCHED, ScorerWatch
from pathgauge.collector.core.evaluations.shadow import Shadow, count_changes
from pathgauge.collector.core.evidence.failures import with_failure
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline_events import Judged, ShadowJudged
from pathgauge.collector.core.references import Match
from pathgauge.collector.core.traces import TraceKey
from pathgauge.scorers.authoring.extras import Extras, extras_of
from pathgauge.scorers.types import Invocation

WhetherJudged = Callable[[Invocation, str | None], WhenJudged]
"""Decides for an invocation and its scenario id whether judges are asked."""


class Scoring:
    """Scores the invocations of one pipeline."""

    def __init__(
        self,
        evaluator: Evaluator,
        telemetry: InternalTelemetry,
        judging: WhetherJudged | None,
        synthetic_tenants: Set[str],
        shadow: Shadow | None,
        *,
        judging_in_shadow: WhetherJudged | None,
        watch: ScorerWatch = UNWATCHED,
        shadow_watch: ScorerWatch = UNWATCHED,
    ) -> None:
        """`Pipeline` documents the arguments."""
        self._watch, self._shadow_watch = watch, shadow_watch
        self.configure(evaluator, shadow)
        self._judging_in_shadow = judging_in_shadow
        self._telemetry = telemetry
        self._judging = judging
        self._synthetic_tenants = synthetic_tenants
        self._pending = PendingJudgments()

    def configure(self, evaluator: Evaluator, shadow: Shadow | None = None) -> None:
        """Apply other criteria to everything that is scored from now on."""
        self._evaluator, self._shadow = evaluator, shadow
        self.extras: Extras = evaluator.extras
        """What the criteria need beside the usual fields of invocations."""
        if shadow is not None:
            evaluators = evaluator, shadow.evaluator
            self.extras = extras_of(one.scorer for each in evaluators for one in each.every)

    def evaluate(
        self, invocation: Invocation, match: Match, closed_by: str, revision: int
    ) -> Evaluation:
        """Score an invocation, and count it. A revision replaces the evaluation that is pending."""
        evaluation = with_failure(
            self._evaluator.evaluate(
                invocation,
                match,
                closed_by=closed_by,
                revision=revision,
                judging=self._when_judged(invocation, match),
                watch=self._watch,
            )
        )
        if invocation.tenant in self._synthetic_tenants:
            count_synthetic(evaluation, self._telemetry)
        else:
            count_evaluation(evaluation, self._telemetry)
            if self._shadow is not None:
                when = self._when_judged_in_shadow(invocation, match)
                evaluation = self._shadow.added(
                    evaluation, self._telemetry, when, self._shadow_watch
                )
        self._update_pending(evaluation)
        return evaluation

    @property
    def of_sessions(self) -> bool:
        """Whether any criterion scores whole sessions."""
        return self._evaluator.of_sessions

    def evaluate_session(
        self, invocation: Invocation, match: Match, session: SessionResult, revision: int
    ) -> Evaluation:
        """Score a session, for which `invocation` stands. It is not counted as an invocation."""
        evaluation = self._evaluator.evaluate_session(
            invocation,
            match,
            session,
            revision=revision,
            judging=self._when_judged(invocation, match),
            watch=self._watch,
        )
        self._pending.update(evaluation)
        return evaluation

    def repeat(self, invocation: Invocation, match: Match, revision: int) -> Evaluation:
        """The evaluation that an earlier process has published: it is not counted again."""
        return self._evaluator.evaluate(invocation, match, revision=revision)

    def withdraw(self, key: EvaluationKey) -> None:
        """Stop waiting for the judges of an evaluation that is void."""
        pending = self._pending.end(key)
        if pending is not None and pending.unscored:
            self._telemetry.invocations_skipped.add("withdrawn")

    def judged(self, pending: PendingJudgment, evaluation: Evaluation) -> Judged | None:
        """The results of judges; `None` if the evaluation was revised or withdrawn meanwhile."""
        if not self._pending.is_current(pending):
            return None
        verdicts = _verdicts(evaluation)
        self._pending.answered(pending.key, verdicts)
        count_changes(pending.uncompared, verdicts, self._telemetry)
        if pending.unscored:
            count_scored(evaluation, self._telemetry)
        if evaluation.session is not None:
            return Judged(evaluation, pending.first, pending.failed)
        return Judged(with_failure(evaluation), pending.first, pending.failed)

    def judged_in_shadow(
        self, pending: PendingJudgment, evaluation: Evaluation
    ) -> ShadowJudged | None:
        """The results of judges in shadow; `None` if the evaluation was revised or withdrawn, or
        other criteria are in shadow now.
        """
        if pending.shadow is None or not self._pending.is_current(pending):
            return None
        self._pending.end(pending.key)
        if self._shadow is None:
            self._telemetry.shadow_errors.add()
            return None
        found = self._shadow.judged(pending.shadow, evaluation, self._telemetry)
        return None if found is None else ShadowJudged(pending.key, pending.revision, found)

    def awaits(self, pending: PendingJudgment) -> bool:
        """Whether exactly this is waited for."""
        return self._pending.is_current(pending)

    def restore(self, pending: PendingJudgment) -> None:
        """Wait for judges again, as an earlier process did."""
        self._pending.restore(pending)

    def discard(self, traces: Set[TraceKey]) -> None:
        """Forget the evaluations of purged traces."""
        self._pending.discard(traces)

    @property
    def has_changes(self) -> bool:
        """Whether `changes` would return anything."""
        return self._pending.has_changes

    def changes(self) -> tuple[tuple[PendingJudgment, ...], tuple[EvaluationKey, ...]]:
        """Judgments that began, and keys of those that ended, since the last call."""
        return self._pending.changes()

    def _when_judged(self, invocation: Invocation, match: Match) -> WhenJudged:
        if self._judging is None:
            return "unconfigured"
        if self._pending.waits(evaluation_key(invocation)):
            return "later"  # a revision keeps the place in the queue
        return self._judging(invocation, match.scenario_of(invocation))

    def _when_judged_in_shadow(self, invocation: Invocation, match: Match) -> WhenJudged:
        if self._judging_in_shadow is None:
            return "unconfigured"
        if self._pending.waits_in_shadow(evaluation_key(invocation)):
            return "later"
        return self._judging_in_shadow(invocation, match.scenario_of(invocation))

    def _update_pending(self, evaluation: Evaluation) -> None:
        earlier = self._pending.update(evaluation)
        counts_now = evaluation.scored or not evaluation.awaits
        if earlier is not None and earlier.unscored and counts_now:
            count_scored(evaluation, self._telemetry)  # the earlier revision was not counted yet
        if earlier is not None and not evaluation.awaits:
            count_changes(earlier.uncompared, _verdicts(evaluation), self._telemetry)


def _verdicts(evaluation: Evaluation) -> dict[str, str]:
    return {result.criterion.name: result.verdict for result in evaluation.results}

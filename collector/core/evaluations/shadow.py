"""Scores invocations with other criteria and references beside the active ones, to compare both
before a switch.

It sees what the active criteria saw, after they are done, and changes nothing of theirs. Whatever
goes wrong here is counted, and stays here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pathgauge.collector.core.evaluations.evaluator import (
    Evaluation,
    Evaluator,
    Result,
    WhenJudged,
)
from pathgauge.collector.core.evaluations.scorer_watch import UNWATCHED, ScorerWatch
from pathgauge.collector.core.evaluations.shadow_result import (
    AwaitedShadow,
    Shadowed,
    ShadowResult,
    Verdicts,
)
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.references import Match, ReferenceSet

_CHANGES = {("failed", "passed"): "now_passes", ("passed", "failed"): "now_fails"}


class Shadow:
    """The criteria and references in shadow."""

    def __init__(self, evaluator: Evaluator, references: ReferenceSet, setup: str) -> None:
        self.evaluator = evaluator
        self.references = references
        self.setup = setup
        """A fingerprint of criteria and references."""

    def added(
        self,
        active: Evaluation,
        telemetry: InternalTelemetry,
        judging: WhenJudged,
        watch: ScorerWatch = UNWATCHED,
    ) -> Evaluation:
        """The active evaluation with the scores in shadow; without, if that fails. An invocation is
        counted once, at its first revision. `judging` decides about criteria that ask a model.
        """
        invocation = active.invocation
        turn = invocation.turn if active.match.reference is None else active.match.turn_index
        try:
            match = self.references.match(invocation, turn)
            found = self.evaluator.evaluate(
                invocation, match, closed_by=active.closed_by, judging=judging, watch=watch
            )
        except KeyboardInterrupt:
            raise
        except BaseException:  # the active evaluation must not be lost with it
            telemetry.shadow_errors.add()
            return active
        verdicts = {result.criterion.name: result.verdict for result in active.results}
        is_first = active.revision == 0
        in_shadow = _verdicts(found.results)
        early = tuple(one for one in in_shadow if active.awaits and one[0] not in verdicts)
        if is_first:
            _count_verdicts(in_shadow, telemetry)
            count_changes((one for one in in_shadow if one not in early), verdicts, telemetry)
        return replace(
            active,
            shadow=self._shadowed(match, found.results),
            shadow_awaited=AwaitedShadow(self.setup, is_first, verdicts) if found.awaits else None,
            shadow_uncompared=early,
        )

    def judged(
        self, awaited: AwaitedShadow, judged: Evaluation, telemetry: InternalTelemetry
    ) -> Shadowed | None:
        """The results of judges in shadow; `None` if these are others now."""
        if awaited.setup != self.setup:
            telemetry.shadow_errors.add()
            return None
        if awaited.first:
            in_shadow = _verdicts(judged.results)
            _count_verdicts(in_shadow, telemetry)
            count_changes(in_shadow, awaited.verdicts, telemetry)
        return self._shadowed(judged.match, judged.results)

    def _shadowed(self, match: Match, results: Iterable[Result]) -> Shadowed:
        version = None if match.reference is None else match.reference.version
        return Shadowed(self.setup, version, tuple(map(_result, results)))


def _result(result: Result) -> ShadowResult:
    scorer, score = result.criterion.scorer, result.score
    return ShadowResult(
        result.criterion.name,
        f"{scorer.name} {scorer.version}",
        score.value,
        score.reason,
        result.verdict,
        result.criterion.threshold,
        result.criterion.judge,
    )


def _verdicts(results: Iterable[Result]) -> Verdicts:
    return tuple((result.criterion.name, result.verdict) for result in results)


def _count_verdicts(in_shadow: Verdicts, telemetry: InternalTelemetry) -> None:
    for name, verdict in in_shadow:
        telemetry.shadow_evaluations.add(name, verdict)


def count_changes(
    in_shadow: Iterable[tuple[str, str]], active: Mapping[str, str], telemetry: InternalTelemetry
) -> None:
    """Count how verdicts differ; `active` has those of the active criteria by name."""
    for name, verdict in in_shadow:
        pair = active.get(name, "absent"), verdict
        change = "same" if pair[0] == verdict else _CHANGES.get(pair, "other")
        telemetry.shadow_changes.add(name, change)

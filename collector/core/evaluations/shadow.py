"""Scores invocations with other criteria and references beside the active ones, to compare both
before a switch.

It sees what the active criteria saw, after they are done, and changes nothing of theirs. Whatever
goes wrong here is counted, and stays here.
"""

from __future__ import annotations

from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator, Result
from pathgauge.collector.core.evaluations.shadow_result import Shadowed, ShadowResult
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.references import ReferenceSet

_CHANGES = {("failed", "passed"): "now_passes", ("passed", "failed"): "now_fails"}


class Shadow:
    """The criteria and references in shadow. None of the criteria asks a model."""

    def __init__(self, evaluator: Evaluator, references: ReferenceSet, setup: str) -> None:
        self.evaluator = evaluator
        self.setup = setup
        """A fingerprint of criteria and references."""
        self._references = references

    def score(self, active: Evaluation, telemetry: InternalTelemetry) -> Shadowed | None:
        """The scores of the invocation of an active evaluation; `None` if that fails. An invocation
        is counted once, at its first revision.
        """
        invocation = active.invocation
        turn = invocation.turn if active.match.reference is None else active.match.turn_index
        try:
            match = self._references.match(invocation, turn)
            found = self.evaluator.evaluate(invocation, match, closed_by=active.closed_by)
        except Exception:  # the active evaluation must not be lost with it
            telemetry.shadow_errors.add()
            return None
        if active.revision == 0:
            _count(active, found, telemetry)
        version = None if match.reference is None else match.reference.version
        return Shadowed(self.setup, version, tuple(map(_result, found.results)))


def _result(result: Result) -> ShadowResult:
    scorer, score = result.criterion.scorer, result.score
    return ShadowResult(
        result.criterion.name,
        f"{scorer.name} {scorer.version}",
        score.value,
        score.reason,
        result.verdict,
        result.criterion.threshold,
    )


def _count(active: Evaluation, found: Evaluation, telemetry: InternalTelemetry) -> None:
    before = {result.criterion.name: result.verdict for result in active.results}
    for result in found.results:
        name, verdict = result.criterion.name, result.verdict
        telemetry.shadow_evaluations.add(name, verdict)
        pair = before.get(name, "absent"), verdict
        change = "same" if pair[0] == verdict else _CHANGES.get(pair, "other")
        telemetry.shadow_changes.add(name, change)

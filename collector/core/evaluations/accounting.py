"""The ledger of invocations: evaluations and finished conversations come in, counts go to the
ledger.

Every invocation that is read is either scored or skipped with a reason, once, however often late
telemetry has it read again.
"""

from __future__ import annotations

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.internal_telemetry import InternalTelemetry


def count_evaluation(evaluation: Evaluation, telemetry: InternalTelemetry) -> None:
    """Count an invocation that was evaluated, or a revision. What only judges can score is counted
    as read, and as scored when they did.
    """
    if evaluation.revision > 0:
        telemetry.revisions.add()
        return
    invocation = evaluation.invocation
    telemetry.invocations_read.add(invocation.dialect)
    for flag in invocation.flags:
        telemetry.invocation_flags.add(invocation.dialect, flag)
    if evaluation.match.unmatched:
        telemetry.invocations_unmatched.add(evaluation.match.unmatched)
    if evaluation.scored or not evaluation.awaits:
        count_scored(evaluation, telemetry)


def count_scored(evaluation: Evaluation, telemetry: InternalTelemetry) -> None:
    """Count an invocation as scored, or as skipped with the reason."""
    if evaluation.scored:
        telemetry.invocations_scored.add()
    else:
        telemetry.invocations_skipped.add(
            evaluation.match.unmatched or ("not_evaluated" if evaluation.results else "no_criteria")
        )


def counted_case(case: ConversationResult, telemetry: InternalTelemetry) -> ConversationResult:
    """Count the turns of a finished conversation."""
    for state, turns in (
        ("matched", case.matched),
        ("missing", case.missing),
        ("unexpected", case.unexpected),
    ):
        telemetry.case_turns.add(state, n=turns)
    return case

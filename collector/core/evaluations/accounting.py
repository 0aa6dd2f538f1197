"""The ledger of invocations: evaluations and finished conversations come in, counts go to the
ledger.

Every invocation that is read is either scored or skipped with a reason, once, however often late
telemetry has it read again.
"""

from __future__ import annotations

from pathgauge.collector.core.evaluations.conversations import Case
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.ledger import Ledger


def count_evaluation(evaluation: Evaluation, ledger: Ledger) -> None:
    """Count an invocation that was evaluated, or a revision. What only judges can score is counted
    as read, and as scored when they did.
    """
    if evaluation.revision > 0:
        ledger.revisions.add()
        return
    invocation = evaluation.invocation
    ledger.invocations_read.add(invocation.dialect)
    for flag in invocation.flags:
        ledger.invocation_flags.add(invocation.dialect, flag)
    if evaluation.match.unmatched:
        ledger.invocations_unmatched.add(evaluation.match.unmatched)
    if evaluation.scored or not evaluation.awaits:
        count_scored(evaluation, ledger)


def count_scored(evaluation: Evaluation, ledger: Ledger) -> None:
    """Count an invocation as scored, or as skipped with the reason."""
    if evaluation.scored:
        ledger.invocations_scored.add()
    else:
        ledger.invocations_skipped.add(
            evaluation.match.unmatched or ("not_evaluated" if evaluation.results else "no_criteria")
        )


def counted_case(case: Case, ledger: Ledger) -> Case:
    """Count the turns of a finished conversation."""
    for state, turns in (
        ("matched", case.matched),
        ("missing", case.missing),
        ("unexpected", case.unexpected),
    ):
        ledger.case_turns.add(state, n=turns)
    return case

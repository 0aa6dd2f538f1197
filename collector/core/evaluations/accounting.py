"""Counts evaluations, finished conversations, and what could not be evaluated.

Every invocation is counted once, as scored or as skipped with a reason, however often late spans
cause it to be read again.
"""

from __future__ import annotations

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline_events import Unreadable
from pathgauge.collector.core.reading_budget import TooSlowError

CANARY_TENANT = "(canary)"
"""The tenant of the traces that the collector sends to itself. No configured one has this name."""
SYNTHETIC = "synthetic"
"""The dialect of an invocation that is no agent's, and the reason why it is skipped."""


def count_evaluation(evaluation: Evaluation, telemetry: InternalTelemetry) -> None:
    """Count an evaluation or a revision. An invocation that only judges can score is counted as
    scored later, when they have answered.
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


def count_synthetic(evaluation: Evaluation, telemetry: InternalTelemetry) -> None:
    """Count an evaluation that is no agent's, such as that of a canary: neither its dialect nor its
    flags tell anything about agents.
    """
    if evaluation.revision == 0:
        telemetry.invocations_read.add(SYNTHETIC)
        telemetry.invocations_skipped.add(SYNTHETIC)


def count_scored(evaluation: Evaluation, telemetry: InternalTelemetry) -> None:
    """Count an invocation as scored, or as skipped with a reason."""
    if evaluation.scored:
        telemetry.invocations_scored.add()
        return
    reason = "not_evaluated" if evaluation.results else "no_criteria"
    telemetry.invocations_skipped.add(evaluation.match.unmatched or reason)


def count_conversation(conversation: ConversationResult, telemetry: InternalTelemetry) -> None:
    """Count the turns of a finished conversation by state."""
    telemetry.case_turns.add("matched", n=conversation.matched)
    telemetry.case_turns.add("missing", n=conversation.missing)
    telemetry.case_turns.add("unexpected", n=conversation.unexpected)


def count_unreadable(
    trace_id: str, error: BaseException, telemetry: InternalTelemetry
) -> Unreadable:
    """Count a trace, or a turn, whose content cannot be read or evaluated."""
    is_too_slow = isinstance(error, TooSlowError)
    telemetry.traces_skipped.add("too_slow" if is_too_slow else "unreadable")
    return Unreadable(trace_id, error)

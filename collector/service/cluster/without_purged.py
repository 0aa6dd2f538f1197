"""Takes out of a commit what was gathered about traces that were purged meanwhile.

Events are collected for a second before they are committed. A purge in between deletes what the
database has, and must not be followed by what the pipeline had still to store.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.pipeline_events import (
    Changes,
    FeedbackGiven,
    Judged,
    PublishedEvent,
)
from pathgauge.collector.core.sessions.stored_session import SessionChanges
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.store import Progress


def feedback_of(progress: Progress) -> frozenset[TraceKey]:
    """The traces that people have said something about."""
    return frozenset(
        (one.answer.tenant, one.answer.trace_id)
        for one in progress.outcomes
        if isinstance(one, FeedbackGiven) and one.answer.trace_id
    )


def without_purged(progress: Progress, purged: Set[TraceKey]) -> Progress:
    """The progress without anything about the traces `purged`, except for its publication, which
    has counts that the gauge needs.
    """
    if not purged:
        return progress
    kept = [
        index for index, outcome in enumerate(progress.outcomes) if _trace_of(outcome) not in purged
    ]
    evidence = progress.evidence
    if evidence is not None:
        evidence = {new: evidence[old] for new, old in enumerate(kept) if old in evidence}
    return replace(
        progress,
        outcomes=[progress.outcomes[index] for index in kept],
        times=[progress.times[index] for index in kept] if progress.times else (),
        evidence=evidence,
        changes=_changes(progress.changes, purged),
    )


def _trace_of(outcome: PublishedEvent) -> TraceKey | None:
    if isinstance(outcome, ConversationResult):
        return None
    if isinstance(outcome, FeedbackGiven):
        return outcome.answer.tenant, outcome.answer.trace_id
    if isinstance(outcome, Evaluation):
        return outcome.key[:2]
    return outcome.evaluation.key[:2] if isinstance(outcome, Judged) else outcome.key[:2]


def _changes(changes: Changes, purged: Set[TraceKey]) -> Changes:
    return replace(
        changes,
        traces=tuple(one for one in changes.traces if one.snapshot.key not in purged),
        judgments_begun=tuple(one for one in changes.judgments_begun if one.key[:2] not in purged),
        turns=tuple(
            one
            for one in changes.turns
            if (one.invocation.tenant, one.invocation.trace_id) not in purged
        ),
        forwarded=tuple(one for one in changes.forwarded if one.key[:2] not in purged),
        sessions=_sessions(changes.sessions, purged),
    )


def _sessions(changes: SessionChanges, purged: Set[TraceKey]) -> SessionChanges:
    return replace(
        changes, turns=tuple(one for one in changes.turns if one[1].key[:2] not in purged)
    )

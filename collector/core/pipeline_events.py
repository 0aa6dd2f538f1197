"""The output of the pipeline: events for the sinks, and changes for the store."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pathgauge.collector.core.evaluations.conversation import ConversationKey, ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.shadow_result import Shadowed
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.sessions.stored_session import NO_CHANGES, SessionChanges
from pathgauge.collector.core.traces import TraceSnapshot
from pathgauge.scorers.types import Invocation


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """An evaluation is void: its invocation turned out to be part of a larger one."""

    key: EvaluationKey


@dataclass(frozen=True, slots=True)
class FeedbackGiven:
    """A person has answered. Only the store keeps it; sinks are not told."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Unreadable:
    """Reading a trace raised an exception. Its invocations are lost, other traces are not."""

    trace_id: str
    error: BaseException


@dataclass(frozen=True, slots=True)
class Judged:
    """Results of judges for an evaluation that was published before."""

    evaluation: Evaluation
    """The evaluation with the results of judges only."""
    first: bool
    """Whether these are the first results of judges for this evaluation. Later ones replace them
    and are not counted again.
    """
    failed_before: bool = False
    """Whether the invocation was published as failed before, so that it is counted among the
    failures.
    """


@dataclass(frozen=True, slots=True)
class ShadowJudged:
    """Results of judges in shadow for an evaluation that was published before. Only the store keeps
    them; sinks are not told.
    """

    key: EvaluationKey
    revision: int
    shadow: Shadowed
    """The results of judges only."""


@dataclass(frozen=True, slots=True)
class SessionNews:
    """What a turn that was evaluated in one partition means for its session in another one."""

    conversation: str | None
    """The conversation that it belongs to now; `None`: to none."""
    scores: Mapping[str, float | None] = field(default_factory=dict)
    """Those of an invocation that is forwarded, or else scores of judges to be added."""


@dataclass(frozen=True, slots=True)
class ForwardedTurn:
    """A turn on its way from the partition of its trace to that of its conversation, or the news
    that it is none any more.
    """

    key: EvaluationKey
    invocation: Invocation | None = None
    """`None`: the invocation is not a turn any more."""
    closed_by: str = "root_ended"
    revision: int = 0
    """The smallest number of a revision that is newer than all before it."""
    void: bool = False
    """Whether its evaluation is void too, because a larger invocation encloses it."""
    target: int | None = None
    """The number of the partition; `None`: all others, because it is unknown which has it."""
    session: SessionNews | None = None
    """Set if the turn was evaluated, and concerns only the session of its conversation."""
    at: float | None = None
    """When its partition has read it. `None` if that is unknown or cannot be compared with the time
    of the receiver: it counts as read when it arrives.
    """
    joins: bool = False
    """Whether it was evaluated before without a conversation, so that it is in no session yet."""


PublishedEvent = Evaluation | Judged | ShadowJudged | Withdrawn | ConversationResult | FeedbackGiven
"""An event that the store keeps and, except for feedback and shadows, the sinks publish."""

PipelineEvent = PublishedEvent | Unreadable

Fingerprints = Mapping[str, tuple[str, int]]
"""Fingerprint and revision of each published evaluation of a trace, by entry agent. An invocation
is published again only if its fingerprint changed.
"""


@dataclass(frozen=True, slots=True)
class StoredTrace:
    """The state of one trace that must survive a restart, so that no evaluation is published
    twice.
    """

    snapshot: TraceSnapshot
    fingerprints: Fingerprints


@dataclass(frozen=True, slots=True)
class Changes:
    """State changes since the previous call. The store commits them together with the events."""

    traces: tuple[StoredTrace, ...] = ()
    released_rows: tuple[int, ...] = ()
    """Journal rows that no trace needs any more."""
    orphaned_turns: tuple[tuple[str, str, str], ...] = ()
    """Stored turns (tenant, trace id, entry agent) of conversations that no longer have a
    reference.
    """
    judgments_begun: tuple[PendingJudgment, ...] = ()
    """Evaluations that now wait for judges."""
    judgments_ended: tuple[EvaluationKey, ...] = ()
    """Evaluations that no longer wait for judges."""
    turns: tuple[StoredTurn, ...] = ()
    """Turns of open conversations that were evaluated, or not kept."""
    ended_conversations: tuple[ConversationKey, ...] = ()
    """Conversations whose turns are not needed any more. Those of `turns` began after them."""
    forwarded: tuple[ForwardedTurn, ...] = ()
    """Turns of conversations that belong to other partitions, in their order."""
    sessions: SessionChanges = NO_CHANGES
    """What changed in sessions."""

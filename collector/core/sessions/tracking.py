"""Follows what the pipeline publishes, and adds the results of sessions.

A turn belongs to the partition of its trace, a session to that of its conversation. So a turn that
was evaluated here may have to be forwarded: as a copy, with its scores. Turns that change later are
forwarded again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace

from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.partitioning import Partition
from pathgauge.collector.core.pipeline_events import (
    ForwardedTurn,
    Judged,
    PipelineEvent,
    SessionNews,
    Withdrawn,
)
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.scoring import Scoring
from pathgauge.collector.core.sessions.forwarding import SessionForwarding
from pathgauge.collector.core.sessions.session import (
    KeptTurn,
    Session,
    conversation_of,
    result_key,
)
from pathgauge.collector.core.sessions.session_scoring import evaluate
from pathgauge.collector.core.sessions.sessions import Ended, Sessions
from pathgauge.collector.core.sessions.stored_session import SessionChanges, StoredSession
from pathgauge.collector.core.traces import TraceKey

_MAX_OUTSIDE = 20_000
"""Invocations without a conversation that are remembered. A restart forgets them."""


class SessionTracking:
    """The sessions of one pipeline."""

    def __init__(
        self,
        sessions: Sessions,
        *,
        scoring: Scoring,
        references: ReferenceSet,
        telemetry: InternalTelemetry,
        untracked: Set[str],
        partition: Partition,
    ) -> None:
        """Conversations of the tenants `untracked` have no sessions."""
        self.sessions = sessions
        self._scoring = scoring
        self._references = references
        self._telemetry = telemetry
        self._untracked = untracked
        self._forwarding = SessionForwarding(partition)
        self._outside: OrderedDict[EvaluationKey, None] = OrderedDict()
        """Invocations that are in no session, because nothing names their conversation. Late spans
        may do that.
        """
        self._processed_rows: list[int] = []
        self._now = 0.0

    def configure(self, references: ReferenceSet) -> None:
        """Apply other references to every session that ends from now on."""
        self._references = references

    def follow(self, events: list[PipelineEvent], now: float | None = None) -> list[PipelineEvent]:
        """The events, and what they change in sessions; `None`: at the time of the last call."""
        self._now = self._now if now is None else max(self._now, now)
        return [*events, *(more for event in events for more in self._follow(event))]

    def receive(self, turn: ForwardedTurn, now: float, row: int) -> list[PipelineEvent]:
        """Process a turn that another partition has evaluated, from the journal row `row`, which is
        not needed any more; 0 means no journal.
        """
        self._now = max(self._now, now)
        if row:
            self._processed_rows.append(row)
        news = turn.session or SessionNews(None)
        if turn.invocation is not None:
            at = now if turn.at is None else max(now, turn.at)
            return list(self._add(KeptTurn(turn.invocation, turn.revision, at, news.scores), at))
        if news.scores:
            self.sessions.add_scores(turn.key, turn.revision, news.scores, now)
        elif not self.sessions.holds(turn.key, news.conversation):
            return list(self._left(self.sessions.withdraw(turn.key, now)))
        return []

    def handed_over(self, turn: ForwardedTurn) -> ForwardedTurn:
        """The turn, with what the partition that evaluates it has to know of its session."""
        if turn.invocation is None or turn.key not in self._outside:
            return turn
        del self._outside[turn.key]
        return replace(turn, joins=True)

    def expect(self, turn: ForwardedTurn) -> None:
        """Prepare for the evaluation of a turn that another partition has handed over."""
        if turn.joins:
            self._remember_outside(turn.key)

    def expire(self, now: float) -> list[PipelineEvent]:
        """Score the sessions that have ended by `now`."""
        self._now = max(self._now, now)
        return list(self._results(self.sessions.expire(now)))

    def drain(self) -> list[PipelineEvent]:
        """Score all open sessions."""
        return list(self._results(self.sessions.drain(self._now)))

    def deadline(self) -> float | None:
        """The earliest time at which there may be something to do."""
        return self.sessions.deadline()

    def restore(self, stored: StoredSession) -> None:
        """Continue with a session of an earlier process."""
        self.sessions.restore(stored)

    def discard(self, traces: Set[TraceKey]) -> None:
        """Forget the sessions with turns in purged traces."""
        self.sessions.discard(traces)
        for key in [key for key in self._outside if key[:2] in traces]:
            del self._outside[key]

    @property
    def has_changes(self) -> bool:
        """Whether `changes` would return anything."""
        return (
            self.sessions.has_changes or self._forwarding.has_changes or bool(self._processed_rows)
        )

    def changes(self) -> SessionChanges:
        """What changed since the last call."""
        return self.sessions.changes()

    def forwarded(self) -> Sequence[ForwardedTurn]:
        """The turns that concern sessions of other partitions, since the last call."""
        return self._forwarding.changes()

    def processed_rows(self) -> Sequence[int]:
        """The journal rows of turns that were received, since the last call."""
        processed, self._processed_rows = self._processed_rows, []
        return processed

    def _follow(self, event: PipelineEvent) -> Iterator[PipelineEvent]:
        if isinstance(event, Evaluation):
            yield from self._place(event)
        elif isinstance(event, Withdrawn):
            self._outside.pop(event.key, None)
            self._forwarding.withdraw(event.key, self._scoring.of_sessions)
            yield from self._left(self.sessions.withdraw(event.key, self._now))
        elif isinstance(event, Judged) and event.evaluation.session is None:
            self._add_scores(event.evaluation)

    def _place(self, evaluation: Evaluation) -> Iterator[PipelineEvent]:
        if evaluation.session is not None or not self._scoring.of_sessions:
            return
        invocation = evaluation.invocation
        if invocation.tenant in self._untracked:
            return
        scores = _scores(evaluation)
        turn = KeptTurn(invocation, evaluation.revision, self._now, scores)
        if self._joins(turn):
            # A revision of a turn that no session has is taken for one of a forgotten session.
            yield from self._forward_or_add(replace(turn, revision=0))
        yield from self._forward_or_add(turn)

    def _joins(self, turn: KeptTurn) -> bool:
        """Whether late spans have brought the conversation of an invocation that had none."""
        if conversation_of(turn.invocation) is not None:
            was_outside = turn.key in self._outside
            self._outside.pop(turn.key, None)
            return was_outside
        if not turn.revision:
            self._remember_outside(turn.key)
        return False

    def _remember_outside(self, key: EvaluationKey) -> None:
        self._outside[key] = None
        if len(self._outside) > _MAX_OUTSIDE:
            self._outside.popitem(last=False)

    def _forward_or_add(self, turn: KeptTurn) -> Iterator[PipelineEvent]:
        if not self._forwarding.forward(turn, conversation_of(turn.invocation)):
            yield from self._add(turn, self._now)
        elif turn.revision:
            yield from self._left(self.sessions.withdraw(turn.key, self._now))

    def _add(self, turn: KeptTurn, now: float) -> Iterator[PipelineEvent]:
        placed = self.sessions.place(turn, now)
        if placed.is_late and turn.invocation.conversation_id is not None:
            self._telemetry.session_turns_dropped.add("late")
        yield from self._left(placed.left)

    def _add_scores(self, judged: Evaluation) -> None:
        if not self._scoring.of_sessions:
            return
        scores, conversation = _scores(judged), conversation_of(judged.invocation)
        if not self._forwarding.add_scores(judged.key, judged.revision, conversation, scores):
            self.sessions.add_scores(judged.key, judged.revision, scores, self._now)

    def _left(self, empty: Session | None) -> Iterator[PipelineEvent]:
        """The result of a session without turns is void."""
        if empty is not None and empty.revision >= 0:
            key: EvaluationKey = result_key(empty.key)
            self._scoring.withdraw(key)
            yield Withdrawn(key)

    def _results(self, ended: Iterable[Ended]) -> Iterator[PipelineEvent]:
        for session, by in ended:
            evaluation = evaluate(session, by, self._scoring, self._references)
            if session.revision == 0:
                self._telemetry.sessions_ended.add(by)
            else:
                self._telemetry.session_revisions.add()
            if evaluation.results or evaluation.awaits:
                yield evaluation


def _scores(evaluation: Evaluation) -> dict[str, float | None]:
    return {result.criterion.name: result.score.value for result in evaluation.results}

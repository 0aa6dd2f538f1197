"""Numbers and scores the turns of conversations, wherever their traces were read.

A turn cannot be scored when its trace is read: its number depends on the other turns of its
conversation, and with several partitions another one may have that conversation. The turn is
forwarded to it then. A late span can change the number of a turn, its conversation, or whether it
is one at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from typing import NamedTuple

from pathgauge.collector.core.evaluations.accounting import count_conversation, count_unreadable
from pathgauge.collector.core.evaluations.conversation import ConversationKey
from pathgauge.collector.core.evaluations.conversations import (
    Conversations,
    Ended,
    conversation_key,
)
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey, evaluation_key
from pathgauge.collector.core.evaluations.forwarding import Forwarding
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn, restored
from pathgauge.collector.core.evaluations.turn import Turn
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.partitioning import Partition
from pathgauge.collector.core.pipeline_events import (
    ForwardedTurn,
    PipelineEvent,
    Withdrawn,
)
from pathgauge.collector.core.published import PublishedTrace, PublishedTraces
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.core.scoring import Scoring
from pathgauge.collector.core.traces import TraceKey
from pathgauge.scorers.types import Invocation

_UNEXPECTED = -1
"""The index of a turn that no conversation has."""


class TurnChanges(NamedTuple):
    """What changed in turns; `Changes` documents the fields."""

    processed_rows: tuple[int, ...]
    orphaned_turns: tuple[EvaluationKey, ...]
    turns: tuple[StoredTurn, ...]
    ended_conversations: tuple[ConversationKey, ...]
    forwarded: tuple[ForwardedTurn, ...]


class Turns:
    """The turns of one pipeline."""

    def __init__(
        self,
        conversations: Conversations,
        partition: Partition,
        *,
        published: PublishedTraces,
        scoring: Scoring,
        references: ReferenceSet,
        telemetry: InternalTelemetry,
        on_change: Callable[[TraceKey], None],
    ) -> None:
        """`on_change` is called when the published evaluations of a trace have changed."""
        self._conversations = conversations
        self._forwarding = Forwarding(partition)
        self._published = published
        self._scoring = scoring
        self._references = references
        self._telemetry = telemetry
        self._on_change = on_change
        self._orphaned: list[EvaluationKey] = []
        self._unplaced: list[Turn] = []
        """Held turns of an earlier process that have no conversation here."""
        self._processed_rows: list[int] = []

    def configure(self, references: ReferenceSet) -> None:
        """Apply other references to everything that is matched from now on."""
        self._references = references

    def match(
        self, invocation: Invocation, closed_by: str, published: PublishedTrace, now: float
    ) -> Match | None:
        """The reference turn of an invocation that was read. `None` for a turn of a conversation:
        `evaluate_due` scores it, here or in another partition.
        """
        self._recall(invocation, published)
        reference = self._references.multi_turn(invocation)
        if reference is None or invocation.conversation_id is None:
            self._forget(evaluation_key(invocation))  # late spans changed its scenario
            return self._references.match(invocation, invocation.turn)
        if (index := self._conversations.ended_as(invocation)) is not None:
            return self._references.match(invocation, index)
        conversation = conversation_key(invocation)
        if self._forwarding.is_foreign(conversation):
            key = evaluation_key(invocation)
            self._forget(key)
            revision = published.forward(invocation)
            turn = ForwardedTurn(key, invocation, closed_by, revision, at=now)
            self._forwarding.forward(turn, conversation)
            return None
        is_revision = published.knows(invocation.span_id)
        if self._conversations.place(
            invocation, reference, now, closed_by, is_revision=is_revision
        ):
            if self._conversations.is_held(evaluation_key(invocation)):
                published.hold(invocation)
            return None
        return Match(unmatched="unexpected_turn")

    def withdraw(self, key: EvaluationKey, published: PublishedTrace) -> list[PipelineEvent]:
        """Forget an invocation that a larger one encloses, if it was a turn."""
        if published.is_forwarded(key[2]):
            self._forwarding.withdraw(key, void=True)
        events = self._release(key)
        self._conversations.withdraw(key)
        return events

    def receive(self, turn: ForwardedTurn, now: float, row: int) -> list[PipelineEvent]:
        """Process a turn that another partition has forwarded, from the journal row `row`, which is
        not needed any more; 0 means no journal.
        """
        if row:
            self._processed_rows.append(row)
        events = self._release(turn.key)
        try:
            if turn.invocation is None:
                return [*events, *self._take_back(turn)]
            if self._is_outdated(turn):
                return events
            events += self._place(turn, turn.invocation, now)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # as of a trace
            return [*events, count_unreadable(turn.key[1], error, self._telemetry)]
        return events + self.evaluate_due(now)

    def evaluate_due(self, now: float) -> list[PipelineEvent]:
        """Evaluate the turns that are new, those that were held long enough, and those that others
        have renumbered.
        """
        return self._evaluate_unplaced() + self._evaluate_all(self._conversations.numbered(now))

    def expire(self, now: float) -> list[PipelineEvent]:
        """Score the conversations that have ended by `now`."""
        return self._finish(self._conversations.expire(now))

    def drain(self) -> list[PipelineEvent]:
        """Score all open conversations."""
        return self._finish(self._conversations.drain())

    def deadline(self) -> float | None:
        """The earliest time at which there may be something to do."""
        return self._unplaced[0].at if self._unplaced else self._conversations.deadline()

    def add_scores(self, judged: Evaluation) -> None:
        """Add the scores of judges, which arrive later, to those of the turn."""
        self._conversations.add_scores(judged)

    def restore(self, stored: StoredTurn) -> None:
        """Continue with one turn of an open conversation of an earlier process."""
        invocation = stored.invocation
        reference = self._references.multi_turn(invocation)
        turn = self._conversations.restore(stored, reference) if reference is not None else None
        if stored.held:
            if turn is None:
                self._unplaced.append(restored(stored))
        elif reference is None:
            self._orphaned.append(evaluation_key(invocation))
        elif turn is not None:
            match = self._references.match(invocation, turn.number)
            published = self._scoring.repeat(invocation, match, turn.revision)
            turn.repeat(published, stored.judged)

    def discard(self, traces: Set[TraceKey]) -> None:
        """Forget the turns of purged traces."""
        self._conversations.discard(traces)
        self._unplaced = [
            turn for turn in self._unplaced if evaluation_key(turn.invocation)[:2] not in traces
        ]

    @property
    def has_changes(self) -> bool:
        """Whether `changes` would return anything."""
        return (
            bool(self._orphaned or self._processed_rows)
            or self._conversations.has_changes
            or self._forwarding.has_changes
        )

    def changes(self) -> TurnChanges:
        """What changed since the last call."""
        orphaned, self._orphaned = tuple(self._orphaned), []
        processed, self._processed_rows = tuple(self._processed_rows), []
        turns, ended = self._conversations.changes()
        return TurnChanges(processed, orphaned, turns, ended, tuple(self._forwarding.changes()))

    def _recall(self, invocation: Invocation, published: PublishedTrace) -> None:
        """Tell the partition that has scored the turn that its evaluation is outdated."""
        if published.is_forwarded(invocation.span_id):
            self._forwarding.withdraw(evaluation_key(invocation), void=False)
            published.recall(invocation.span_id)

    def _forget(self, key: EvaluationKey) -> None:
        if self._conversations.withdraw(key):
            self._orphaned.append(key)

    def _place(
        self, turn: ForwardedTurn, invocation: Invocation, now: float
    ) -> Iterator[Evaluation]:
        """Add a turn to its conversation. It is evaluated at once if it has none here, because the
        references were reloaded in the meantime or the conversation has too many turns.
        """
        reference = self._references.multi_turn(invocation)
        if reference is None:
            match = self._references.match(invocation, invocation.turn)
        elif (index := self._conversations.ended_as(invocation)) is not None:
            match = self._references.match(invocation, index)
        elif self._conversations.place(
            invocation,
            reference,
            now,
            turn.closed_by,
            after=turn.revision - 1,
            is_revision=turn.revision > 0,
            read_at=turn.at,
        ):
            return
        else:
            match = Match(unmatched="unexpected_turn")
        yield self._scoring.evaluate(invocation, match, turn.closed_by, turn.revision)

    def _is_outdated(self, turn: ForwardedTurn) -> bool:
        """Whether late spans have changed the invocation in the meantime. It was forwarded when
        there was another number of partitions, and has stayed here since.
        """
        tenant, trace_id, span_id = turn.key
        published = self._published.get((tenant, trace_id))
        return published is not None and published.has_newer(span_id, turn.revision)

    def _release(self, key: EvaluationKey) -> list[PipelineEvent]:
        """Evaluate a turn that is held, before something else happens to it: so each has a first
        evaluation, which is the one that is counted.
        """
        held = self._conversations.release(key)
        return self._evaluate_unplaced() + self._evaluate_all([] if held is None else [held])

    def _evaluate_unplaced(self) -> list[PipelineEvent]:
        unplaced, self._unplaced = self._unplaced, []
        self._orphaned += (evaluation_key(turn.invocation) for turn in unplaced)
        return self._evaluate_all((turn, _UNEXPECTED) for turn in unplaced)

    def _take_back(self, turn: ForwardedTurn) -> Iterator[Withdrawn]:
        """Forget a turn. Its partition withdraws the evaluation too, but the order in which the
        gauge reads partitions is unknown.
        """
        self._forget(turn.key)
        if turn.void:
            self._scoring.withdraw(turn.key)
            yield Withdrawn(turn.key)

    def _evaluate_all(self, turns: Iterable[tuple[Turn, int]]) -> list[PipelineEvent]:
        events: list[PipelineEvent] = []
        for turn, index in turns:
            try:
                events.append(self._evaluate(turn, index))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # as of a trace
                trace_id = turn.invocation.trace_id
                events.append(count_unreadable(trace_id, error, self._telemetry))
        return events

    def _evaluate(self, turn: Turn, index: int) -> Evaluation:
        invocation, revision = turn.invocation, turn.revision + 1
        key = invocation.tenant, invocation.trace_id
        published = self._published.get(key)
        # A conversation may take longer than late spans of its first turns are waited for.
        if published is not None:
            revision = published.add(invocation, after=turn.revision)
            self._on_change(key)
        match = self._references.match(invocation, index)
        evaluation = self._scoring.evaluate(invocation, match, turn.closed_by, revision)
        self._conversations.record(turn, evaluation)
        return evaluation

    def _finish(self, ended: Iterable[Ended]) -> list[PipelineEvent]:
        events: list[PipelineEvent] = []
        for key, conversation in ended:
            events += self._evaluate_all(conversation.end())
            if conversation.turns:
                result = conversation.result(key)
                count_conversation(result, self._telemetry)
                events.append(result)
        return events

"""Turns that one scorer has sent to another, and that are not processed yet.

Some are in the journal of their receiver, others only in the outbox of their sender. All become
rows in the journal of the scorer that has the conversation now, where they wait to be processed.

A message that a turn is none any more is for its old receiver alone: the turn may have been sent to
another one since. So it takes effect here, on what that receiver holds, unless the evaluation is
void too: then a pipeline has to withdraw it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import zstandard

from pathgauge.collector.core.evaluations.conversations import conversation_key
from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.partitioning import (
    partition_of_conversation,
    partition_of_session,
    partition_of_trace,
)
from pathgauge.collector.core.pipeline_events import ForwardedTurn
from pathgauge.collector.store import journal, outbox, sessions
from pathgauge.collector.store.forwarded_turns import batch_of_turn
from pathgauge.collector.store.journal import COLUMNS, TURN, DamagedError
from pathgauge.collector.store.resharding.source import Source

_UNPROCESSED = f"SELECT {COLUMNS} FROM journal WHERE id > ? AND form = '{TURN}' ORDER BY id"
_SENT = """SELECT id, body, crc FROM forwarded
WHERE id > ? AND (target IS NULL OR target = ?) ORDER BY id"""
_CONVERSATION = """SELECT tenant, conversation, scenario FROM turns
WHERE trace_id = ? AND span_id = ? AND tenant = ?"""
_SESSION = """SELECT s.known FROM session_turns AS t JOIN sessions AS s
ON s.trace_id = t.session AND s.tenant = t.tenant
WHERE t.trace_id = ? AND t.span_id = ? AND t.tenant = ?"""

_Place: TypeAlias = "tuple[int, int]"
"""The order in which a receiver gets turns: those in its journal come first."""


@dataclass(slots=True)
class TurnsInTransit:
    """The turns that one receiver has not processed."""

    receiver: Source
    number: int
    """The partition of the receiver."""
    senders: Sequence[Source]
    """All sources, by partition."""
    partitions: int
    """The number of partitions to which turns are moved."""
    _withdrawn_at: dict[EvaluationKey, _Place] = field(default_factory=dict)
    """The last message for each turn that is none any more, but whose evaluation is not void."""
    _homes: dict[EvaluationKey, int] = field(default_factory=dict)
    """The new partition of each turn that was sent."""
    _session_homes: dict[EvaluationKey, int] = field(default_factory=dict)
    """The same for turns that were sent to a session."""

    def read(self) -> None:
        """Find out which turns are none any more."""
        for place, turn in self._all():
            if turn.session is not None:
                if turn.invocation is not None:
                    self._session_homes[turn.key] = self._home_of_session(turn)
            elif turn.invocation is not None:
                self._homes[turn.key] = self._home(turn)
            elif not turn.void:
                self._withdrawn_at[turn.key] = place

    def is_withdrawn(self, key: EvaluationKey) -> bool:
        """Whether a turn that the receiver has processed is none any more."""
        return key in self._withdrawn_at

    def part_in_journal(self, row: int, batch: Batch) -> int | None:
        """The new partition of a turn in the journal of the receiver; `None` if nobody needs it."""
        return self._part((0, row), batch.turn) if batch.turn is not None else None

    def sent(self) -> Iterator[tuple[int, Batch]]:
        """The turns that are only in the outboxes of senders, in order, by new partition."""
        for place, batch in self._sent():
            if batch.turn is not None and (part := self._part(place, batch.turn)) is not None:
                yield part, batch

    def _part(self, place: _Place, turn: ForwardedTurn) -> int | None:
        if turn.session is not None:
            return self._part_for_session(turn)
        if turn.invocation is None:
            return self._home_of(turn.key) if turn.void else None
        if place < self._withdrawn_at.get(turn.key, (0, 0)):
            return None
        return self._home(turn)

    def _home(self, turn: ForwardedTurn) -> int:
        assert turn.invocation is not None
        return partition_of_conversation(conversation_key(turn.invocation), self.partitions)

    def _part_for_session(self, turn: ForwardedTurn) -> int | None:
        """The partition of the session that holds the turn, or will; `None`: no session does."""
        if turn.invocation is not None:
            return self._home_of_session(turn)
        tenant, trace_id, span_id = turn.key
        rows = self.receiver.connection.execute(_SESSION, (trace_id, span_id, tenant))
        for (known,) in self.receiver.guarded(rows):
            conversation = sessions.read((known,)).conversation
            return partition_of_session(tenant, conversation, self.partitions)
        return self._session_homes.get(turn.key)

    def _home_of_session(self, turn: ForwardedTurn) -> int:
        conversation = (turn.session and turn.session.conversation) or ""
        return partition_of_session(turn.key[0], conversation, self.partitions)

    def _home_of(self, key: EvaluationKey) -> int:
        """Where a turn is that the receiver has processed, or will have."""
        tenant, trace_id, span_id = key
        rows = self.receiver.connection.execute(_CONVERSATION, (trace_id, span_id, tenant))
        for conversation in self.receiver.guarded(rows):
            return partition_of_conversation(conversation, self.partitions)
        return self._homes.get(key, partition_of_trace(trace_id, self.partitions))

    def _all(self) -> Iterator[tuple[_Place, ForwardedTurn]]:
        rows = self.receiver.connection.execute(_UNPROCESSED, (self.receiver.row,))
        for values in self.receiver.guarded(rows):
            try:
                batch = journal.unpack(values).batch
            except DamagedError:
                continue
            if batch.turn is not None:
                yield (0, values[0]), batch.turn
        for place, batch in self._sent():
            if batch.turn is not None:
                yield place, batch.turn

    def _sent(self) -> Iterator[tuple[_Place, Batch]]:
        received: Mapping[str, int] = outbox.received(self.receiver.connection)
        for sender in self.senders:
            if sender is self.receiver:
                continue
            after = received.get(sender.name, 0)
            rows = sender.connection.execute(_SENT, (after, self.number))
            for row, body, crc in sender.guarded(rows):
                try:
                    if crc != zlib.crc32(body):
                        raise ValueError("checksum")
                    batch = batch_of_turn(body)
                except (ValueError, zstandard.ZstdError) as error:
                    sender.quarantine("forwarded", row, str(error))
                else:
                    yield (1, row), batch

"""Numbers the turns of conversations for multi-turn references, and scores finished conversations.

A conversation is identified by tenant, conversation id and scenario. Its turns are numbered by
their start time, so a turn that arrives late renumbers those after it, and they are evaluated
again. An invocation that states its own turn keeps it. A conversation is finished when no turn
arrived for `idle`; a turn that arrives later begins a new one.

A conversation keeps at most four times as many turns as its reference has; further turns are only
counted. This bounds the memory when an application gives all conversations the same id.

Invocations are kept whole because renumbering evaluates them again. Of their evaluations, only the
scores are kept.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation
from pathgauge.collector.core.evaluations.memory_size import memory_size
from pathgauge.scorers.types import Invocation, Reference

ConversationKey = tuple[str, str, str]
"""Tenant, conversation id, scenario id."""

MAX_BYTES = 64 << 20
"""Default limit for the turns of all open conversations."""


@dataclass(frozen=True, slots=True)
class ConversationScore:
    """The mean of one criterion over the turns of a conversation."""

    criterion: Criterion
    value: float


@dataclass(frozen=True, slots=True)
class ConversationResult:
    """A finished conversation. Missing and unexpected turns count as 0 in every score."""

    tenant: str
    conversation_id: str
    reference: Reference
    agent: str | None
    agent_version: str | None
    scores: tuple[ConversationScore, ...]
    matched: int
    missing: int
    unexpected: int


@dataclass(slots=True)
class _Turn:
    invocation: Invocation
    size: int
    index: int | None = None
    scores: tuple[ConversationScore, ...] = ()


@dataclass(slots=True)
class _Conversation:
    reference: Reference
    last: float
    turns: dict[tuple[str, str], _Turn] = field(default_factory=dict)
    dropped_turns: int = 0
    """Number of turns beyond the limit, which were not kept."""

    @property
    def full(self) -> bool:
        return len(self.turns) >= 4 * len(self.reference.turns)


class Conversations:
    """The open conversations. The caller passes the time; there is no clock."""

    def __init__(
        self, idle: float = 1800.0, max_open: int = 10_000, max_bytes: int = MAX_BYTES
    ) -> None:
        """`idle` in seconds. Beyond `max_open` conversations or `max_bytes`, the conversation that
        has been idle longest is finished early.
        """
        self._idle = idle
        self._max_open = max_open
        self._max_bytes = max_bytes
        self._size = 0
        self._open: OrderedDict[ConversationKey, _Conversation] = OrderedDict()

    @property
    def size(self) -> int:
        """Memory of all kept turns, in bytes."""
        return self._size

    def place(
        self, invocation: Invocation, reference: Reference, now: float
    ) -> list[tuple[Invocation, int]]:
        """Add a turn and number all turns anew. Returns the turns whose number changed, always
        including this one; empty if the conversation has too many turns to keep it.
        """
        conversation = self._continue(invocation, reference, now)
        turn_key = invocation.trace_id, invocation.span_id
        if conversation.full and turn_key not in conversation.turns:
            conversation.dropped_turns += 1
            return []
        self._drop(conversation, turn_key)
        turn = conversation.turns[turn_key] = _Turn(invocation, memory_size(invocation))
        self._size += turn.size
        ordered = sorted(
            conversation.turns.values(),
            key=lambda turn: (turn.invocation.start_ns or 0, turn.invocation.span_id),
        )
        return list(_renumber(ordered))

    def dropped_turns(self, invocation: Invocation) -> int:
        """Number of turns of the invocation's conversation that were not kept."""
        conversation = self._open.get(_key(invocation))
        return conversation.dropped_turns if conversation else 0

    def restore_dropped(
        self, invocation: Invocation, reference: Reference, dropped_turns: int, now: float
    ) -> None:
        """Restore the number of dropped turns. `invocation` is the newest of them."""
        self._continue(invocation, reference, now).dropped_turns = dropped_turns

    def record_scores(self, evaluation: Evaluation) -> None:
        """Replace the scores of a turn by those of its newest evaluation."""
        turn = self._turn(evaluation.invocation)
        if turn is not None:
            turn.scores = tuple(_scores(evaluation))

    def add_scores(self, judged: Evaluation) -> None:
        """Add the scores of judges, which arrive later, to those of the turn."""
        turn = self._turn(judged.invocation)
        if turn is not None:
            turn.scores += tuple(_scores(judged))

    def withdraw(self, invocation_key: tuple[str, str, str]) -> None:
        """Forget a turn whose evaluation was withdrawn."""
        tenant, *turn_key = invocation_key
        for key, conversation in self._open.items():
            if key[0] == tenant:
                self._drop(conversation, (turn_key[0], turn_key[1]))

    def discard(self, traces: Container[tuple[str, str]]) -> None:
        """Forget every turn in these traces, given by tenant and trace id."""
        for (tenant, *_), conversation in self._open.items():
            for turn in [turn for turn in conversation.turns if (tenant, turn[0]) in traces]:
                self._drop(conversation, turn)

    def expire(self, now: float) -> list[ConversationResult]:
        """Finish conversations that are idle or exceed the limits. Returns their results."""
        finished = []
        while self._open:
            key, conversation = next(iter(self._open.items()))
            if now < conversation.last + self._idle and not self._crowded:
                break
            del self._open[key]
            self._size -= sum(turn.size for turn in conversation.turns.values())
            if conversation.turns:
                finished.append(_result(key, conversation))
        return finished

    def deadline(self) -> float | None:
        """The earliest time at which `expire` may have something to do."""
        idle = 0.0 if self._crowded else self._idle
        return next((conversation.last + idle for conversation in self._open.values()), None)

    def drain(self) -> list[ConversationResult]:
        """Finish every conversation."""
        return self.expire(math.inf)

    @property
    def _crowded(self) -> bool:
        return len(self._open) > self._max_open or self._size > self._max_bytes

    def _continue(self, invocation: Invocation, reference: Reference, now: float) -> _Conversation:
        key = _key(invocation)
        conversation = self._open.setdefault(key, _Conversation(reference, now))
        conversation.reference, conversation.last = reference, now
        self._open.move_to_end(key)
        return conversation

    def _drop(self, conversation: _Conversation, turn: tuple[str, str]) -> None:
        dropped = conversation.turns.pop(turn, None)
        if dropped is not None:
            self._size -= dropped.size

    def _turn(self, invocation: Invocation) -> _Turn | None:
        if invocation.conversation_id is None:
            return None
        conversation = self._open.get(_key(invocation))
        if conversation is None:
            return None
        return conversation.turns.get((invocation.trace_id, invocation.span_id))


def _key(invocation: Invocation) -> ConversationKey:
    return invocation.tenant, invocation.conversation_id or "", invocation.scenario_id or ""


def _renumber(ordered: list[_Turn]) -> Iterator[tuple[Invocation, int]]:
    for position, turn in enumerate(ordered):
        index = position if turn.invocation.turn is None else turn.invocation.turn
        if index != turn.index:
            turn.index = index
            yield turn.invocation, index


def _result(key: ConversationKey, conversation: _Conversation) -> ConversationResult:
    turns = sorted(conversation.turns.values(), key=lambda turn: turn.index or 0)
    expected = len(conversation.reference.turns)
    present = {turn.index for turn in turns if turn.index is not None and turn.index < expected}
    missing = expected - len(present)
    unexpected = len(turns) - len(present) + conversation.dropped_turns
    last = turns[-1].invocation
    return ConversationResult(
        tenant=key[0],
        conversation_id=key[1],
        reference=conversation.reference,
        agent=last.agent,
        agent_version=last.agent_version,
        scores=tuple(_means(turns, missing + unexpected)),
        matched=len(present),
        missing=missing,
        unexpected=unexpected,
    )


def _scores(evaluation: Evaluation) -> Iterator[ConversationScore]:
    for result in evaluation.results:
        if result.criterion.scorer.needs_reference and result.score.value is not None:
            yield ConversationScore(result.criterion, result.score.value)


def _means(turns: list[_Turn], zeros: int) -> Iterator[ConversationScore]:
    """The mean of each criterion over its scores and `zeros` further turns with score 0. A
    criterion without any score has no mean.
    """
    values: dict[str, list[float]] = {}
    criteria: dict[str, Criterion] = {}
    for turn in turns:
        for score in turn.scores:
            criteria[score.criterion.name] = score.criterion
            values.setdefault(score.criterion.name, []).append(score.value)
    for name, criterion in criteria.items():
        yield ConversationScore(criterion, math.fsum(values[name]) / (len(values[name]) + zeros))

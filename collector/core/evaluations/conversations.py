"""Binds the turns of conversations to multi-turn references, and scores finished conversations: a
state machine without clock.

A conversation is what one tenant, one conversation id and one scenario share. Its turns are
numbered by their start, so that a turn which arrives late moves the others, and all that moved are
evaluated again. An invocation that says its own turn keeps it. A conversation is finished when
nothing of it arrived for `idle`; what arrives afterwards begins a new one. Beyond four times the
turns of its reference further turns are only counted: somebody gives all conversations one id.

The turns are kept whole, as one that moves is evaluated again; of their evaluations the scores are
kept.
"""

from __future__ import annotations

import math
import sys
from collections import OrderedDict
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation
from pathgauge.scorers.types import Invocation, Reference

ConversationKey = tuple[str, str, str]
"""Tenant, conversation id, scenario id."""

MAX_BYTES = 64 << 20
"""What the turns of all open conversations may hold."""


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
    beyond: int = 0
    """Turns that were not kept."""

    @property
    def full(self) -> bool:
        return len(self.turns) >= 4 * len(self.reference.turns)


class Conversations:
    """The conversations of one partition that are not finished."""

    def __init__(
        self, idle: float = 1800.0, max_open: int = 10_000, max_bytes: int = MAX_BYTES
    ) -> None:
        """`idle` in seconds; beyond `max_open` conversations or `max_bytes` the one that was silent
        longest is finished early.
        """
        self._idle = idle
        self._max_open = max_open
        self._max_bytes = max_bytes
        self._size = 0
        self._open: OrderedDict[ConversationKey, _Conversation] = OrderedDict()

    @property
    def size(self) -> int:
        """What the turns hold, in bytes."""
        return self._size

    def place(
        self, invocation: Invocation, reference: Reference, now: float
    ) -> list[tuple[Invocation, int]]:
        """Number the turns with this one among them; returns those whose number is new: this one
        always, unless there are too many.
        """
        conversation = self._go_on(invocation, reference, now)
        if (
            conversation.full
            and (invocation.trace_id, invocation.span_id) not in conversation.turns
        ):
            conversation.beyond += 1
            return []
        self._drop(conversation, (invocation.trace_id, invocation.span_id))
        turn = conversation.turns[invocation.trace_id, invocation.span_id] = _Turn(
            invocation, _size(invocation)
        )
        self._size += turn.size
        ordered = sorted(
            conversation.turns.values(),
            key=lambda turn: (turn.invocation.start_ns or 0, turn.invocation.span_id),
        )
        return list(_renumber(ordered))

    def beyond(self, invocation: Invocation) -> int:
        """How many turns of its conversation were not kept."""
        conversation = self._open.get(_key(invocation))
        return conversation.beyond if conversation else 0

    def restore_beyond(
        self, invocation: Invocation, reference: Reference, beyond: int, now: float
    ) -> None:
        """Know how many they are again, by the newest of them."""
        self._go_on(invocation, reference, now).beyond = beyond

    def record_scores(self, evaluation: Evaluation) -> None:
        """Keep the scores of the newest evaluation of a turn for the score of the case."""
        turn = self._turn(evaluation.invocation)
        if turn is not None:
            turn.scores = tuple(_scores(evaluation))

    def add(self, judged: Evaluation) -> None:
        """Keep what judges said later of that evaluation, too."""
        turn = self._turn(judged.invocation)
        if turn is not None:
            turn.scores += tuple(_scores(judged))

    def withdraw(self, invocation_key: tuple[str, str, str]) -> None:
        """Forget a turn that proved to be none."""
        tenant, *turn_key = invocation_key
        for key, conversation in self._open.items():
            if key[0] == tenant:
                self._drop(conversation, (turn_key[0], turn_key[1]))

    def discard(self, traces: Container[tuple[str, str]]) -> None:
        """Forget every turn of these traces, named by tenant and trace id."""
        for (tenant, *_), conversation in self._open.items():
            for turn in [turn for turn in conversation.turns if (tenant, turn[0]) in traces]:
                self._drop(conversation, turn)

    def expire(self, now: float) -> list[ConversationResult]:
        """The conversations that have been silent long enough, or had to give way."""
        cases = []
        while self._open:
            key, conversation = next(iter(self._open.items()))
            if now < conversation.last + self._idle and not self._crowded:
                break
            del self._open[key]
            self._size -= sum(turn.size for turn in conversation.turns.values())
            if conversation.turns:
                cases.append(_case(key, conversation))
        return cases

    def deadline(self) -> float | None:
        """When `expire` may next have something to do."""
        idle = 0.0 if self._crowded else self._idle
        return next((conversation.last + idle for conversation in self._open.values()), None)

    def drain(self) -> list[ConversationResult]:
        """Finish every conversation."""
        return self.expire(math.inf)

    @property
    def _crowded(self) -> bool:
        return len(self._open) > self._max_open or self._size > self._max_bytes

    def _go_on(self, invocation: Invocation, reference: Reference, now: float) -> _Conversation:
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
        return (
            conversation.turns.get((invocation.trace_id, invocation.span_id))
            if conversation
            else None
        )


def _key(invocation: Invocation) -> ConversationKey:
    return invocation.tenant, invocation.conversation_id or "", invocation.scenario_id or ""


def _size(invocation: Invocation) -> int:
    """Bytes of memory; what is shared with others counts in full."""
    size, values = 0, [invocation]
    while values:
        value: Any = values.pop()
        size += sys.getsizeof(value)
        if isinstance(value, Mapping):
            values.extend(value)
            values.extend(value.values())
        elif isinstance(value, list | tuple | frozenset):
            values.extend(value)
        elif is_dataclass(value):
            values.extend(getattr(value, part.name) for part in fields(value))
    return size


def _renumber(ordered: list[_Turn]) -> Iterator[tuple[Invocation, int]]:
    for position, turn in enumerate(ordered):
        index = position if turn.invocation.turn is None else turn.invocation.turn
        if index != turn.index:
            turn.index = index
            yield turn.invocation, index


def _case(key: ConversationKey, conversation: _Conversation) -> ConversationResult:
    turns = sorted(conversation.turns.values(), key=lambda turn: turn.index or 0)
    expected = len(conversation.reference.turns)
    present = {turn.index for turn in turns if turn.index is not None and turn.index < expected}
    missing, unexpected = expected - len(present), len(turns) - len(present) + conversation.beyond
    last = turns[-1].invocation
    scores = tuple(_means(turns, missing + unexpected))
    return ConversationResult(
        key[0],
        key[1],
        conversation.reference,
        last.agent,
        last.agent_version,
        scores,
        len(present),
        missing,
        unexpected,
    )


def _scores(evaluation: Evaluation) -> Iterator[ConversationScore]:
    for result in evaluation.results:
        if result.criterion.scorer.needs_reference and result.score.value is not None:
            yield ConversationScore(result.criterion, result.score.value)


def _means(turns: list[_Turn], zeros: int) -> Iterator[ConversationScore]:
    """Means over the turns that were evaluated; a criterion that judged no turn has no score."""
    values: dict[str, list[float]] = {}
    criteria: dict[str, Criterion] = {}
    for turn in turns:
        for score in turn.scores:
            criteria[score.criterion.name] = score.criterion
            values.setdefault(score.criterion.name, []).append(score.value)
    for name, criterion in criteria.items():
        yield ConversationScore(criterion, math.fsum(values[name]) / (len(values[name]) + zeros))

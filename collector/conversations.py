"""Binds the turns of conversations to multi-turn references, and scores finished conversations: a state machine without clock.

A conversation is what one tenant, one conversation id and one scenario share. Its turns are numbered by their start, so that a turn which
arrives late moves the others, and all that moved are evaluated again. An invocation that says its own turn keeps it. A conversation
is finished when nothing of it arrived for `idle`; what arrives afterwards begins a new one. Beyond four times the turns of its
reference further turns are only counted: somebody gives all conversations one id.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field

from collector.evaluator import Criterion, Evaluation
from scorers.types import Invocation, Reference

Key = tuple[str, str, str]
"""Tenant, conversation id, scenario id."""


@dataclass(frozen=True, slots=True)
class CaseScore:
    """The mean of one criterion over the turns of a conversation."""

    criterion: Criterion
    value: float


@dataclass(frozen=True, slots=True)
class Case:
    """A finished conversation. Missing and unexpected turns count as 0 in every score."""

    tenant: str
    conversation_id: str
    reference: Reference
    agent: str | None
    agent_version: str | None
    scores: tuple[CaseScore, ...]
    matched: int
    missing: int
    unexpected: int


@dataclass(slots=True)
class _Turn:
    invocation: Invocation
    index: int | None = None
    evaluation: Evaluation | None = None


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

    def __init__(self, idle: float = 1800.0, max_open: int = 10_000) -> None:
        """`idle` in seconds; beyond `max_open` conversations the one that was silent longest is finished early."""
        self._idle = idle
        self._max_open = max_open
        self._open: OrderedDict[Key, _Conversation] = OrderedDict()

    def place(self, invocation: Invocation, reference: Reference, now: float) -> list[tuple[Invocation, int]]:
        """Number the turns with this one among them; returns those whose number is new: this one always, unless there are too many."""
        key = _key(invocation)
        conversation = self._open.get(key)
        if conversation is None:
            conversation = self._open[key] = _Conversation(reference, now)
        conversation.reference, conversation.last = reference, now
        self._open.move_to_end(key)
        if conversation.full and (invocation.trace_id, invocation.span_id) not in conversation.turns:
            conversation.beyond += 1
            return []
        conversation.turns[invocation.trace_id, invocation.span_id] = _Turn(invocation)
        ordered = sorted(conversation.turns.values(), key=lambda turn: (turn.invocation.start_ns or 0, turn.invocation.span_id))
        return list(_renumber(ordered))

    def settle(self, evaluation: Evaluation) -> None:
        """Keep the newest evaluation of a turn for the score of the case."""
        turn = self._turn(evaluation.invocation)
        if turn is not None:
            turn.evaluation = evaluation

    def withdraw(self, invocation_key: tuple[str, str, str]) -> None:
        """Forget a turn that proved to be none."""
        tenant, *turn_key = invocation_key
        for key, conversation in self._open.items():
            if key[0] == tenant:
                conversation.turns.pop((turn_key[0], turn_key[1]), None)

    def expire(self, now: float) -> list[Case]:
        """The conversations that have been silent long enough, or had to give way."""
        cases = []
        while self._open:
            key, conversation = next(iter(self._open.items()))
            if now < conversation.last + self._idle and len(self._open) <= self._max_open:
                break
            del self._open[key]
            if conversation.turns:
                cases.append(_case(key, conversation))
        return cases

    def deadline(self) -> float | None:
        """When `expire` may next have something to do."""
        return next((conversation.last + self._idle for conversation in self._open.values()), None)

    def drain(self) -> list[Case]:
        """Finish every conversation."""
        return self.expire(math.inf)

    def _turn(self, invocation: Invocation) -> _Turn | None:
        if invocation.conversation_id is None:
            return None
        conversation = self._open.get(_key(invocation))
        return conversation.turns.get((invocation.trace_id, invocation.span_id)) if conversation else None


def _key(invocation: Invocation) -> Key:
    return invocation.tenant, invocation.conversation_id or "", invocation.scenario_id or ""


def _renumber(ordered: list[_Turn]) -> Iterator[tuple[Invocation, int]]:
    for position, turn in enumerate(ordered):
        index = position if turn.invocation.turn is None else turn.invocation.turn
        if index != turn.index:
            turn.index = index
            yield turn.invocation, index


def _case(key: Key, conversation: _Conversation) -> Case:
    turns = sorted(conversation.turns.values(), key=lambda turn: turn.index or 0)
    expected = len(conversation.reference.turns)
    present = {turn.index for turn in turns if turn.index is not None and turn.index < expected}
    missing, unexpected = expected - len(present), len(turns) - len(present) + conversation.beyond
    last = turns[-1].invocation
    scores = tuple(_scores([turn.evaluation for turn in turns if turn.evaluation], missing + unexpected))
    return Case(key[0], key[1], conversation.reference, last.agent, last.agent_version, scores, len(present), missing, unexpected)


def _scores(evaluations: list[Evaluation], zeros: int) -> Iterator[CaseScore]:
    """Means over the turns that were evaluated; a criterion that judged no turn has no score."""
    values: dict[str, list[float]] = {}
    criteria: dict[str, Criterion] = {}
    for evaluation in evaluations:
        for result in evaluation.results:
            if result.criterion.scorer.needs_reference and result.score.value is not None:
                criteria[result.criterion.name] = result.criterion
                values.setdefault(result.criterion.name, []).append(result.score.value)
    for name, criterion in criteria.items():
        yield CaseScore(criterion, math.fsum(values[name]) / (len(values[name]) + zeros))

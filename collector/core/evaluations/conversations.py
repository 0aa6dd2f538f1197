"""The open conversations: which turn belongs to which, when they end, and how much they may hold.

A conversation is identified by tenant, conversation id and scenario. It is finished when no turn
was read for `idle`; a turn that arrives later begins a new one. `conversation_clock.py` tells by
which time, and `conversation.py` numbers the turns.

A conversation keeps at most four times as many turns as its reference has; further turns are only
counted. This bounds the memory when an application gives all conversations the same id.

Late spans may still change a turn when its conversation has ended. It keeps its number then: a
conversation of its own would have it scored as the first turn.

Invocations are kept whole because renumbering evaluates them again. Of their evaluations, only the
scores are kept.
"""

from __future__ import annotations

import heapq
import math
from collections import OrderedDict
from collections.abc import Container
from typing import NamedTuple

from pathgauge.collector.core.evaluations.conversation import (
    Conversation,
    ConversationKey,
    ConversationResult,
    ConversationScore,
)
from pathgauge.collector.core.evaluations.conversation_clock import ConversationClock
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey, evaluation_key
from pathgauge.collector.core.evaluations.memory_size import memory_size
from pathgauge.collector.core.evaluations.open_conversations import OpenConversations
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn, restored, stored_of
from pathgauge.collector.core.evaluations.turn import Turn, scores_of
from pathgauge.scorers.types import Invocation, Reference

__all__ = ["MAX_BYTES", "ConversationResult", "ConversationScore", "Conversations", "Ended"]

MAX_BYTES = 64 << 20
"""Default limit for the turns of all open conversations."""
_MAX_ENDED_TURNS = 20_000
"""Turns of ended conversations whose numbers are known, the newest ones. A restart forgets them."""


class Ended(NamedTuple):
    """A conversation that no further turn belongs to."""

    key: ConversationKey
    conversation: Conversation


class _EndedTurn(NamedTuple):
    """A turn of a conversation that has ended."""

    conversation: ConversationKey
    number: int | None


class Conversations:
    """The open conversations. The caller passes the time; there is no clock."""

    def __init__(
        self,
        idle: float = 1800.0,
        max_open: int = 10_000,
        max_bytes: int = MAX_BYTES,
        *,
        hold: float = 0.0,
    ) -> None:
        """`idle` in seconds. Beyond `max_open` conversations or `max_bytes`, the conversation that
        has been idle longest is finished early. Turns that do not state their number are evaluated
        `hold` seconds after they arrive.
        """
        self._idle = idle
        self._hold = hold
        self._max_open = max_open
        self.max_bytes = max_bytes
        self._size = 0
        self._clock = ConversationClock()
        self._open = OpenConversations()
        self._of_turn: dict[EvaluationKey, ConversationKey] = {}
        self._with_new_turns: dict[ConversationKey, None] = {}
        self._due: list[tuple[float, ConversationKey]] = []
        self._changed: dict[EvaluationKey, Turn] = {}
        self._dropped: dict[ConversationKey, StoredTurn] = {}
        self._ended: dict[ConversationKey, None] = {}
        self._ended_turns: OrderedDict[EvaluationKey, _EndedTurn] = OrderedDict()

    @property
    def size(self) -> int:
        """Size of all kept turns, in bytes."""
        return self._size

    def hear(self, reached: float) -> None:
        """What is known of other partitions, see `ConversationClock.hear`."""
        self._clock.hear(reached)

    def place(
        self,
        invocation: Invocation,
        reference: Reference,
        now: float,
        closed_by: str = "root_ended",
        *,
        after: int = -1,
        is_revision: bool = False,
        read_at: float | None = None,
    ) -> bool:
        """Add a turn, which `numbered` returns next, or later if it is held; `False` if the
        conversation has too many turns to keep it. Its revisions follow the number `after`.
        `is_revision`: whether it was evaluated before, here or elsewhere. `read_at` is the time at
        which another partition has read it.
        """
        key = conversation_key(invocation)
        at = self._clock.of_turn(read_at, now)
        conversation = self._open.go_on(key, reference, now, at)
        turn = Turn(invocation, memory_size(invocation), at, closed_by, revision=after)
        earlier = self._remove(evaluation_key(invocation))
        if earlier is not None:
            turn.continue_from(earlier)
        elif after < 0 and self._holds(invocation):
            turn.held_until = now + self._hold
        if conversation.full:
            conversation.dropped_turns += not is_revision
            self._dropped[key] = _dropped(invocation, conversation.last, conversation.dropped_turns)
            return False
        conversation.add(turn, now)
        self._keep(turn, key)
        self._with_new_turns[key] = None
        if turn.is_held:
            self._changed[evaluation_key(invocation)] = turn
        return True

    def ended_as(self, invocation: Invocation) -> int | None:
        """The index of a turn whose conversation has ended; -1 if its reference does not have it,
        `None` if the invocation is no such turn.
        """
        ended = self._ended_turns.get(evaluation_key(invocation))
        if ended is None or ended.conversation != conversation_key(invocation):
            return None
        if invocation.turn is not None:
            return invocation.turn
        return -1 if ended.number is None else ended.number

    def numbered(self, now: float) -> list[tuple[Turn, int]]:
        """The turns to evaluate now, each with its number in its conversation: those added since
        the last call, and others that they renumber.
        """
        ready, self._with_new_turns = self._with_new_turns, {}
        while self._due and self._due[0][0] <= now:
            due_at, key = heapq.heappop(self._due)
            conversation = self._open.get(key)
            if conversation is not None and conversation.due_at == due_at:
                ready[key] = None
        found = []
        for key in ready:
            conversation = self._open.get(key)
            if conversation is not None:
                found += conversation.due(now)
                self._schedule(key, conversation)
        return found

    def is_held(self, key: EvaluationKey) -> bool:
        """Whether a turn waits for its first evaluation."""
        turn = self._find(key)
        return turn is not None and turn.is_held

    def release(self, key: EvaluationKey) -> tuple[Turn, int] | None:
        """A turn with its number if it is held, to be evaluated before something else happens to
        it.
        """
        of = self._of_turn.get(key)
        return None if of is None else self._open[of].release(key[1:])

    def record(self, turn: Turn, evaluation: Evaluation) -> None:
        """Record the newest evaluation of a turn that `numbered` returned, or that is part of an
        ended conversation.
        """
        turn.record(evaluation)
        if self._find(evaluation.key) is turn:
            self._changed[evaluation.key] = turn
        elif (ended := self._ended_turns.get(evaluation.key)) is not None:
            self._ended_turns[evaluation.key] = ended._replace(number=turn.number)

    def add_scores(self, judged: Evaluation) -> None:
        """Add the scores of judges, which arrive later, to those of the turn."""
        turn = self._find(judged.key)
        if turn is not None:
            turn.scores += tuple(scores_of(judged))
            self._changed[judged.key] = turn

    def restore(self, stored: StoredTurn, reference: Reference) -> Turn | None:
        """Continue with a turn that an earlier process has evaluated or held; `None` if it is not
        kept.
        """
        key = conversation_key(stored.invocation)
        conversation = self._open.go_on(key, reference, stored.at, stored.at)
        if stored.dropped_turns:
            conversation.dropped_turns = stored.dropped_turns
            return None
        if conversation.full:
            conversation.dropped_turns += 1
            return None
        turn = restored(stored)
        if stored.held:
            turn.held_until = stored.at + self._hold
        conversation.restore(turn)
        self._keep(turn, key)
        self._schedule(key, conversation)
        return turn

    def withdraw(self, key: EvaluationKey) -> bool:
        """Forget a turn that is none any more; `False` if it was none."""
        return self._remove(key) is not None

    def discard(self, traces: Container[tuple[str, str]]) -> None:
        """Forget every turn in these traces, given by tenant and trace id."""
        for key in [key for key in self._of_turn if key[:2] in traces]:
            self._remove(key)
        for key in [key for key in self._ended_turns if key[:2] in traces]:
            del self._ended_turns[key]

    def expire(self, now: float) -> list[Ended]:
        """End conversations that are idle or exceed the limits. The turns that their `end` returns
        are to be evaluated before the result is taken.
        """
        self._clock.advance(now)
        ended = []
        while (quietest := self._open.quietest()) is not None:
            if now < self._ends_at(quietest) and not self._crowded:
                break
            ended.append(self._end_quietest())
        return ended

    def deadline(self) -> float | None:
        """The earliest time at which `numbered` or `expire` may have something to do."""
        ends, quietest = math.inf, self._open.quietest()
        if quietest is not None:
            ends = quietest.arrived if self._crowded else self._ends_at(quietest)
        deadline = min(ends, self._due[0][0]) if self._due else ends
        return None if deadline == math.inf else deadline

    def drain(self) -> list[Ended]:
        """End every conversation."""
        ended = []
        while self._open.quietest() is not None:
            ended.append(self._end_quietest())
        return ended

    @property
    def has_changes(self) -> bool:
        """Whether `changes` would return anything."""
        return bool(self._changed or self._dropped or self._ended)

    def changes(self) -> tuple[tuple[StoredTurn, ...], tuple[ConversationKey, ...]]:
        """Turns that were evaluated or dropped, and conversations that ended, since the last call.
        The turns belong to conversations that are open.
        """
        turns = (*map(stored_of, self._changed.values()), *self._dropped.values())
        ended = tuple(self._ended)
        self._changed, self._dropped, self._ended = {}, {}, {}
        return turns, ended

    @property
    def _crowded(self) -> bool:
        return len(self._open) > self._max_open or self._size > self.max_bytes

    def _ends_at(self, conversation: Conversation) -> float:
        return self._clock.when(conversation.last + self._idle)

    def _end_quietest(self) -> Ended:
        key, conversation = self._open.end_quietest()
        for turn in conversation.turns.values():
            self._forget(turn)
            self._ended_turns[evaluation_key(turn.invocation)] = _EndedTurn(key, turn.number)
        while len(self._ended_turns) > _MAX_ENDED_TURNS:
            self._ended_turns.popitem(last=False)
        self._dropped.pop(key, None)
        self._ended[key] = None
        return Ended(key, conversation)

    def _schedule(self, key: ConversationKey, conversation: Conversation) -> None:
        due_at = conversation.due_at
        if due_at < math.inf and due_at != conversation.scheduled_at:
            conversation.scheduled_at = due_at
            heapq.heappush(self._due, (due_at, key))

    def _holds(self, invocation: Invocation) -> bool:
        return self._hold > 0 and invocation.turn is None

    def _keep(self, turn: Turn, conversation: ConversationKey) -> None:
        self._of_turn[evaluation_key(turn.invocation)] = conversation
        self._size += turn.size

    def _forget(self, turn: Turn) -> None:
        key = evaluation_key(turn.invocation)
        del self._of_turn[key]
        self._changed.pop(key, None)
        self._size -= turn.size

    def _remove(self, key: EvaluationKey) -> Turn | None:
        of = self._of_turn.get(key)
        if of is None:
            return None
        conversation = self._open[of]
        turn = conversation.remove(key[1:])
        self._forget(turn)
        self._schedule(of, conversation)
        return turn

    def _find(self, key: EvaluationKey) -> Turn | None:
        of = self._of_turn.get(key)
        return None if of is None else self._open[of].turns[key[1:]]


def conversation_key(invocation: Invocation) -> ConversationKey:
    """The conversation that a turn belongs to."""
    return invocation.tenant, invocation.conversation_id or "", invocation.scenario_id or ""


def _dropped(invocation: Invocation, at: float, dropped_turns: int) -> StoredTurn:
    return StoredTurn(invocation, at, dropped_turns=dropped_turns)

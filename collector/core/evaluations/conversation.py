"""One conversation: the order of its turns, their numbers, and its score.

Turns are numbered by their start time, so a turn that arrives late changes the numbers of those
after it. These are evaluated again, but not every time: turns that arrive in reverse order would
otherwise cost the square of their number. A turn is evaluated again at once, then at the earliest
after 5, 10, 20 ... seconds, and after `MAX_RENUMBERINGS` only at the end of the conversation. So
its last evaluation always has the right number.

Turns of several partitions may arrive in another order than they were read. Only the first
evaluation of a turn is counted, so a turn is held before it, until those that are still on their
way have arrived.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.evaluations.turn import Turn, TurnKey
from pathgauge.scorers.authoring.ranges import worst
from pathgauge.scorers.matching.measures import mean_of
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn

MAX_RENUMBERINGS = 10
"""How often other turns can cause an evaluation of a turn before the conversation ends."""
RENUMBER_S = 5.0
"""The shortest time between the first two of them; it doubles each time."""
HOLD_S = 5.0
"""How long a turn is held if there are several partitions. From one to another it takes two
commits, usually less than two seconds.
"""
_PASS_S = 1.0
"""The shortest time between two comparisons of all numbers of a conversation."""
_KEPT_PER_TURN = 4
"""Turns that are kept for each turn of the reference."""

_NOTHING = Invocation("", "", "", user_input="", final_response="")
"""What an agent did in a turn that is missing."""

ConversationKey: TypeAlias = "tuple[str, str, str]"
"""Tenant, conversation id, scenario id."""
_Place: TypeAlias = "tuple[int, str, str]"
"""Start time, span id, trace id."""


@dataclass(frozen=True, slots=True)
class ConversationScore:
    """The mean of one criterion over the turns of a conversation."""

    criterion: Criterion
    value: float | None
    """`None`: turns are missing or unexpected, and the scorer has no worst value to count them
    as.
    """


@dataclass(frozen=True, slots=True)
class ConversationResult:
    """A finished conversation. Missing and unexpected turns count as the worst value of every
    scorer.
    """

    tenant: str
    conversation_id: str
    reference: Reference
    agent: str | None
    agent_version: str | None
    scores: tuple[ConversationScore, ...]
    matched: int
    """Turns that the reference has. If several state the same number, each has its own score."""
    missing: int
    unexpected: int


class Conversation:
    """The turns of one conversation. `add` and `remove` take effect with the next `due`."""

    def __init__(self, reference: Reference, now: float) -> None:
        self.reference = reference
        self.last = -math.inf
        """When the newest turn was read, by the time of conversations."""
        self.arrived = now
        """When the newest turn arrived, by the time of its own partition."""
        self.touched = 0
        """Orders conversations whose newest turns were read at the same time."""
        self.turns: dict[TurnKey, Turn] = {}
        self.dropped_turns = 0
        """Number of turns beyond the limit, which were not kept."""
        self.due_at = math.inf
        """When `due` has something to return, apart from new turns."""
        self.scheduled_at = math.inf
        """The `due_at` that the owner of the conversation knows of."""
        self._order: list[_Place] = []
        self._new: dict[TurnKey, None] = {}
        self._compared_at = -math.inf

    @property
    def full(self) -> bool:
        """Whether no further turn is kept."""
        return len(self.turns) >= _KEPT_PER_TURN * len(self.reference.turns)

    def add(self, turn: Turn, now: float) -> None:
        """Add a turn that waits for its first evaluation, or for another one because late spans
        changed it. `remove` the earlier one first.
        """
        place = _place(turn)
        position = bisect_left(self._order, place)
        self._order.insert(position, place)
        self.turns[turn.key] = turn
        if turn.is_held:
            self.due_at = min(self.due_at, turn.held_until)
        else:
            self._new[turn.key] = None
        if position < min(len(self._order) - 1, len(self.reference.turns)):
            self.compare(now)

    def restore(self, turn: Turn) -> None:
        """Add a turn that an earlier process has evaluated or held."""
        insort(self._order, _place(turn))
        self.turns[turn.key] = turn
        self.compare(turn.at)

    def remove(self, key: TurnKey) -> Turn:
        """Remove a turn of this conversation."""
        turn = self.turns.pop(key)
        del self._order[bisect_left(self._order, _place(turn))]
        self._new.pop(key, None)
        self.compare(self.arrived)
        return turn

    def compare(self, now: float) -> None:
        """Have the numbers of all turns compared with those they were evaluated with."""
        self.due_at = min(self.due_at, max(now, self._compared_at + _PASS_S))

    def due(self, now: float) -> list[tuple[Turn, int]]:
        """The turns to evaluate now, each with its number: new ones, and those whose number
        changed, if it is time.
        """
        if now >= self.due_at:
            return self._compared(now)
        new, self._new = self._new, {}
        return [self._numbered(self.turns[key]) for key in new]

    def release(self, key: TurnKey) -> tuple[Turn, int] | None:
        """A turn with its number if it is held; it is not held any more."""
        turn = self.turns[key]
        return self._numbered(turn) if turn.is_held else None

    def end(self) -> list[tuple[Turn, int]]:
        """All turns that were not evaluated with their final number."""
        return self._compared(math.inf)

    def result(self, key: ConversationKey) -> ConversationResult:
        """The score of the conversation `key`, which has at least one turn."""
        turns = [self.turns[place[2], place[1]] for place in self._order]
        expected = len(self.reference.turns)
        matched = [turn for turn in turns if turn.number is not None]
        missing = expected - len({turn.number for turn in matched})
        unexpected = len(turns) - len(matched) + self.dropped_turns
        last = (matched or turns)[-1].invocation
        return ConversationResult(
            tenant=key[0],
            conversation_id=key[1],
            reference=self.reference,
            agent=last.agent,
            agent_version=last.agent_version,
            scores=(
                *_means(turns, missing + unexpected),
                *self._of_missing_turns(matched, missing + unexpected),
            ),
            matched=len(matched),
            missing=missing,
            unexpected=unexpected,
        )

    def _of_missing_turns(
        self, matched: Sequence[Turn], absent: int
    ) -> Iterator[ConversationScore]:
        """The scores of criteria for which only missing turns expect anything."""
        present = {turn.number for turn in matched}
        missing = [one for at, one in enumerate(self.reference.turns) if at not in present]
        scored = {score.criterion.name for turn in matched for score in turn.scores}
        unscored = {one.name: one for turn in matched for one in turn.unscored}
        for name, criterion in unscored.items():
            if name not in scored and any(_expects(criterion, one) for one in missing):
                yield ConversationScore(criterion, mean_with_absent(criterion, (), absent))

    def _compared(self, now: float) -> list[tuple[Turn, int]]:
        found = []
        next_at = math.inf
        for position, (_, span_id, trace_id) in enumerate(self._order):
            turn = self.turns[trace_id, span_id]
            index = _index(turn, position)
            number = self._number(index)
            if now < turn.held_until:
                next_at = min(next_at, turn.held_until)
                continue
            if turn.is_held or turn.key in self._new:
                turn.evaluate_as(number)
            elif number == turn.number:
                continue
            elif now < turn.renumber_at:
                next_at = min(next_at, turn.renumber_at)
                continue
            else:
                turn.number = number
                _back_off(turn, now)
            found.append((turn, index))
        self._new = {}
        self._compared_at = now
        self.due_at = max(next_at, now + _PASS_S)
        return found

    def _numbered(self, turn: Turn) -> tuple[Turn, int]:
        index = _index(turn, bisect_left(self._order, _place(turn)))
        turn.evaluate_as(self._number(index))
        return turn, index

    def _number(self, index: int) -> int | None:
        return index if 0 <= index < len(self.reference.turns) else None


def _place(turn: Turn) -> _Place:
    invocation = turn.invocation
    return invocation.start_ns or 0, invocation.span_id, invocation.trace_id


def _index(turn: Turn, position: int) -> int:
    """An invocation that states its own turn keeps it."""
    stated = turn.invocation.turn
    return position if stated is None else stated


def _back_off(turn: Turn, now: float) -> None:
    turn.renumber_at = now + RENUMBER_S * 2**turn.renumberings
    turn.renumberings += 1
    if turn.renumberings >= MAX_RENUMBERINGS:
        turn.renumber_at = math.inf


def _expects(criterion: Criterion, turn: ReferenceTurn) -> bool:
    """Whether an agent that did nothing in a turn would have a score."""
    try:
        return criterion.scorer.score(_NOTHING, turn).value is not None
    except KeyboardInterrupt:
        raise
    except BaseException:  # third-party code, whose failures are reported where it scores a turn
        return False


def _means(turns: Iterable[Turn], absent: int) -> Iterator[ConversationScore]:
    """The mean of each criterion over its scores and `absent` further turns with the worst value.
    A criterion without any score is left out.
    """
    values: dict[str, list[float]] = {}
    criteria: dict[str, Criterion] = {}
    for turn in turns:
        for score in turn.scores:
            criteria[score.criterion.name] = score.criterion
            values.setdefault(score.criterion.name, []).append(score.value)
    for name, criterion in criteria.items():
        yield ConversationScore(criterion, mean_with_absent(criterion, values[name], absent))


def mean_with_absent(criterion: Criterion, values: Sequence[float], absent: int) -> float | None:
    """The mean of scores and of `absent` further ones with the worst value; `None` if such are
    needed and the scorer has no worst value.
    """
    if not absent:
        return mean_of(values)
    value = worst(criterion.scorer)
    if value is None:
        return None
    # Of turns beyond a limit only the number is kept, and it has no bound.
    total = len(values) + absent
    return math.fsum((*(one / total for one in values), value * (absent / total)))

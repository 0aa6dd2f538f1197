"""The references in force: reference files come in through the loaders beside this file, a
`ReferenceSet` answers look-ups.

The look-up is pure. Which turn of a multi-turn reference an invocation is,
`pathgauge.collector.core.evaluations.conversations` knows.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn

Unmatched = Literal[
    "no_scenario_id",
    "unknown_scenario",
    "scenario_conflict",
    "unexpected_turn",
    "no_conversation_id",
]
"""Why an invocation has no reference turn; a closed set, so that it can label a counter."""
UNMATCHED: tuple[Unmatched, ...] = get_args(Unmatched)


@dataclass(frozen=True, slots=True)
class Match:
    """The reference turn of an invocation, or why there is none."""

    reference: Reference | None = None
    turn: ReferenceTurn | None = None
    turn_index: int | None = None
    unmatched: Unmatched | None = None
    """Set exactly when `turn` is `None`."""
    beyond: int = 0
    """Of a turn of a conversation that has too many to keep them: how many were not kept so far."""


class ReferenceSet:
    """References by scenario id."""

    def __init__(
        self, references: Iterable[Reference] = (), *, match_user_input: bool = False
    ) -> None:
        """With `match_user_input`, an invocation without scenario id matches the one single-turn
        reference with its user input.
        """
        self._by_scenario = {reference.scenario_id: reference for reference in references}
        self._by_user_input = _unambiguous(self) if match_user_input else {}

    def __iter__(self) -> Iterator[Reference]:
        return iter(self._by_scenario.values())

    def __len__(self) -> int:
        return len(self._by_scenario)

    def multi_turn(self, invocation: Invocation) -> Reference | None:
        """The reference of the invocation's scenario when it has several turns, so that the place
        in the conversation matters.
        """
        reference = self._by_scenario.get(invocation.scenario_id or "")
        return reference if reference is not None and len(reference.turns) > 1 else None

    def match(self, invocation: Invocation, turn_index: int | None = None) -> Match:
        """Find the reference turn of `invocation`; `turn_index` is its place in its conversation,
        `None` when unknown.

        A reference with one turn matches every invocation of its scenario, as each is a case of its
        own.
        """
        if "scenario_conflict" in invocation.flags:
            return Match(unmatched="scenario_conflict")
        if invocation.scenario_id is None:
            reference = self._by_user_input.get(_normalised(invocation.user_input or ""))
        else:
            reference = self._by_scenario.get(invocation.scenario_id)
        if reference is None:
            return Match(
                unmatched="no_scenario_id" if invocation.scenario_id is None else "unknown_scenario"
            )
        if len(reference.turns) == 1:
            return Match(reference, reference.turns[0], 0)
        if turn_index is None:
            return Match(unmatched="no_conversation_id")
        if not 0 <= turn_index < len(reference.turns):
            return Match(unmatched="unexpected_turn")
        return Match(reference, reference.turns[turn_index], turn_index)


def _unambiguous(references: Iterable[Reference]) -> dict[str, Reference]:
    """Single-turn references by their normalised user input; an input that several share is no way
    to tell them apart.
    """
    by_input: dict[str, list[Reference]] = defaultdict(list)
    for reference in references:
        if len(reference.turns) == 1 and reference.turns[0].user_input:
            by_input[_normalised(reference.turns[0].user_input)].append(reference)
    return {text: found[0] for text, found in by_input.items() if len(found) == 1}


def _normalised(text: str) -> str:
    """Letter case and white space do not count."""
    return " ".join(text.casefold().split())

"""The active references: a `ReferenceSet` finds the reference turn of an invocation.

The look-up does no I/O. For a reference with several turns, the caller must pass the invocation's
turn index, which `pathgauge.collector.core.evaluations.conversations` determines.
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
"""Why an invocation has no reference turn. A closed set, because it is a metric label."""
UNMATCHED: tuple[Unmatched, ...] = get_args(Unmatched)
OF_KNOWN_SCENARIO: frozenset[Unmatched | None] = frozenset(
    {"unexpected_turn", "no_conversation_id"}
)
"""The reasons of an invocation whose scenario has a reference."""


@dataclass(frozen=True, slots=True)
class Match:
    """The reference turn of an invocation, or the reason why there is none."""

    reference: Reference | None = None
    turn: ReferenceTurn | None = None
    turn_index: int | None = None
    unmatched: Unmatched | None = None
    """Set if and only if `turn` is `None`."""

    def scenario_of(self, invocation: Invocation) -> str | None:
        """The scenario of the invocation: that of its reference, else the one that it names."""
        return invocation.scenario_id if self.reference is None else self.reference.scenario_id


class ReferenceSet:
    """References by scenario id."""

    def __init__(
        self, references: Iterable[Reference] = (), *, match_user_input: bool = False
    ) -> None:
        """`match_user_input`: an invocation without scenario id matches the only single-turn
        reference with the same user input.
        """
        self._by_scenario = {reference.scenario_id: reference for reference in references}
        self._by_user_input = _unambiguous(self) if match_user_input else {}

    def __iter__(self) -> Iterator[Reference]:
        return iter(self._by_scenario.values())

    def __len__(self) -> int:
        return len(self._by_scenario)

    def get(self, scenario_id: str) -> Reference | None:
        """The reference of a scenario."""
        return self._by_scenario.get(scenario_id)

    def multi_turn(self, invocation: Invocation) -> Reference | None:
        """The reference of the invocation's scenario, if it has more than one turn."""
        reference = self._by_scenario.get(invocation.scenario_id or "")
        return reference if reference is not None and len(reference.turns) > 1 else None

    def match(self, invocation: Invocation, turn_index: int | None = None) -> Match:
        """Find the reference turn. `turn_index` counts from 0; `None` means unknown.

        A reference with one turn matches every invocation of its scenario.
        """
        if "scenario_conflict" in invocation.flags:
            return Match(unmatched="scenario_conflict")
        if invocation.scenario_id is None:
            reference = self._by_user_input.get(_normalised(invocation.user_input or ""))
            missing: Unmatched = "no_scenario_id"
        else:
            reference = self._by_scenario.get(invocation.scenario_id)
            missing = "unknown_scenario"
        if reference is None:
            return Match(unmatched=missing)
        if len(reference.turns) == 1:
            return Match(reference, reference.turns[0], 0)
        if turn_index is None:
            return Match(unmatched="no_conversation_id")
        if not 0 <= turn_index < len(reference.turns):
            return Match(unmatched="unexpected_turn")
        return Match(reference, reference.turns[turn_index], turn_index)

    def match_session(self, invocation: Invocation) -> Match:
        """Find the reference of a session; `invocation` stands for all its turns. The turn is the
        first one of the reference.
        """
        if "scenario_conflict" in invocation.flags:
            return Match(unmatched="scenario_conflict")
        if invocation.scenario_id is None:
            return Match(unmatched="no_scenario_id")
        reference = self._by_scenario.get(invocation.scenario_id)
        if reference is None:
            return Match(unmatched="unknown_scenario")
        return Match(reference, reference.turns[0])


def _unambiguous(references: Iterable[Reference]) -> dict[str, Reference]:
    """Single-turn references by normalised user input, without inputs that several share."""
    by_input: dict[str, list[Reference]] = defaultdict(list)
    for reference in references:
        if len(reference.turns) == 1 and reference.turns[0].user_input:
            by_input[_normalised(reference.turns[0].user_input)].append(reference)
    return {text: found[0] for text, found in by_input.items() if len(found) == 1}


def _normalised(text: str) -> str:
    """The text without differences of letter case and white space."""
    return " ".join(text.casefold().split())

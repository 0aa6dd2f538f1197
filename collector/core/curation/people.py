"""What people say of the runs that a reference is learned from."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from pathgauge.collector.core.curation.acceptance import accepts
from pathgauge.collector.core.curation.grouping import Group
from pathgauge.scorers.types import Reference


@dataclass(frozen=True, slots=True)
class People:
    """What people say, as evidence for a proposal."""

    good: int = 0
    """How many of the runs they call good."""
    good_accepted: int = 0
    """How many of these the reference accepts."""
    bad: int = 0
    """How many invocations of the scenario they call bad. These are not among the runs."""
    bad_accepted: int | None = None
    """How many of these the reference accepts nevertheless; `None` for turns of conversations,
    whose other turns are not there.
    """


NO_PEOPLE = People()


def called_good(group: Group) -> frozenset[int]:
    """The numbers of the runs of which people call a turn good."""
    return frozenset(
        number for turn in group.turns for number, run in enumerate(turn) if run.called_good
    )


def people_of(
    group: Group, reference: Reference, good: frozenset[int], accepted: Set[int]
) -> People:
    """Whether the reference agrees with people. `accepted`: the numbers of the runs that it
    accepts.
    """
    bad_accepted = None
    if len(group.turns) == 1:
        bad_accepted = sum(accepts(reference, [run]) for run in group.bad)
    return People(len(good), len(good & accepted), len(group.bad), bad_accepted)

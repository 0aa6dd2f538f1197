"""Scores how often agents passed work round in a circle. Lower is better.

One return is normal: a specialist hands back to the coordinator. It is a circle if the coordinator
then delegates to the same specialist again. An agent that is called as a tool twice, and returned
both times, was not in a circle.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.ranges import Amount
from pathgauge.scorers.matching.wording import and_more, counted, one_line
from pathgauge.scorers.tool_use.delegations import called_agent, delegates, words
from pathgauge.scorers.types import Invocation, Json, Reason, ReferenceTurn, Score

MAX_DELEGATIONS = 500
"""With more, an invocation is not evaluated."""


class Delegation(NamedTuple):
    """Work that one agent passed to another; by their words."""

    giver: str
    taker: str


@dataclass(frozen=True)
class DelegationCycles(Amount):
    """The number of delegations that repeat an earlier one after the work had come back."""

    name: ClassVar[str] = "delegation_cycles"

    returns: bool = False
    """Count every delegation to an agent that the work came from, so also the first return: A to B
    to A.
    """

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation. The reference is not used."""
        made = _delegations(actual)
        if isinstance(made, Score):
            return made
        if len(made) > MAX_DELEGATIONS:
            return Score.not_evaluated(
                "too_long", f"{len(made)} delegations; at most {MAX_DELEGATIONS} are compared"
            )
        cycles = list(_returns(made) if self.returns else _laps(made))
        explanation = f"{len(cycles)} of {counted(len(made), 'delegation')} in a circle"
        if cycles:
            explanation += f": {' -> '.join(cycles[0])}{and_more(cycles)}"
        details: dict[str, Json] = {"cycles": cycles, "delegations": [list(one) for one in made]}
        return Score(float(len(cycles)), None, one_line(explanation), details)


def _delegations(actual: Invocation) -> list[Delegation] | Score:
    """The delegations by the calls, or by the runs of sub-agents if calls name no agents."""
    if unknown := tools_unknown(actual):
        return unknown
    calls = [call for call in actual.tool_calls if delegates(call)]
    called = _named((call.agent or actual.agent, called_agent(call)) for call in calls)
    runs = _named((run.parent or actual.agent, run.agent) for run in actual.sub_agents)
    if called or runs:
        return called or runs
    if not calls and not actual.sub_agents:
        return Score.not_evaluated("not_applicable", "no work was delegated")
    unrecorded = any(call.arguments is None for call in calls)
    reason: Reason = "args_not_recorded" if unrecorded else "not_applicable"
    return Score.not_evaluated(reason, "the agents are not named")


def _named(pairs: Iterable[tuple[str | None, str | None]]) -> list[Delegation]:
    """The delegations; none if an agent that got work is not named."""
    made = [Delegation(words(giver or ""), words(taker or "")) for giver, taker in pairs]
    return made if all(taker for _, taker in made) else []


def _laps(made: Sequence[Delegation]) -> Iterator[list[str]]:
    """The circle of each delegation that was made before, if the work came back in between."""
    last: dict[Delegation, int] = {}
    for at, delegation in enumerate(made):
        before = last.get(delegation)
        if before is not None and (path := _way_back(delegation, made[before + 1 : at])):
            yield [delegation.giver, *path]
        last[delegation] = at


def _returns(made: Sequence[Delegation]) -> Iterator[list[str]]:
    """The circle that each delegation closes."""
    for at, delegation in enumerate(made):
        if path := _way_back(delegation, made[:at]):
            yield [delegation.giver, *path]


def _way_back(delegation: Delegation, between: Sequence[Delegation]) -> list[str]:
    """The agents over which work went from the taker back to the giver; empty if it did not."""
    given: dict[str, dict[str, None]] = {}
    for giver, taker in between:
        given.setdefault(giver, {})[taker] = None
    came_from: dict[str, str] = {}
    pending = deque([delegation.taker])
    while pending:
        agent = pending.popleft()
        if agent == delegation.giver:
            return _path(agent, delegation.taker, came_from)
        for taker in given.get(agent, ()):
            if taker not in came_from and taker != delegation.taker:
                came_from[taker] = agent
                pending.append(taker)
    return []


def _path(agent: str, start: str, came_from: dict[str, str]) -> list[str]:
    path = [agent]
    while path[-1] != start:
        path.append(came_from[path[-1]])
    return path[::-1]

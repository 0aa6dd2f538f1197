"""Whether an invocation routed its work to the expected agent.

Two records show the routing: the runs of sub-agents, and the tool calls that delegate work. With
neither, the main agent did the work itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from pathgauge.scorers.authoring.missing_telemetry import tools_unknown
from pathgauge.scorers.authoring.options import check_choice
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.tool_use.delegations import called_agent, delegates, words
from pathgauge.scorers.types import Invocation, ReferenceTurn, Score

Which = Literal["first", "any"]
"""Which of the agents that received work must be the expected one."""

_Agents = list[str | None]
"""Names of agents in order; `None` for an agent whose name is not known."""


@dataclass(frozen=True)
class RoutingAccuracy(Share):
    """1 if the work went to the expected sub-agent, else 0."""

    name: ClassVar[str] = "routing_accuracy"

    expected_agent: str | None = None
    """The sub-agent to expect when the reference turn names none. With `null`, such turns are not
    evaluated.
    """
    which: Which = "first"
    """`first`: the first agent that received work must be the expected one. `any`: one of them."""

    def __post_init__(self) -> None:
        check_choice("which", self.which, get_args(Which))
        if self.expected_agent is not None and not words(self.expected_agent):
            raise ValueError(
                f"expected_agent: found {self.expected_agent!r}, expected the name of an agent"
            )

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Compare with the agent of the reference turn, or of the option if the turn names none."""
        wanted = self._expected_agent(expected)
        if wanted is None or not words(wanted):
            return Score.not_evaluated("no_reference", "no agent is expected")
        runs: _Agents = [run.agent for run in actual.sub_agents]
        called = _called_agents(actual, only_named=any(runs))
        agents = self._agents_to_compare(actual.agent, runs, called)
        correct = any(agent is not None and words(agent) == words(wanted) for agent in agents)
        certain = correct and self.which == "any" and bool(runs or called)
        unknown = None if certain else _unknown_agents(actual)
        if unknown is not None:
            return unknown
        if not correct and None in agents:
            return _unnamed_agent(actual, wanted, runs, called)
        names = listed(list(dict.fromkeys(agent for agent in agents if agent is not None)))
        return Score(
            float(correct),
            None,
            f"the work went to {names}, expected {listed([wanted])}",
            {"expected": wanted, "sub_agents": runs, "called": called},
        )

    def _expected_agent(self, expected: ReferenceTurn | None) -> str | None:
        if expected is None or expected.expected_agent is None:
            return self.expected_agent
        return expected.expected_agent

    def _agents_to_compare(self, main: str | None, runs: _Agents, called: _Agents) -> _Agents:
        """The agents that received work, first by the runs and then by the calls. A span and a call
        may name the same agent differently, so both count, and with `first` the first of each.
        """
        records = [record for record in (runs, called) if record] or [[main]]
        if self.which == "first":
            return [record[0] for record in records]
        return [agent for record in records for agent in record]


def _unknown_agents(actual: Invocation) -> Score | None:
    """The score if the telemetry may lack agents. Complete runs show them without tool calls."""
    if actual.sub_agents and not actual.telemetry_lost:
        return None
    return tools_unknown(actual)


def _called_agents(actual: Invocation, only_named: bool) -> _Agents:
    """The agents that tool calls delegated to. `only_named` leaves out calls that name no agent,
    which say nothing when runs show where the work went.
    """
    agents = [called_agent(call) for call in actual.tool_calls if delegates(call)]
    return [agent for agent in agents if agent or not only_named]


def _unnamed_agent(actual: Invocation, wanted: str, runs: _Agents, called: _Agents) -> Score:
    """The score when an agent without a name may be the expected one."""
    details = {"expected": wanted, "sub_agents": runs, "called": called}
    explanation = "the agent that did the work is not named"
    if any(call.arguments is None for call in actual.tool_calls if delegates(call)):
        return Score.not_evaluated("args_not_recorded", explanation, **details)
    return Score.not_evaluated("not_applicable", explanation, **details)

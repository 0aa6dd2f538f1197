"""Routing: an invocation and its reference turn come in, whether the work went to the agent that
should do it goes out.

Where it went is told by the runs of sub-agents, and by the calls that pass work on:
`delegate_to_<agent>`, `transfer_to_<agent>`, `transfer_to_agent` with the name among its arguments,
or an agent that is called as a tool. Without either the main agent did the work. Names are the same
when their words are: `Billing Agent` is `billing_agent`, and is not `billing`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from pathgauge.scorers.authoring.options import check_choice, tools_unknown
from pathgauge.scorers.authoring.ranges import Share
from pathgauge.scorers.matching.calls import as_object
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.matching.explanations import listed
from pathgauge.scorers.types import Invocation, Json, Reason, ReferenceTurn, Score, ToolCall

Which = Literal["first", "any"]
"""Which of the agents that work went to has to be the expected one."""

_PASSING_ON = re.compile(r"(?:delegate|transfer|hand_?off)_to_(.+)")
_ANY_AGENT = ("agent", "coworker", "subagent")
"""What stands in the name of a tool that is for any agent."""
_NAMING = ("agent_name", "agent", "coworker", "subagent_type")
"""Arguments by which such a tool is told for which one."""
_SEPARATORS = re.compile(r"[\W_]+")


@dataclass(frozen=True)
class RoutingAccuracy(Share):
    """1 when the work went to the expected sub-agent, else 0."""

    name: ClassVar[str] = "routing_accuracy"

    expected_agent: str | None = None
    """The sub-agent for turns of which the reference names none; `null` does not judge them."""
    which: Which = "first"
    """`first`: the first agent that work went to is the expected one. `any`: one of them is."""

    def __post_init__(self) -> None:
        check_choice("which", self.which, get_args(Which))
        if self.expected_agent is not None and not _words(self.expected_agent):
            raise ValueError(
                f"expected_agent: found {self.expected_agent!r}, expected the name of an agent"
            )

    def score(self, actual: Invocation, expected: ReferenceTurn | None) -> Score:
        """Score one invocation against its reference turn, else against the option."""
        wanted = (
            self.expected_agent
            if expected is None or expected.expected_agent is None
            else expected.expected_agent
        )
        if wanted is None or not _words(wanted):
            return Score.not_evaluated("no_reference", "no agent is expected")
        runs = [run.agent for run in actual.sub_agents]
        calls = [
            target
            for call in actual.tool_calls
            if _passes_on(call)
            if (target := _target(call)) or not any(runs)
        ]
        views = [view for view in (runs, calls) if view] or [[actual.agent]]
        reached = [
            agent for view in views for agent in (view[:1] if self.which == "first" else view)
        ]
        right = any(agent is not None and _words(agent) == _words(wanted) for agent in reached)
        details: dict[str, Json] = {"expected": wanted, "sub_agents": runs, "called": calls}
        complete = bool(runs) and "dropped_spans" not in actual.flags
        certain = right and self.which == "any" and bool(runs or calls)
        if not (complete or certain) and (unknown := tools_unknown(actual)):
            return unknown
        if not right and None in reached:
            unrecorded = any(
                call.arguments is None for call in actual.tool_calls if _passes_on(call)
            )
            reason: Reason = "args_not_recorded" if unrecorded else "not_applicable"
            return Score.not_evaluated(
                reason, "the agent that did the work is not named", **details
            )
        names = listed(list(dict.fromkeys(agent for agent in reached if agent is not None)))
        return Score(
            float(right), None, f"the work went to {names}, expected {listed([wanted])}", details
        )


def _passes_on(call: ToolCall) -> bool:
    return (
        call.kind in ("handoff", "agent") or _PASSING_ON.fullmatch(tool_name(call.name)) is not None
    )


def _target(call: ToolCall) -> str | None:
    """The agent that a call passes work to: the one in its name, else in its arguments, else the
    agent that is itself the tool.
    """
    found = _PASSING_ON.fullmatch(tool_name(call.name))
    if found and found[1] not in _ANY_AGENT:
        return found[1]
    arguments = as_object(call.arguments)
    given = (arguments.get(key) for key in _NAMING)
    named = next((agent for agent in given if isinstance(agent, str) and _words(agent)), None)
    return named or (None if found or call.kind == "handoff" else tool_name(call.name))


def _words(agent: str) -> str:
    return _SEPARATORS.sub("_", agent.casefold()).strip("_")

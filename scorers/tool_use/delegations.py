"""Which agents work was delegated to, by the tool calls that delegate it.

A call delegates if its kind says so, or its name: `delegate_to_<agent>`, `transfer_to_<agent>`, or
`transfer_to_agent` with the name as an argument. Names of agents are equal if their words are
equal: `Billing Agent` is `billing_agent`, but not `billing`.
"""

from __future__ import annotations

import re

from pathgauge.scorers.matching.calls import as_object
from pathgauge.scorers.matching.equality import tool_name
from pathgauge.scorers.types import ToolCall

_DELEGATION_NAME = re.compile(r"(?:delegate|transfer|hand_?off)_to_(.+)")
_ANY_AGENT = ("agent", "coworker", "subagent")
"""Placeholders in the name of a tool that delegates to any agent, as in `transfer_to_agent`."""
_AGENT_ARGUMENTS = ("agent_name", "agent", "coworker", "subagent_type")
"""Arguments that name the agent when the tool's name does not."""
_SEPARATORS = re.compile(r"[\W_]+")


def delegates(call: ToolCall) -> bool:
    """Whether the call delegates work to an agent."""
    return call.kind in ("handoff", "agent") or _name_match(call) is not None


def called_agent(call: ToolCall) -> str | None:
    """The agent named by the tool, else by an argument, else the tool itself if it is an agent."""
    match = _name_match(call)
    if match and match[1] not in _ANY_AGENT:
        return match[1]
    arguments = as_object(call.arguments)
    for key in _AGENT_ARGUMENTS:
        agent = arguments.get(key)
        if isinstance(agent, str) and words(agent):
            return agent
    if match or call.kind == "handoff":
        return None
    return tool_name(call.name)


def words(agent: str) -> str:
    """The name with one underscore between words, for comparison."""
    return _SEPARATORS.sub("_", agent.casefold()).strip("_")


def _name_match(call: ToolCall) -> re.Match[str] | None:
    return _DELEGATION_NAME.fullmatch(tool_name(call.name))

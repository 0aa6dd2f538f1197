"""Finds the agents of an invocation that worked for another agent and not for the user, though no
tool called them.

Guardrails and judges run that way, right inside the agent that they watch. An agent inside another
one speaks for the user only when control was passed on to it, or when the other one is a mere shell
that asked no model itself.
"""

from __future__ import annotations

from collections.abc import Sequence

from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.messages.message import asked_calls
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.tool_calls import call_kind


def asides(agents: Sequence[Node], steps: Sequence[Step], tools: Sequence[Node]) -> set[str]:
    """The span ids of their runs, of all agents that they called included; parents come before
    their children in `agents`.
    """
    found: set[str] = set()
    for agent in agents:
        above = agent.agent_run()
        if above is None:
            continue
        own = [step for step in steps if step.node.agent is above]
        nested = agent.tool is above.tool
        if above.span.span_id in found or (
            nested and own and not _passes_control(above, own, tools)
        ):
            found.add(agent.span.span_id)
    return found


def _passes_control(agent: Node, steps: Sequence[Step], tools: Sequence[Node]) -> bool:
    if any(tool.agent is agent and call_kind(tool.name or "", tool) == "handoff" for tool in tools):
        return True
    return any(
        call_kind(call.name, None) == "handoff"
        for step in steps
        for call in asked_calls(step.content.output)
    )

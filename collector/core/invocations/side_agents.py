"""Finds side agents: agents of an invocation that worked for another agent and not for the user,
although no tool called them.

Guardrails and judges run like this, inside the agent that they watch. An agent inside another one
answers the user only if control was passed to it, or if the other one made no model call itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from pathgauge.collector.core.invocations.call_kinds import call_kind
from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.messages.message import asked_calls
from pathgauge.collector.core.invocations.node import Node


def side_agents(agents: Sequence[Node], steps: Sequence[Step], tools: Sequence[Node]) -> set[str]:
    """The span ids of side agents and of all agents that they called. `agents` has parents before
    their children.
    """
    found: set[str] = set()
    if len(agents) < 2:
        return found
    own_steps: dict[int, list[Step]] = defaultdict(list)
    for step in steps:
        own_steps[id(step.node.agent)].append(step)
    with_handoff = {
        id(tool.agent) for tool in tools if call_kind(tool.name or "", tool) == "handoff"
    }
    passes_control: dict[int, bool] = {}
    for agent in agents:
        above = agent.agent_run()
        if above is None:
            continue
        if above.span.span_id in found:
            found.add(agent.span.span_id)
            continue
        own = own_steps[id(above)]
        if agent.tool is not above.tool or not own:
            continue
        if id(above) not in passes_control:
            passes_control[id(above)] = id(above) in with_handoff or _asks_for_handoff(own)
        if not passes_control[id(above)]:
            found.add(agent.span.span_id)
    return found


def _asks_for_handoff(steps: Sequence[Step]) -> bool:
    return any(
        call_kind(call.name, None) == "handoff"
        for step in steps
        for call in asked_calls(step.content.output)
    )

"""What a tool call is: the call of a function or of an agent, a handoff, or the final answer."""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.node import Node
from pathgauge.scorers.types import CallKind

HANDOFFS = ("transfer_to_", "handoff", "hand_off", "delegate_to_")
"""Prefixes of the names of tools that pass control to another agent."""
_COWORKER_TOOLS = frozenset(
    {"delegate_work_to_coworker", "ask_question_to_coworker"}
    | {"delegate_task_to_member", "delegate_task_to_members"}
)
"""Tools of CrewAI and Agno that call another agent. Its work has no span in CrewAI, and in Agno one
beside that of the tool.
"""


def call_kind(name: str, node: Node | None, by: Node | None = None) -> CallKind:
    """The kind of a call by its name, its tool span, if there is one, and what asked for it."""
    if node is not None:
        recorded = _recorded_kind(node)
        if recorded is not None:
            return recorded
    if name.startswith(HANDOFFS):
        return "handoff"
    if name.lower().replace(" ", "_") in _COWORKER_TOOLS:
        return "agent"
    if name == "final_answer" or _ends_run(name, by if node is None else node):
        return "final_answer"
    return "function"


def _ends_run(name: str, node: Node | None) -> bool:
    if node is None:
        return False
    if any(name in dialect.final_tools for dialect in node.dialects):
        return True
    agent = node.agent
    return agent is not None and first(agent.spans, agent.fields.final_tool) == name


def _recorded_kind(node: Node) -> CallKind | None:
    """The kind that a tool span states or its place in the tree shows."""
    tool_type = str(first(node.spans, node.fields.tool_type) or "")
    transfer = first(node.spans, ("gen_ai.transfer.mode",))
    if node.kind == "handoff" or transfer == "pass_control" or tool_type == "TransferToAgentTool":
        return "handoff"
    if node.runs_agent or node.called:
        return "agent"
    if tool_type == "AgentTool" or transfer == "return_to_caller":
        return "agent"
    return None

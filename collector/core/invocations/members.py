"""The nodes of one invocation by the part that they play: who works, who answers the user, and what
failed the turn.

Neither sub-agents, whose agents and model calls are below a tool span, nor side agents answer the
user.
"""

from __future__ import annotations

from collections.abc import Sequence

from pathgauge.collector.core.invocations.errors import error_of
from pathgauge.collector.core.invocations.grouping import Group
from pathgauge.collector.core.invocations.input_output import Step
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.side_agents import side_agents
from pathgauge.collector.core.otlp.spans import Span


class Members:
    """The agents, model calls and tools of an invocation, each by start."""

    def __init__(self, group: Group, steps: Sequence[Step]) -> None:
        """`steps` are the model calls of the group."""
        self._group = group
        self.steps = steps
        self.tools = list(filter(_is_tool, group.nodes))
        """The spans of tool calls and handoffs."""
        self.agents = [node for node in group.nodes if node.kind == "agent"]
        aside = side_agents(self.agents, steps, self.tools)
        self.top_steps = [
            step for step in steps if not group.by_sub_agent(step.node) and step.run not in aside
        ] or steps
        """The model calls of the agents that may answer the user; all if none of them may."""
        self.top_agents = [
            node
            for node in self.agents
            if not group.by_sub_agent(node) and node.span.span_id not in aside
        ]
        """The agents that may answer the user."""

    def own_spans(self) -> list[Span]:
        """The spans whose fields describe the invocation: the entry span, what is not the work of a
        sub-agent, then the spans above.
        """
        group = self._group
        own = (
            node
            for node in group.nodes
            if node.kind != "other" and node is not group.entry and not group.by_sub_agent(node)
        )
        nodes = [group.entry, *own, *group.above()]
        return [span for node in nodes for span in node.spans]

    def dialect_name(self) -> str:
        """The dialect of the first span that one understands."""
        nodes = [one for one in (self._group.entry, *self._group.nodes) if one.dialect is not None]
        known = [one for one in nodes if not (one.is_unknown and one.kind == "other")]
        return next((one.dialect.name for one in known or nodes if one.dialect), "genai")

    def agent_name(self) -> str | None:
        """The name of the entry agent, otherwise the first one that a span states."""
        entry_agent = self._group.entry_agent
        if entry_agent is not None and entry_agent.kind == "agent":
            return entry_agent.name
        for node in self._group.nodes:
            if node.kind not in ("agent", "model", "tool") or self._group.by_sub_agent(node):
                continue
            name = node.name if node.kind == "agent" else node.name_as_agent()
            if name:
                return name
            if node.kind == "agent" and node.is_unknown:
                return None  # the next one that has a name may be a sub-agent
        if entry_agent:
            return entry_agent.name
        return None

    def answering_agents(self) -> list[Node]:
        """The entry agent, and the agent that was active last: after a handoff it answers."""
        entry_agent = self._group.entry_agent
        nodes = [entry_agent] if entry_agent is not None else []
        return nodes + [node for node in self.top_agents[-1:] if node is not entry_agent]

    def answering_steps(self) -> Sequence[Step]:
        """The model calls that may have answered: none if the agent that was active last started
        after all of them.
        """
        if self.top_agents and self.top_steps:
            last_agent, last_step = self.top_agents[-1].span, self.top_steps[-1].node.span
            if last_step.end_ns <= last_agent.start_ns:
                return []
        return self.top_steps

    def failed_node(self, final_response: str | None) -> Node | None:
        """The node that failed the turn: an answering agent, or without one the entry or the last
        model call. Some frameworks report success for the agent although its last model call failed
        and there is no answer.
        """
        nodes = self.answering_agents()[::-1]
        last_step = [step.node for step in self.top_steps[-1:]]
        if not nodes:
            nodes = [self._group.entry, *last_step]
        failed = next(filter(self._has_failed, nodes), None)
        if failed is None and final_response is None:
            return next((node for node in last_step if error_of(node) is not None), None)
        return failed

    def _has_failed(self, node: Node) -> bool:
        """Whether a node failed. Some workflows have the first error in their trace, although the
        agent went on after it.
        """
        error = error_of(node)
        if error is None or node.kind != "workflow":
            return error is not None
        below = [*self.tools, *(step.node for step in self.steps)]
        return not any(
            one.agent not in (node, None) and error_of(one.agent) is None
            for one in below
            if error_of(one) == error
        )


def _is_tool(node: Node) -> bool:
    return node.kind in ("tool", "handoff") or node.called

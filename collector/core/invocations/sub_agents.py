"""The agent runs of an invocation beside that of its main agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pathgauge.collector.core.invocations.errors import error_of, error_type
from pathgauge.collector.core.invocations.grouping import Group
from pathgauge.collector.core.invocations.input_output import Dialogue, Step
from pathgauge.collector.core.invocations.node import Node
from pathgauge.scorers.types import AgentRun, ToolCall


def sub_agents(
    group: Group,
    agents: Sequence[Node],
    top_agents: Sequence[Node],
    dialogue: Dialogue,
    *,
    main: str | None,
    user_input: str | None,
    calls: Iterable[ToolCall],
) -> Iterator[AgentRun]:
    """All runs except those of the agent named `main`, which may get control back. After a handoff,
    an agent answers the user.

    `top_agents` are those of `agents` that work for the user and not for another agent.
    """
    handed_over = any(call.kind == "handoff" for call in calls)
    main_run = next((node for node in top_agents if node.name == main), None)
    answering = set(map(id, top_agents)) if handed_over else set()
    own_steps: dict[int, list[Step]] = defaultdict(list)
    for step in dialogue.steps:
        own_steps[id(step.node.agent)].append(step)
    for node in agents:
        if node.name in (main, None) and not group.by_sub_agent(node):
            continue  # without a name it is the work of the agent or workflow above
        above = node.agent_run() or main_run
        steps = own_steps[id(node)]
        by_handoff = id(node) in answering
        error = error_of(node)
        yield AgentRun(
            span_id=node.span.span_id,
            agent=node.name,
            parent=above.name if above else main,
            parent_run=above.span.span_id if above else None,
            via="handoff" if by_handoff else "agent",
            user_input=user_input if by_handoff else dialogue.asked(node, steps),
            final_response=dialogue.answered([node], steps),
            error=error,
            error_type=None if error is None else error_type(node),
            start_ns=node.span.start_ns,
            end_ns=node.span.end_ns,
        )

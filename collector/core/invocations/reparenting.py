"""Puts right what hangs in the wrong place of a `Tree`, by the times of its spans; the tree comes
in and is changed.

Four things go wrong: a span's parent never arrived; an agent's span was made beside its work
instead of around it; an agent that was called as a tool hangs beside its caller instead of below
the call; and what the members of a team do hangs below the messages that they get, one beside the
other.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.tree import Tree
from pathgauge.collector.core.otlp.spans import Span

MAX_HOSTS = 100
"""In a trace with more anchors than this, nothing can be told from times; and looking would take
its time.
"""

_STEP_NS = 2_000
"""Times that went through a store of whole microseconds may be off by as much."""

_SENT = ("task", "message")


def adopt(tree: Tree) -> set[int]:
    """Find the right parents; returns the ids (of the objects) of the anchors below which an orphan
    was hung.
    """
    _gather_teams(tree)
    _join_halves(tree)
    _hang_called_agents(tree)
    return _adopt_orphans(tree)


def _gather_teams(tree: Tree) -> None:
    """A task with agents that work on it is their workflow, with all messages of its conversation
    beside it until the next task.
    """
    begun: dict[tuple[Node | str, str | None], list[Node]] = {}
    runs: list[list[Node]] = []
    for node in tree.nodes:
        beside = node.parent or node.span.parent_id
        if (
            node.kind not in _SENT
            or beside is None
            or (node.parent is not None and node.parent.kind in _SENT)
        ):
            continue
        conversation = beside, as_id(first(node.spans, node.fields.conversation_id))
        if node.kind == "task":
            begun[conversation] = [node]
            runs.append(begun[conversation])
        elif conversation in begun:
            begun[conversation].append(node)
    for task, *messages in runs:
        if any(below.kind == "agent" for message in messages for below in tree.below(message)):
            _begin(tree, task, messages)


def _begin(tree: Tree, task: Node, messages: list[Node]) -> None:
    """What the task says lies on the span of its processing."""
    own = list(tree.children(task))
    task.kind = "workflow"
    task.spans.extend(node.span for node in own)
    for node in (*own, *messages):
        tree.hang(node, task)


def _join_halves(tree: Tree) -> None:
    """An agent's span without anything below it, and beside it the run of the same agent: the one
    encloses the other.
    """
    beside: dict[tuple[Node, str], list[Node]] = defaultdict(list)
    for node in tree.nodes:
        if (
            node.kind in ("agent", "other")
            and node.parent is not None
            and any(dialect.beside_run for dialect in node.dialects)
        ):
            beside[node.parent, node.name or ""].append(node)
    for twins in beside.values():
        for node in twins if 1 < len(twins) <= MAX_HOSTS else ():
            if node.kind == "agent" and not tree.children(node):
                twin = next(
                    (
                        other
                        for other in twins
                        if tree.children(other) and _ran_during(other.span, node.span)
                    ),
                    None,
                )
                if twin is not None and twin.parent is node.parent:
                    tree.hang(twin, node)


def _hang_called_agents(tree: Tree) -> None:
    """Agents of dialects that lose the call above them, hung below the one tool call of another
    agent during which they ran.
    """
    beside: dict[Node, list[Node]] = defaultdict(list)
    for node in tree.nodes:
        if (
            node.kind == "agent"
            and node.parent is not None
            and any(dialect.loses_parent for dialect in node.dialects)
        ):
            beside[node.parent].append(node)
    for agents in beside.values():
        for agent in agents if 1 < len(agents) <= MAX_HOSTS else ():
            others = (other for other in agents if other is not agent)
            calls = [
                call
                for other in others
                for call in _childless_calls(tree, other)
                if _ran_during(agent.span, call.span)
            ]
            if len(calls) == 1:
                tree.hang(agent, calls[0])


def _childless_calls(tree: Tree, agent: Node) -> Iterator[Node]:
    return (
        child for child in tree.children(agent) if child.kind == "tool" and not tree.children(child)
    )


def _adopt_orphans(tree: Tree) -> set[int]:
    """Hang subtrees whose parent never arrived below the one anchor during which each ran."""
    hosts = set()
    entry_agents = tree.entry_agents()
    for root in tree.roots():
        host = (
            _host(root, entry_agents)
            if root.span.parent_id is not None and len(entry_agents) <= MAX_HOSTS
            else None
        )
        if host is not None and tree.hang(root, host):
            hosts.add(id(host))
            entry_agents = [
                entry_agent
                for entry_agent in entry_agents
                if entry_agent.entry_agent is entry_agent
            ]
    return hosts


def _host(root: Node, entry_agents: list[Node]) -> Node | None:
    hosts = [
        entry_agent
        for entry_agent in entry_agents
        if entry_agent is not root and _ran_during(root.span, entry_agent.span)
    ]
    return hosts[0] if len(hosts) == 1 and hosts[0].span.parent_id != root.span.parent_id else None


def _ran_during(inner: Span, outer: Span) -> bool:
    return outer.start_ns - _STEP_NS <= inner.start_ns and inner.end_ns <= outer.end_ns + _STEP_NS

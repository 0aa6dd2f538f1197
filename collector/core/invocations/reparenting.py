"""Corrects wrong parents in a `Tree`, by the times of its spans.

Five things go wrong: the parent of a span never arrived; the span of an agent is a sibling of its
run instead of around it; it ends when the run begins, whose calls are its siblings; an agent that
was called as a tool is a sibling of its caller instead of below the call; the work of the members
of a team is below the messages that they receive, and these are siblings.

If the parent of a whole run never arrived, the run stays an invocation of its own. It is attached
to what the process did meanwhile, because the scenario id may be there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise

from pathgauge.collector.core.invocations.dialects.field_paths import first
from pathgauge.collector.core.invocations.errors import error_of
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.tree import Tree
from pathgauge.collector.core.otlp.spans import Span

MAX_CANDIDATES = 100
"""Bound on entry agents or siblings that are compared. With more of them, times are ambiguous and
the comparison is slow.
"""

_TOLERANCE_NS = 2_000
"""Some stores round times to microseconds."""

_TEAM_MESSAGES = ("task", "message")


def reparent(tree: Tree) -> set[int]:
    """Correct the tree. Returns the ids (of the objects) of the entry agents that got an orphan."""
    _gather_teams(tree)
    _nest_runs(tree)
    _nest_streams(tree)
    _attach_called_agents(tree)
    hosts = _attach_orphans(tree)
    _attach_runs(tree)
    return hosts


def _gather_teams(tree: Tree) -> None:
    """Turn a task with agents below it into their workflow, together with all messages of its
    conversation until the next task.
    """
    for task, *messages in _team_runs(tree):
        if any(below.kind == "agent" for message in messages for below in tree.below(message)):
            _make_workflow(tree, task, messages)


def _team_runs(tree: Tree) -> list[list[Node]]:
    """Each task with the messages after it, among the siblings of the same conversation."""
    current: dict[tuple[Node | str, str | None], list[Node]] = {}
    runs: list[list[Node]] = []
    for node in tree.nodes:
        parent = node.parent or node.span.parent_id
        if node.kind not in _TEAM_MESSAGES or parent is None:
            continue
        if node.parent is not None and node.parent.kind in _TEAM_MESSAGES:
            continue
        conversation = parent, as_id(first(node.spans, node.fields.conversation_id))
        if node.kind == "task":
            current[conversation] = [node]
            runs.append(current[conversation])
        elif conversation in current:
            current[conversation].append(node)
    return runs


def _make_workflow(tree: Tree, task: Node, messages: list[Node]) -> None:
    """The spans below the task, which process it, hold its input."""
    own = list(tree.children(task))
    task.kind = "workflow"
    task.describe_also(node.span for node in own)
    for node in (*own, *messages):
        tree.attach(node, task)


def _nest_runs(tree: Tree) -> None:
    """Attach the run of an agent to the agent's span, if that has no children and is a sibling."""
    siblings: dict[tuple[Node, str], list[Node]] = defaultdict(list)
    for node in tree.nodes:
        if node.kind not in ("agent", "other") or node.parent is None:
            continue
        if any(dialect.beside_run for dialect in node.dialects):
            siblings[node.parent, node.name or ""].append(node)
    for same_name in siblings.values():
        if 1 < len(same_name) <= MAX_CANDIDATES:
            for node in same_name:
                _nest_run(tree, node, same_name)


def _nest_run(tree: Tree, node: Node, same_name: list[Node]) -> None:
    if node.kind != "agent" or tree.children(node):
        return
    for other in same_name:
        if tree.children(other) and _ran_during(other.span, node.span):
            if other.parent is node.parent:
                tree.attach(other, node)
            return


def _nest_streams(tree: Tree) -> None:
    """Attach to an agent whose span ended before its run the calls that follow among its siblings.
    If the runs of several agents were not one after the other, nobody knows whose a call is.
    """
    siblings: dict[Node | str, list[Node]] = defaultdict(list)
    for node in tree.nodes:
        parent = node.parent or node.span.parent_id
        if node.kind in ("agent", "model", "tool") and parent is not None:
            siblings[parent].append(node)
    for nodes in siblings.values():
        runs = _streams(tree, nodes)
        if _one_after_the_other(runs):
            for agent, *calls in runs:
                for call in calls:
                    tree.attach(call, agent)


def _streams(tree: Tree, siblings: list[Node]) -> list[list[Node]]:
    """Each agent that did nothing during its span, with the calls that started after it."""
    runs: list[list[Node]] = []
    for node in siblings:
        if node.kind == "agent":
            if _only_began(tree, node):
                runs.append([node])
        elif runs:
            runs[-1].append(node)
    return runs


def _only_began(tree: Tree, agent: Node) -> bool:
    if not any(dialect.ends_before_run for dialect in agent.dialects):
        return False
    return not tree.children(agent) and error_of(agent) is None


def _one_after_the_other(runs: list[list[Node]]) -> bool:
    return all(
        len(run) > 1 and max(call.span.end_ns for call in run) <= following[0].span.start_ns
        for run, following in pairwise(runs)
    )


def _attach_called_agents(tree: Tree) -> None:
    """Attach agents of dialects with `loses_parent` to the one tool call during which they ran, of
    another agent or beside them.
    """
    siblings: dict[Node, list[Node]] = defaultdict(list)
    for node in tree.nodes:
        if node.kind != "agent" or node.parent is None:
            continue
        if any(dialect.loses_parent for dialect in node.dialects):
            siblings[node.parent].append(node)
    for parent, agents in siblings.items():
        if len(agents) <= MAX_CANDIDATES:
            for agent in agents:
                calls = list(_calls_around(tree, agent, (parent, *agents)))
                if len(calls) == 1:
                    tree.attach(agent, calls[0])


def _calls_around(tree: Tree, agent: Node, callers: Iterable[Node]) -> Iterator[Node]:
    """The childless tool calls of other agents during which the agent ran."""
    for other in callers:
        if other is agent:
            continue
        for child in tree.children(other):
            is_call = child.kind == "tool" and not tree.children(child)
            if is_call and _ran_during(agent.span, child.span):
                yield child


def _attach_orphans(tree: Tree) -> set[int]:
    """Attach subtrees whose parent never arrived to the one entry agent during which each ran."""
    hosts = set()
    entry_agents = tree.entry_agents()
    for root in tree.roots():
        if root.span.parent_id is None or len(entry_agents) > MAX_CANDIDATES:
            continue
        host = _host(root, entry_agents)
        if host is not None and tree.attach(root, host):
            hosts.add(id(host))
            entry_agents = [node for node in entry_agents if node.entry_agent is node]
    return hosts


def _host(root: Node, entry_agents: list[Node]) -> Node | None:
    hosts = [
        node for node in entry_agents if node is not root and _ran_during(root.span, node.span)
    ]
    if len(hosts) != 1 or hosts[0].span.parent_id == root.span.parent_id:
        return None
    return hosts[0]


def _attach_runs(tree: Tree) -> None:
    """Attach each entry agent whose parent never arrived to the one root of its process during
    which it ran.
    """
    roots = tree.roots()
    tops = [root for root in roots if root.kind == "other" and root.span.parent_id is None]
    if len(tops) > MAX_CANDIDATES:
        return
    for run in roots:
        span = run.span
        if run.entry_agent is not run or span.parent_id is None or span.remote_parent:
            continue
        around = [
            top
            for top in tops
            if top.span.resource == span.resource and _ran_during(span, top.span)
        ]
        if len(around) == 1:
            tree.attach(run, around[0])


def _ran_during(inner: Span, outer: Span) -> bool:
    if inner.start_ns < outer.start_ns - _TOLERANCE_NS:
        return False
    return inner.end_ns <= outer.end_ns + _TOLERANCE_NS

"""Divides the tree of a trace into invocations: a `Tree` comes in, one `Group` of nodes for each
invocation goes out.

The anchor of an invocation is its top-most agent or workflow. Where there is none, the outermost
known span around the model calls stands for it (the entry of the process), or the parent that never
arrived. A model call that is nobody's child is no agent's work. Spans whose own parent never
arrived belong to the anchor during which they ran, when there is exactly one such.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.reparenting import adopt
from pathgauge.collector.core.invocations.tree import Tree
from pathgauge.collector.core.otlp.spans import start_order
from pathgauge.scorers.types import Flag

_WORK = ("model", "tool")
_NO_ENTRIES = (*_WORK, "dropped", "task", "message")


class Group:
    """The nodes of one invocation in start order."""

    def __init__(
        self,
        span_id: str,
        entry: Node,
        entry_agent: Node | None,
        nodes: list[Node],
        flags: Iterable[Flag] = (),
    ) -> None:
        self.span_id = span_id
        """The id of the anchor; of a parent that never arrived, the id by which its children call
        it.
        """
        self.entry = entry
        """The anchor, or the node that stands for it."""
        self.entry_agent = entry_agent
        self.nodes = nodes
        self.flags = frozenset(flags)
        self._tools = {id(node) for node in nodes if node.kind in ("tool", "tools") or node.called}

    def inner(self, node: Node) -> bool:
        """Whether a node is the work of a sub-agent that was called as a tool."""
        return node.called or (node.tool is not None and id(node.tool) in self._tools)

    def above(self) -> Iterator[Node]:
        """The known ancestors of the entry, nearest first."""
        node = self.entry.parent
        while node is not None:
            yield node
            node = node.parent

    def times(self) -> tuple[int | None, int | None]:
        """Start and end; those of the members when the anchor never arrived, or only set them to
        work.
        """
        if "missing_root" not in self.flags and self.entry.classified != "task":
            return self.entry.span.start_ns or None, self.entry.span.end_ns or None
        spans = [node.span for node in self.nodes]
        return min(span.start_ns for span in spans) or None, max(
            span.end_ns for span in spans
        ) or None


def groups(tree: Tree) -> list[Group]:
    """All invocations of a trace, by start."""
    hosts = adopt(tree)
    headless = list(_headless(tree))
    taken = {id(node) for group in headless for node in group.nodes}
    entry_agents = [
        entry_agent for entry_agent in tree.entry_agents() if id(entry_agent) not in taken
    ]
    roots = [root for root in tree.roots() if id(root) not in taken]
    found = [
        *headless,
        *(
            _with_entry_agents(tree, entry_agents, hosts)
            if entry_agents
            else _without_entry_agents(tree, roots)
        ),
    ]
    return sorted(found, key=lambda group: (group.nodes[0].span.start_ns, group.span_id))


def _with_entry_agents(tree: Tree, entry_agents: list[Node], hosts: set[int]) -> Iterator[Group]:
    members: dict[int, list[Node]] = defaultdict(list)
    for node in tree.nodes:
        members[id(node.entry_agent)].append(node)
    for entry_agent in entry_agents:
        flags: list[Flag] = ["orphan_spans"] if id(entry_agent) in hosts else []
        yield Group(
            entry_agent.span.span_id, entry_agent, entry_agent, members[id(entry_agent)], flags
        )


def _headless(tree: Tree) -> Iterator[Group]:
    """Steps, or model and tool calls, of an agent whose own span never arrived: those of one parent
    are one invocation.
    """
    orphans: dict[str, list[Node]] = defaultdict(list)
    for root in tree.roots():
        if root.span.parent_id is not None and not root.span.remote_parent:
            orphans[root.span.parent_id].append(root)
    for parent_id, roots in orphans.items():
        if any(map(_is_step, roots)) or {"model", "tool"} <= {root.kind for root in roots}:
            nodes = sorted((node for root in roots for node in tree.below(root)), key=_order)
            if any(node.kind == "model" for node in nodes):
                yield Group(parent_id, nodes[0], None, nodes, ["missing_root"])


def _is_step(root: Node) -> bool:
    """Whether a span of an agent framework stands for nothing without what is above it."""
    return root.classified == "turn" or (root.kind == "other" and root.dialect is not None)


def _without_entry_agents(tree: Tree, roots: Sequence[Node]) -> Iterator[Group]:
    """Model calls without any agent: those of one entry, or of one parent that never arrived, are
    one invocation.
    """
    for root in roots:
        nodes = sorted(tree.below(root), key=_order)
        if root.kind not in _NO_ENTRIES and any(node.kind == "model" for node in nodes):
            yield Group(root.span.span_id, root, None, nodes)
    orphans: dict[str, list[Node]] = defaultdict(list)
    for root in roots:
        if root.kind in _WORK and root.span.parent_id is not None:
            orphans[root.span.parent_id].extend(tree.below(root))
    for parent_id, nodes in orphans.items():
        nodes.sort(key=_order)
        if any(node.kind == "model" for node in nodes):
            yield Group(parent_id, nodes[0], None, nodes, ["missing_root"])


def _order(node: Node) -> tuple[int, int, str]:
    return start_order(node.span)

"""Divides the tree of a trace into invocations: one `Group` of nodes for each.

The entry agent of an invocation is its top-most agent or workflow. Without one, the outermost known
span around the model calls is the entry (the entry of the process), or their parent if it never
arrived. A model call without a parent is no agent's work. Spans whose parent never arrived belong
to the entry agent during which they ran, if there is exactly one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.reparenting import reparent
from pathgauge.collector.core.invocations.same_model_calls import join_model_calls
from pathgauge.collector.core.invocations.same_tool_calls import join_tool_calls
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
        """The id of the entry span. If it never arrived, its id is known from its children."""
        self.entry = entry
        """The entry agent, or the node that takes its place."""
        self.entry_agent = entry_agent
        self.nodes = nodes
        self.flags = frozenset(flags)
        self._tools = {id(node) for node in nodes if node.kind in ("tool", "tools") or node.called}

    def by_sub_agent(self, node: Node) -> bool:
        """Whether a node is the work of a sub-agent that was called as a tool."""
        return node.called or (node.tool is not None and id(node.tool) in self._tools)

    def above(self) -> Iterator[Node]:
        """The known ancestors of the entry, nearest first, at most `MAX_ANCESTORS`."""
        return self.entry.ancestors()

    def times(self) -> tuple[int | None, int | None]:
        """Start and end in Unix nanoseconds: of the entry, or of all nodes if the entry span never
        arrived, only sent a task, or may end before its run.
        """
        if "missing_root" not in self.flags and not _may_be_short(self.entry):
            return self.entry.span.start_ns or None, self.entry.span.end_ns or None
        start_ns = min(node.span.start_ns for node in self.nodes)
        end_ns = max(node.span.end_ns for node in self.nodes)
        return start_ns or None, end_ns or None


def _may_be_short(entry: Node) -> bool:
    """Whether the span of an entry may end before what it started."""
    return entry.classified == "task" or any(one.ends_before_run for one in entry.dialects)


def groups(tree: Tree) -> list[Group]:
    """All invocations of a trace, by start."""
    hosts = reparent(tree)
    join_model_calls(tree)
    join_tool_calls(tree)
    headless = list(_headless(tree))
    taken = {id(node) for group in headless for node in group.nodes}
    entry_agents = [node for node in tree.entry_agents() if id(node) not in taken]
    if entry_agents:
        others = _with_entry_agents(tree, entry_agents, hosts)
    else:
        roots = [root for root in tree.roots() if id(root) not in taken]
        others = _without_entry_agents(tree, roots)
    found = [*headless, *others]
    return sorted(found, key=lambda group: (group.nodes[0].span.start_ns, group.span_id))


def _with_entry_agents(tree: Tree, entry_agents: list[Node], hosts: set[int]) -> Iterator[Group]:
    by_entry: dict[int, list[Node]] = defaultdict(list)
    for node in tree.nodes:
        by_entry[id(node.entry_agent)].append(node)
    for entry in entry_agents:
        flags: list[Flag] = ["orphan_spans"] if id(entry) in hosts else []
        yield Group(entry.span.span_id, entry, entry, by_entry[id(entry)], flags)


def _headless(tree: Tree) -> Iterator[Group]:
    """Groups of an agent whose own span never arrived: its steps, or its model and tool calls.
    Those with the same parent are one invocation.
    """
    orphans: dict[str, list[Node]] = defaultdict(list)
    for root in tree.roots():
        if root.span.parent_id is not None and not root.span.remote_parent:
            orphans[root.span.parent_id].append(root)
    _join_failed_step(orphans)
    for parent_id, roots in orphans.items():
        if any(map(_is_step, roots)) or {"model", "tool"} <= {root.kind for root in roots}:
            yield from _missing_root(parent_id, (node for one in roots for node in tree.below(one)))


def _join_failed_step(orphans: dict[str, list[Node]]) -> None:
    """Count what a failed step did as part of the run, if only one run has turns: neither the step
    nor the run has arrived.
    """
    runs = [key for key, roots in orphans.items() if any(map(_is_turn, roots))]
    if len(runs) == 1:
        [run] = runs
        dialect = orphans[run][0].dialect
        for key in [key for key in orphans if key != run]:
            if any(
                root.dialect in (dialect, None) or root.kind == "model" for root in orphans[key]
            ):
                orphans[run] += orphans.pop(key)


def _is_turn(root: Node) -> bool:
    return root.classified == "turn"


def _is_step(root: Node) -> bool:
    """Whether a span of an agent framework has no meaning without the spans above it."""
    return _is_turn(root) or (root.kind == "other" and root.dialect is not None)


def _without_entry_agents(tree: Tree, roots: Sequence[Node]) -> Iterator[Group]:
    """Groups of model calls without any agent: those below the same entry, or below the same parent
    that never arrived, are one invocation.
    """
    for root in roots:
        nodes = sorted(tree.below(root), key=_order)
        if root.kind not in _NO_ENTRIES and _has_model_call(nodes):
            yield Group(root.span.span_id, root, None, nodes)
    orphans: dict[str, list[Node]] = defaultdict(list)
    for root in roots:
        if root.kind in _WORK and root.span.parent_id is not None:
            orphans[root.span.parent_id].extend(tree.below(root))
    for parent_id, below in orphans.items():
        yield from _missing_root(parent_id, below)


def _missing_root(parent_id: str, nodes: Iterable[Node]) -> Iterator[Group]:
    ordered = sorted(nodes, key=_order)
    if _has_model_call(ordered) or any(map(_is_turn, ordered)):
        yield Group(parent_id, ordered[0], None, ordered, ["missing_root"])


def _has_model_call(nodes: Iterable[Node]) -> bool:
    return any(node.kind == "model" for node in nodes)


def _order(node: Node) -> tuple[int, int, str]:
    return start_order(node.span)

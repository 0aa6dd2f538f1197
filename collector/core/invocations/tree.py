"""The span tree of a trace, read as agents, model calls and tools.

Several nested spans often describe one operation: those of a framework and of a client, or of an
MCP client and server. They become one node: a model call inside a model call, an agent directly
inside an agent of the same name, and a tool inside a tool of the same name. Parents that never
arrived leave several roots; cycles are cut.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from pathgauge.collector.core.invocations.dialects import Registry
from pathgauge.collector.core.invocations.dialects.genai import GENAI
from pathgauge.collector.core.invocations.dialects.registry import Classified
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.invocations.rounds import leave_out_covered
from pathgauge.collector.core.invocations.unknown_nodes import (
    promote_teams,
    settle_unknown,
    without_fallback,
)
from pathgauge.collector.core.invocations.written_calls import with_calls_apart
from pathgauge.collector.core.otlp.spans import Span, Trace, start_order
from pathgauge.collector.core.reading_budget import spend


class Tree:
    """All nodes of a trace, ordered by start, an enclosing span before the one inside it."""

    def __init__(
        self, trace: Trace, registry: Registry, unread: Callable[[Span], None] | None = None
    ) -> None:
        """`unread` gets the spans that speak of agents and that no dialect understands."""
        spans, classified = _classified(trace.spans, registry, unread)
        present = frozenset(dialect for _, dialects in classified for dialect in dialects)
        plan = registry.plan(present)
        self.nodes = [
            Node(span, kind, dialects, plan)
            for span, (kind, dialects) in zip(spans, classified, strict=True)
        ]
        self._children: dict[str, list[Node]] = defaultdict(list)
        by_id = {node.span.span_id: node for node in self.nodes}
        for node in self.nodes:
            node.parent = by_id.get(node.span.parent_id or "")
            if node.parent is not None:
                self._children[node.parent.span.span_id].append(node)
        if registry.fallback in present:
            settle_unknown(self.nodes, registry.fallback)
        elif GENAI in present:
            promote_teams(self.nodes, by_name=True)
        leave_out_covered(self.nodes)
        self._place_nodes()

    def below(self, root: Node) -> Iterator[Node]:
        """A node and everything below it, parents before children."""
        pending = [root]
        while pending:
            node = pending.pop()
            spend()
            yield node
            pending.extend(reversed(self._children.get(node.span.span_id, ())))

    def children(self, node: Node) -> Sequence[Node]:
        """The direct children of a node, by start."""
        return self._children.get(node.span.span_id, ())

    def attach(self, node: Node, parent: Node) -> bool:
        """Move a node below another parent, unless that parent is below the node itself. Returns
        whether it was moved.
        """
        if parent in self.below(node):
            return False
        if node.parent is not None:
            self._children[node.parent.span.span_id].remove(node)
        node.parent = parent
        self._children[parent.span.span_id].append(node)
        self._place_below(node)
        return True

    def roots(self) -> list[Node]:
        """The nodes without a known parent."""
        return [node for node in self.nodes if node.parent is None]

    def entry_agents(self) -> list[Node]:
        """The top-most agents and workflows."""
        return [node for node in self.nodes if node.entry_agent is node]

    def _place_nodes(self) -> None:
        """Place all nodes from the roots downwards. Nodes that no root leads to are in a cycle,
        which is cut at its earliest span.
        """
        roots = self.roots()
        steps = Counter(root.span.parent_id for root in roots if root.is_step)
        turns: dict[str, Node] = {}
        for root in roots:
            span = root.span
            is_start = span.parent_id is None or span.remote_parent
            root.place_at_root(turns, alone=is_start or steps[span.parent_id] == 1)
        reached = {span_id for root in roots for span_id in self._place_below(root)}
        for node in self.nodes:
            if node.parent is not None and node.span.span_id not in reached:
                self._children[node.parent.span.span_id].remove(node)
                node.parent = None
                node.place_at_root({}, alone=True)
                reached.update(self._place_below(node))

    def _place_below(self, root: Node) -> list[str]:
        """Place a node and everything below it. Returns the span ids."""
        placed = []
        turns: dict[str, Node] = {}
        for node in self.below(root):
            placed.append(node.span.span_id)
            if node.parent is not None:
                node.place_below(node.parent, turns)
        return placed


def _classified(
    spans: Iterable[Span], registry: Registry, unread: Callable[[Span], None] | None
) -> tuple[Sequence[Span], Sequence[Classified]]:
    """The spans by start, with what each represents by itself."""
    ordered = sorted(spans, key=start_order)
    classified: Sequence[Classified] = list(map(registry.classify, ordered))
    apart = with_calls_apart(ordered, classified)
    if apart is not None:
        ordered = sorted(apart, key=start_order)
        classified = list(map(registry.classify, ordered))
    if unread is not None:
        for span, one in zip(ordered, classified, strict=True):
            if registry.is_unread(span, one):
                unread(span)
    if any(registry.fallback in dialects for _, dialects in classified):
        classified = without_fallback(ordered, classified, registry.fallback) or classified
    return ordered, classified

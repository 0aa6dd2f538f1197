"""The span tree of a trace, read as agents, model calls and tools: a `Trace` comes in, `Node`s go
out.

One thing that happened is often described by several nested spans (a framework's and a client's; an
MCP client's and server's). Such spans become one node: a model call inside a model call, an agent
directly inside an agent of the same name, and a tool inside a tool of the same name, with nothing
else between. Links to spans that never arrived leave several roots; cycles are cut.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from pathgauge.collector.core.invocations.dialects import BUILT_IN, Registry
from pathgauge.collector.core.invocations.node import Node
from pathgauge.collector.core.otlp.spans import Trace, start_order


class Tree:
    """All nodes of a trace, ordered by start, an enclosing span before the one it encloses."""

    def __init__(self, trace: Trace, registry: Registry = BUILT_IN) -> None:
        spans = sorted(trace.spans, key=start_order)
        classified = [registry.classify(span) for span in spans]
        fields = registry.fields(
            frozenset(dialect for _, dialects in classified for dialect in dialects)
        )
        self.nodes = [
            Node(span, kind, dialects, fields)
            for span, (kind, dialects) in zip(spans, classified, strict=True)
        ]
        self._children: dict[str, list[Node]] = defaultdict(list)
        by_id = {node.span.span_id: node for node in self.nodes}
        for node in self.nodes:
            node.parent = by_id.get(node.span.parent_id or "")
            if node.parent is not None:
                self._children[node.parent.span.span_id].append(node)
        self._place()

    def below(self, root: Node) -> Iterator[Node]:
        """A node and everything below it, parents before children."""
        waiting = [root]
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(reversed(self._children.get(node.span.span_id, ())))

    def children(self, node: Node) -> Sequence[Node]:
        """The nodes right below a node, by start."""
        return self._children.get(node.span.span_id, ())

    def hang(self, node: Node, parent: Node) -> bool:
        """Give a node the parent that it should have had, unless that hangs below the node itself;
        returns whether it did.
        """
        if parent in self.below(node):
            return False
        if node.parent is not None:
            self._children[node.parent.span.span_id].remove(node)
        node.parent = parent
        self._children[parent.span.span_id].append(node)
        self._walk(node)
        return True

    def roots(self) -> list[Node]:
        """The nodes without a known parent."""
        return [node for node in self.nodes if node.parent is None]

    def entry_agents(self) -> list[Node]:
        """The top-most agents and workflows."""
        return [node for node in self.nodes if node.entry_agent is node]

    def _place(self) -> None:
        """Walk down from the roots; what no root leads to hangs in a cycle, which is cut at its
        earliest span.
        """
        roots = self.roots()
        orphans = Counter(root.span.parent_id for root in roots if root.is_step)
        for root in roots:
            span = root.span
            root.stand_alone(
                alone=span.parent_id is None or span.remote_parent or orphans[span.parent_id] == 1
            )
        reached = {span_id for root in roots for span_id in self._walk(root)}
        for node in self.nodes:
            if node.parent is not None and node.span.span_id not in reached:
                self._children[node.parent.span.span_id].remove(node)
                node.parent = None
                node.stand_alone(alone=True)
                reached.update(self._walk(node))

    def _walk(self, root: Node) -> list[str]:
        walked = []
        turns: dict[str, Node] = {}
        for node in self.below(root):
            walked.append(node.span.span_id)
            if node.parent is not None:
                node.place_below(node.parent, turns)
        return walked

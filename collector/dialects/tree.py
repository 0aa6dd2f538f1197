"""The span tree of a trace, read as agents, model calls and tools: a `Trace` comes in, `Node`s go out.

One thing that happened is often described by several nested spans (a framework's and a client's; an MCP client's and server's).
Such spans become one node: a model call inside a model call, an agent directly inside an agent of the same name, and a tool
inside a tool of the same name, with nothing else between. Links to spans that never arrived leave several roots; cycles are cut.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from collector.dialects.dialect import Kind
from collector.dialects.registry import FIELDS, classify, first
from collector.dialects.values import as_id
from collector.spans import Span, Trace, start_order

_AGENTS = ("agent", "workflow")
_LINKS = ("other", "dropped")
_MERGING = ("model", "agent", "tool")


class Node:
    """A span with its place in the tree. Nodes know only what is above them: without cycles they are freed as soon as they are read."""

    __slots__ = ("_anchor", "_name", "agent", "dialect", "kind", "outer", "parent", "runs_agent", "span", "spans", "tool")

    def __init__(self, span: Span) -> None:
        self.span = span
        self.spans = [span]
        """The span, and the inner ones that describe the same thing, outer first."""
        self.kind, self.dialect = classify(span)
        self.parent: Node | None = None
        self.outer: Node | None = None
        """The nearest ancestor that stands for something."""
        self.agent: Node | None = None
        """The nearest agent or workflow above."""
        self.tool: Node | None = None
        """The nearest tool above."""
        self.runs_agent = False
        """Whether this is a tool below which an agent works."""
        self._anchor: Node | None = None
        self._name: str | None = None

    @property
    def anchor(self) -> Node | None:
        """The top-most agent or workflow on the way up, which may be this node."""
        return self._anchor or (self if self.kind in _AGENTS else None)

    @property
    def name(self) -> str | None:
        """The name of the agent, workflow or tool, as its own fields or its span name give it."""
        if self._name is None:
            self._name = as_id(first(self.spans, _name_keys(self.kind))) or _name_in(self.span.name)
        return self._name

    def place_below(self, parent: Node) -> None:
        """Take over what the parent knows of its own place, and let an outer node of the same thing speak for this one."""
        self.outer = parent if parent.kind not in _LINKS else parent.outer
        self.agent = parent if parent.kind in _AGENTS else parent.agent
        self.tool = parent if parent.kind == "tool" else parent.tool
        self._anchor = parent.anchor
        if self.tool is not None and self.kind in _AGENTS:
            self.tool.runs_agent = True
        if self.outer is not None and self._repeats(self.outer):
            self.outer.spans.append(self.span)
            self.kind = "other"

    def _repeats(self, outer: Node) -> bool:
        if self.kind != outer.kind or self.kind not in _MERGING:
            return False
        return self.kind == "model" or self.name == outer.name


def _name_keys(kind: Kind) -> tuple[str, ...]:
    if kind == "tool":
        return FIELDS.tool_name
    return FIELDS.agent_name if kind == "agent" else FIELDS.workflow_name if kind == "workflow" else ()


_NAME_PREFIXES = ("invoke_agent ", "invoke_workflow ", "execute_tool ", "running tool: ", "running output function: ")


def _name_in(span_name: str) -> str | None:
    if span_name.startswith("agent_run [") and span_name.endswith("]"):
        return span_name[len("agent_run [") : -1]
    return next((span_name[len(prefix) :] for prefix in _NAME_PREFIXES if span_name.startswith(prefix)), None)


class Tree:
    """All nodes of a trace, ordered by start, an enclosing span before the one it encloses."""

    def __init__(self, trace: Trace) -> None:
        self.nodes = [Node(span) for span in sorted(trace.spans, key=start_order)]
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

    def hang(self, root: Node, parent: Node) -> None:
        """Give a root the parent that it should have had."""
        root.parent = parent
        self._children[parent.span.span_id].append(root)
        self._walk(root)

    def roots(self) -> list[Node]:
        """The nodes without a known parent."""
        return [node for node in self.nodes if node.parent is None]

    def anchors(self) -> list[Node]:
        """The top-most agents and workflows."""
        return [node for node in self.nodes if node.anchor is node]

    def _place(self) -> None:
        """Walk down from the roots; what no root leads to hangs in a cycle, which is cut at its earliest span."""
        reached = {span_id for root in self.roots() for span_id in self._walk(root)}
        for node in self.nodes:
            if node.parent is not None and node.span.span_id not in reached:
                self._children[node.parent.span.span_id].remove(node)
                node.parent = None
                reached.update(self._walk(node))

    def _walk(self, root: Node) -> list[str]:
        walked = []
        for node in self.below(root):
            walked.append(node.span.span_id)
            if node.parent is not None:
                node.place_below(node.parent)
        return walked

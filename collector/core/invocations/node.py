"""A span with its position in the tree: what it represents there, whose work it is, and which other
spans describe the same thing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pathgauge.collector.core.invocations.dialects import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import FieldPaths, first
from pathgauge.collector.core.invocations.dialects.field_plan import FieldPlan
from pathgauge.collector.core.invocations.dialects.genai import has_model_details
from pathgauge.collector.core.invocations.dialects.unknown import NAME as UNKNOWN
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.otlp.spans import Span

_AGENTS = ("agent", "workflow")
_LINKS = ("other", "dropped", "task", "message")
_TOOLS = ("tool", "tools")
_UNKNOWN_AGENT = "OpenAI Agent"
"""The agent name that an instrumentation writes if it knows none."""
_STEPS = ("chain", "named_step")
_MERGING = ("model", "agent", "workflow", "tool")

MAX_ANCESTORS = 100
"""Bound on the nodes above a node that are searched: thousands of agents could be below thousands
of spans.
"""


class Node:
    """A span with its position in the tree. Nodes refer only to nodes above them: without reference
    cycles they are freed as soon as the trace has been read.
    """

    __slots__ = (
        "_call_id",
        "_entry_agent",
        "_name",
        "_name_source",
        "agent",
        "called",
        "classified",
        "dialect",
        "dialects",
        "fields",
        "is_unknown",
        "kind",
        "outer",
        "parent",
        "plan",
        "runs_agent",
        "span",
        "spans",
        "tool",
    )

    def __init__(
        self, span: Span, kind: Kind, dialects: tuple[Dialect, ...], plan: FieldPlan
    ) -> None:
        self.span = span
        self.spans = [span]
        """The span, and inner spans that describe the same thing, outer first."""
        self.classified: Kind = kind
        """The kind by the span alone."""
        self.kind: Kind = kind
        """The kind at this position in the tree."""
        self.dialects = dialects
        """The dialects that match its spans. The first is that of the outer span."""
        self.dialect = dialects[0] if dialects else None
        """The dialect that made the span."""
        self.is_unknown = _has_unknown(dialects)
        """Whether a span of it was read without a dialect that understands it."""
        self.plan = plan
        """The field paths of this trace."""
        self.fields = plan.of(span.attributes) if dialects else plan.fields
        """The field paths that may have a value in its spans."""
        self.parent: Node | None = None
        self.outer: Node | None = None
        """The nearest ancestor that is not a mere link."""
        self.agent: Node | None = None
        """The nearest agent or workflow above, or the agent whose turn it is there."""
        self.tool: Node | None = None
        """The nearest tool above, or agent that was called like one."""
        self.called = False
        """Whether this is an agent that was called like a tool, with no other span for the call."""
        self.runs_agent = False
        """Whether this is a tool with an agent below it."""
        self._entry_agent: Node | None = None
        self._name: str | None = None
        self._name_source: tuple[int, Kind] | None = None
        """Number of spans and kind from which the name was derived."""
        self._call_id: tuple[int, Any] = 0, None
        """Number of spans that were searched for a call id, and the value found."""

    def describe_also(self, spans: Iterable[Span], dialects: tuple[Dialect, ...] = ()) -> None:
        """Add inner spans that describe the same thing, with their dialects."""
        self.spans.extend(spans)
        self.dialects = tuple(dict.fromkeys(self.dialects + dialects))
        self.dialect = self.dialects[0] if self.dialects else None
        self.is_unknown = _has_unknown(self.dialects)
        self.fields = self.plan.fields

    @property
    def entry_agent(self) -> Node | None:
        """The top-most agent or workflow on the way up, which may be this node."""
        return self._entry_agent or (self if self.kind in _AGENTS else None)

    @property
    def run(self) -> str | None:
        """The span id of the agent whose work this is; `None` outside of any agent."""
        if self.agent is not None:
            return self.agent.span.span_id
        return None

    @property
    def is_step(self) -> bool:
        """Whether its position decides what it represents."""
        return self.kind in _STEPS

    @property
    def own_spans(self) -> list[Span]:
        """The spans, except agent spans onto which the details of a model call were written."""
        if self.kind != "agent":
            return self.spans
        return [span for span in self.spans if not has_model_details(span)]

    @property
    def name(self) -> str | None:
        """The name of the agent, workflow or tool, from its fields or its span name."""
        source = len(self.spans), self.kind
        if self._name is None and self._name_source != source:
            self._name_source = source
            stated = as_id(first(self.spans, _name_paths(self.fields, self.kind)))
            self._name = stated or self._name_in_title() or self._name_of_dialect()
            if self._name and self.kind == "tool" and self.dialect is not None:
                function_name = self.dialect.function_name
                if function_name is not None:
                    self._name = function_name(self._name)
        return self._name

    def _name_in_title(self) -> str | None:
        """The part of the span name after the operation. If an agent has no name, some write its
        model there.
        """
        name = _name_in(self.span.name)
        if name is not None and name == self.span.attributes.get("gen_ai.request.model"):
            return None
        return name

    def _name_of_dialect(self) -> str | None:
        """The name by the first dialect that tells names: the next ones know the span less well."""
        hooks = (one.name_of for one in self.dialects if one.name_of is not None)
        name_of = next(hooks, None)
        return name_of(self.span) if name_of is not None else None

    def ancestors(self) -> Iterator[Node]:
        """The known ancestors, nearest first, at most `MAX_ANCESTORS`."""
        node = self.parent
        for _ in range(MAX_ANCESTORS):
            if node is None:
                return
            yield node
            node = node.parent

    def place_below(self, parent: Node, turns: dict[str, Node]) -> None:
        """Derive the position from that of the parent. If an outer node describes the same thing,
        merge into it.

        `turns`: the agent whose turn it is below each parent, by the span id of the parent.
        """
        self.outer = parent if parent.kind not in _LINKS else parent.outer
        self.agent = parent if parent.kind in _AGENTS else parent.agent
        self.tool = parent if parent.kind in _TOOLS or parent.called else parent.tool
        self._entry_agent = parent.entry_agent
        self.called = self.classified == "nested_agent" and self._is_below_agent(parent)
        self._resolve_kind()
        self._take_turn(turns, parent.span.span_id)
        if self.tool is not None and self.kind in _AGENTS:
            self.tool.runs_agent = True
        if self.outer is not None and self._repeats(self.outer):
            self.outer.describe_also([self.span], self.dialects)
            self.kind = "other"

    def _is_below_agent(self, parent: Node) -> bool:
        if self.outer is not None:
            return self.outer.kind == "agent"
        return parent.dialect is self.dialect

    def place_at_root(self, turns: dict[str, Node], *, alone: bool) -> None:
        """Resolve the kind of a node without a known parent. `alone`: no sibling step has the same
        unknown parent. `turns` as for `place_below`.
        """
        if self.is_step and not alone:
            self.kind = "other"
        self._resolve_kind()
        if self.span.parent_id is not None:
            self._take_turn(turns, self.span.parent_id)

    def _resolve_kind(self) -> None:
        """Turn a step into the agent that it names, or into the workflow that it runs. Inside of
        these it is a mere link.
        """
        match self.kind:
            case "named_step":
                is_inside = self.agent is not None and self._agent_name() == self.name_as_agent()
                self.kind = "other" if is_inside else "agent"
            case "chain":
                self.kind = "other" if self.agent is not None else "workflow"
            case "turn" | "nested_agent":
                self.kind = "agent"
            case "tool" if self._is_in_tool() and "mcp.method.name" in self.span.attributes:
                # An MCP server does not know the prefix that the framework adds to its tools.
                self.kind = "tool_detail"
            case "tool_detail" if not self._is_in_tool():
                self.kind = "other"

    def _is_in_tool(self) -> bool:
        return self.outer is not None and self.outer.kind == "tool"

    def _take_turn(self, turns: dict[str, Node], parent_id: str) -> None:
        """Start a turn, or join the current one among the siblings."""
        current = turns.get(parent_id)
        if self.classified == "turn" and (current is None or current.name != self.name):
            turns[parent_id] = self
        elif current is not None:
            self.agent = current
            if self.classified == "turn":
                self.kind = "other"

    def name_as_agent(self) -> str | None:
        """The agent that a span names, whatever the span represents."""
        name = as_id(first(self.spans, self.fields.agent_name))
        if name == _UNKNOWN_AGENT:
            return None
        return name

    def _agent_name(self) -> str | None:
        above = self.agent_run()
        if above is not None:
            return above.name
        return None

    def agent_run(self) -> Node | None:
        """The nearest agent above, without workflows."""
        above = self.agent
        for _ in range(MAX_ANCESTORS):
            if above is None or above.kind != "workflow":
                return above
            above = above.agent
        return None

    def worker(self) -> str | None:
        """The agent that did this work: the nearest one above, otherwise the one that the span
        names, otherwise the nearest agent or workflow above that has a name.
        """
        name = self._agent_name() or self.name_as_agent()
        above = self.agent
        for _ in range(MAX_ANCESTORS):
            if name or above is None:
                return name
            name, above = above.name, above.agent
        return name

    def _repeats(self, outer: Node) -> bool:
        """Whether the outer node describes the same thing."""
        if self.kind == "tool_detail":
            return True
        if self.kind != outer.kind or self.kind not in _MERGING:
            return False
        if self.kind == "model":
            return not self._is_next_call(outer)
        if self.name is None:
            return not self.called
        return self.name == outer.name and not self._is_another_call(outer)

    def _is_next_call(self, outer: Node) -> bool:
        """Whether a model call inside another one is the next call of the same client."""
        if self.dialect is None or self.dialect.adds_up_usage is None:
            return False
        return self.dialect is outer.dialect

    def _is_another_call(self, outer: Node) -> bool:
        """Whether a tool is called again inside itself, as by a sub-agent that calls sub-agents."""
        own = as_id(first(self.spans, self.fields.call_id)) if self.kind == "tool" else None
        return own is not None and outer.first_call_id() not in (own, None)

    def first_call_id(self) -> str | None:
        """The first call id that its spans state."""
        searched, found = self._call_id
        if found is None and searched < len(self.spans):
            found = first(self.spans[searched:], self.fields.call_id)
            self._call_id = len(self.spans), found
        return as_id(found)


def _has_unknown(dialects: tuple[Dialect, ...]) -> bool:
    return bool(dialects) and UNKNOWN in [dialect.name for dialect in dialects]


def _name_paths(fields: Fields, kind: Kind) -> FieldPaths:
    match kind:
        case "tool":
            return fields.tool_name
        case "agent":
            return fields.agent_name
        case "workflow":
            return fields.workflow_name
        case _:
            return ()


_NAME_PREFIXES = (
    "invoke_agent ",
    "invoke_workflow ",
    "execute_tool ",
    "tools/call ",
    "running tool: ",
    "running output function: ",
)


def _name_in(span_name: str) -> str | None:
    if span_name.startswith("agent_run [") and span_name.endswith("]"):
        return span_name[len("agent_run [") : -1]
    for prefix in _NAME_PREFIXES:
        if span_name.startswith(prefix):
            return span_name[len(prefix) :]
    return None

"""A span with its place in the tree: what it stands for there, whose work it is, and which spans
tell of the same thing.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import FieldPaths, first
from pathgauge.collector.core.invocations.dialects.genai import has_model_details
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.otlp.spans import Span

_AGENTS = ("agent", "workflow")
_LINKS = ("other", "dropped", "task", "message")
_TOOLS = ("tool", "tools")
_NOBODY = "OpenAI Agent"
"""What an instrumentation writes for the agent where it knows none."""
_STEPS = ("chain", "named_step")
_MERGING = ("model", "agent", "workflow", "tool")


class Node:
    """A span with its place in the tree. Nodes know only what is above them: without cycles they
    are freed as soon as they are read.
    """

    __slots__ = (
        "_entry_agent",
        "_name",
        "agent",
        "called",
        "classified",
        "dialects",
        "fields",
        "kind",
        "outer",
        "parent",
        "runs_agent",
        "span",
        "spans",
        "tool",
    )

    def __init__(
        self, span: Span, kind: Kind, dialects: tuple[Dialect, ...], fields: Fields
    ) -> None:
        self.span = span
        self.spans = [span]
        """The span, and the inner ones that describe the same thing, outer first."""
        self.classified: Kind = kind
        self.kind: Kind = kind
        self.dialects = dialects
        """Those that its spans speak, the first of the outer span first."""
        self.fields = fields
        """Where each field may live in this trace."""
        self.parent: Node | None = None
        self.outer: Node | None = None
        """The nearest ancestor that stands for something."""
        self.agent: Node | None = None
        """The nearest agent or workflow above, or the agent whose turn it is there."""
        self.tool: Node | None = None
        """The nearest tool above, or agent that was called like one."""
        self.called = False
        """Whether this is an agent that was called like a tool, with no other span for the call."""
        self.runs_agent = False
        """Whether this is a tool below which an agent works."""
        self._entry_agent: Node | None = None
        self._name: str | None = None

    @property
    def dialect(self) -> Dialect | None:
        """The dialect that made the span."""
        return self.dialects[0] if self.dialects else None

    @property
    def entry_agent(self) -> Node | None:
        """The top-most agent or workflow on the way up, which may be this node."""
        return self._entry_agent or (self if self.kind in _AGENTS else None)

    @property
    def name(self) -> str | None:
        """The name of the agent, workflow or tool, as its own fields or its span name give it."""
        if self._name is None:
            self._name = (
                as_id(first(self.spans, _name_places(self.fields, self.kind)))
                or self._name_in_title()
                or self._own_name()
            )
            if (
                self._name
                and self.kind == "tool"
                and self.dialect is not None
                and self.dialect.function_name is not None
            ):
                self._name = self.dialect.function_name(self._name)
        return self._name

    def _name_in_title(self) -> str | None:
        """What follows the operation in the span's name; where an agent has no name, some write its
        model there.
        """
        name = _name_in(self.span.name)
        return (
            None
            if name is not None and name == self.span.attributes.get("gen_ai.request.model")
            else name
        )

    @property
    def own_spans(self) -> list[Span]:
        """The spans without those of an agent over which the details of its model calls were
        written.
        """
        return (
            self.spans
            if self.kind != "agent"
            else [span for span in self.spans if not has_model_details(span)]
        )

    def _own_name(self) -> str | None:
        naming = (dialect.name_of for dialect in self.dialects if dialect.name_of is not None)
        return next((name for name_of in naming if (name := name_of(self.span))), None)

    def place_below(self, parent: Node, turns: dict[str, Node]) -> None:
        """Take over what the parent knows of its own place, and let an outer node of the same thing
        speak for this one.

        `turns` are the agents whose turn it is below each parent, by its span id.
        """
        self.outer = parent if parent.kind not in _LINKS else parent.outer
        self.agent = parent if parent.kind in _AGENTS else parent.agent
        self.tool = parent if parent.kind in _TOOLS or parent.called else parent.tool
        self._entry_agent = parent.entry_agent
        self.called = self.classified == "nested_agent" and (
            self.outer.kind == "agent" if self.outer else parent.dialect is self.dialect
        )
        self._resolve_kind()
        self._take_turn(turns, parent.span.span_id)
        if self.tool is not None and self.kind in _AGENTS:
            self.tool.runs_agent = True
        if self.outer is not None and self._repeats(self.outer):
            self.outer.spans.append(self.span)
            self.outer.dialects = tuple(dict.fromkeys(self.outer.dialects + self.dialects))
            self.kind = "other"

    @property
    def is_step(self) -> bool:
        """Whether its place has yet to tell what it stands for."""
        return self.kind in _STEPS

    def stand_alone(self, *, alone: bool) -> None:
        """Decide what a step is above which nothing is known; `alone` says that it is the only one
        below its unknown parent.
        """
        if self.is_step and not alone:
            self.kind = "other"
        self._resolve_kind()

    def _resolve_kind(self) -> None:
        """A step becomes the agent that it names, or the workflow that it is all of; below those it
        stands for nothing.
        """
        if self.kind == "named_step":
            self.kind = (
                "other"
                if self.agent is not None and self._agent_name() == self.name_as_agent()
                else "agent"
            )
        elif self.kind == "chain":
            self.kind = "other" if self.agent is not None else "workflow"
        elif self.kind in ("turn", "nested_agent"):
            self.kind = "agent"
        elif (
            self.kind == "tool"
            and self.outer is not None
            and self.outer.kind == "tool"
            and "mcp.method.name" in self.span.attributes
        ):
            # its server does not know by which prefix the framework tells its tools from others
            self.kind = "tool_detail"
        elif self.kind == "tool_detail" and (self.outer is None or self.outer.kind != "tool"):
            self.kind = "other"

    def _take_turn(self, turns: dict[str, Node], parent_id: str) -> None:
        """Begin a turn, or be part of the one that has begun beside."""
        begun = turns.get(parent_id)
        if self.classified == "turn" and (begun is None or begun.name != self.name):
            turns[parent_id] = self
        elif begun is not None:
            self.agent = begun
            self.kind = "other" if self.classified == "turn" else self.kind

    def name_as_agent(self) -> str | None:
        """The agent that a span names, whatever it stands for itself."""
        name = as_id(first(self.spans, self.fields.agent_name))
        return None if name == _NOBODY else name

    def _agent_name(self) -> str | None:
        above = self.agent_run()
        return above.name if above is not None else None

    def agent_run(self) -> Node | None:
        """The nearest agent above, workflows passed over."""
        above = self.agent
        while above is not None and above.kind == "workflow":
            above = above.agent
        return above

    def worker(self) -> str | None:
        """Whose work this is: the nearest agent's, else that of the agent which the span names,
        else the workflow's.
        """
        return (
            self._agent_name()
            or self.name_as_agent()
            or (self.agent.name if self.agent is not None else None)
        )

    def _repeats(self, outer: Node) -> bool:
        if self.kind == "tool_detail":
            return True
        if self.kind != outer.kind or self.kind not in _MERGING:
            return False
        if self.name is None:
            return not self.called
        return self.kind == "model" or (
            self.name == outer.name and not self._is_another_call(outer)
        )

    def _is_another_call(self, outer: Node) -> bool:
        """Whether a tool is called again from within, as by a sub-agent that may call sub-agents."""
        own = as_id(first(self.spans, self.fields.call_id)) if self.kind == "tool" else None
        return own is not None and as_id(first(outer.spans, self.fields.call_id)) not in (own, None)


def _name_places(fields: Fields, kind: Kind) -> FieldPaths:
    if kind == "tool":
        return fields.tool_name
    return (
        fields.agent_name if kind == "agent" else fields.workflow_name if kind == "workflow" else ()
    )


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
    return next(
        (span_name[len(prefix) :] for prefix in _NAME_PREFIXES if span_name.startswith(prefix)),
        None,
    )

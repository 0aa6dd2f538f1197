"""What a dialect is: how to recognise the spans of one instrumentation, and a table of where its
fields live.

The reading (`pathgauge.collector.core.invocations`) resolves every field on its own over all
dialects of a trace, since spans of several dialects, and single spans that speak two, are common. A
dialect says only what is its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pathgauge.collector.core.invocations.dialects.field_paths import FieldPaths
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.unwrap import Result
from pathgauge.collector.core.otlp.spans import Span

Kind = Literal[
    "agent",
    "workflow",
    "model",
    "tool",
    "tools",
    "tool_detail",
    "handoff",
    "chain",
    "named_step",
    "turn",
    "nested_agent",
    "task",
    "message",
    "other",
    "dropped",
]
"""What a span stands for.

One span of `tools` carries out all calls of a model's message; its output messages hold their
results. A `part` tells more of the tool that it lies in. A `handoff` passes control to another
agent. A `chain` is a step of something larger, and that larger thing itself, a workflow, when no
agent is above it. A `member` is a step that names its agent: the outermost one with that name is
the agent. A `turn` is the same beside others: its agent works until a turn of another one begins. A
`managed` agent that runs right below another agent was called by it like a tool, and nothing else
shows the call. A `task` is sent to a team of agents, whose run it begins; a `message` is what they
send each other. `other` spans count only as links of the tree; `dropped` ones describe nothing that
an agent did.
"""


@dataclass(frozen=True, slots=True)
class Fields:
    """Where each field lives, the first place that has it wins."""

    agent_name: FieldPaths = ()
    agent_version: FieldPaths = ()
    workflow_name: FieldPaths = ()
    conversation_id: FieldPaths = ()
    user_id: FieldPaths = ()
    tool_name: FieldPaths = ()
    tool_type: FieldPaths = ()
    call_id: FieldPaths = ()
    arguments: FieldPaths = ()
    result: FieldPaths = ()
    request_model: FieldPaths = ()
    response_model: FieldPaths = ()
    input_tokens: FieldPaths = ()
    output_tokens: FieldPaths = ()
    total_input_tokens: FieldPaths = ()
    """Totals that an agent span states over its model calls."""
    total_output_tokens: FieldPaths = ()
    input_messages: FieldPaths = ()
    """What a model call was shown."""
    output_messages: FieldPaths = ()
    agent_input: FieldPaths = ()
    """What an agent or workflow was given: messages, or the user's text."""
    agent_output: FieldPaths = ()
    """What it gave back: messages of which the last is the answer, or the answer."""
    final_response: FieldPaths = ()
    """The answer itself, text or not."""
    finish_reasons: FieldPaths = ()
    """Why a model stopped: one reason or several."""
    error_type: FieldPaths = ()
    tool_definitions: FieldPaths = ()
    """On agents and model calls: the tools that were offered, with the schemas of their arguments.
    """
    tool_schema: FieldPaths = ()
    """On tools: the schema of the arguments of this one."""


MessageReader = Callable[[Any, str], tuple[Message, ...]]
"""Reads the decoded value of a message field; the role is the one of messages that name none."""


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """One instrumentation's way of describing agents."""

    name: str
    matches: Callable[[Span], bool]
    """Whether this dialect made the span, by its scope, its name and the keys of its attributes
    alone.

    Asked only of spans with one of the `scopes`, `names` or `byte_marks`.
    """
    kind: Callable[[Span], Kind | None]
    """What the span stands for; `None` when this dialect cannot tell. Asked of spans that the
    dialect speaks.
    """
    scopes: tuple[str, ...] = ()
    """Prefixes of the names of its instrumentation scopes."""
    names: tuple[str, ...] = ()
    """Prefixes of span names that are its own, whatever the attributes."""
    byte_marks: tuple[bytes, ...] = ()
    """Bytes of which each of its spans contains some, so that the spans of HTTP clients and
    databases are never decoded.
    """
    fields: Fields = Fields()
    entry_names: tuple[str, ...] = ()
    """Prefixes of the names of spans that may be an invocation's anchor, told without decoding
    attributes.
    """
    outranks_conventions: bool = False
    """Whether its own places say more than those of the conventions, where a span has both."""
    shows_tools: bool = True
    """Whether tool calls leave any trace at all."""
    beside_run: bool = False
    """Whether the span of an agent may lie beside the run of the agent instead of around it."""
    loses_parent: bool = False
    """Whether agents that are called as tools hang beside their caller."""
    may_be_entry: Callable[[Span], bool] | None = None
    """Tells the same where names do not; asked of every arriving span, or of those of its `scopes`,
    so it looks at bytes alone.
    """
    name_of: Callable[[Span], str | None] | None = None
    """The name of the agent, workflow or tool that a span stands for, when no field has it."""
    function_name: Callable[[str], str] | None = None
    """The name of a function in the one by which models know it."""
    messages: MessageReader | None = None
    """Reads this dialect's own message attributes, where their shape alone does not tell."""
    unwrap_arguments: Callable[[Any], Any] | None = None
    """Takes off what the framework wraps around the decoded arguments of its tools; gives back as
    it is what is not wrapped.
    """
    unwrap_result: Callable[[Any], Result] | None = None
    """The same for decoded results, on spans and as models are shown them, with the error that the
    wrapping tells.
    """
    failure: Callable[[Span], str | None] | None = None
    """What failed, where the span's status and error type do not say it."""
    empty_means_not_captured: Callable[[Sequence[Span]], FieldPaths] | None = None
    """Given the model spans of an invocation, the places at which `{}` means that content was not
    captured.
    """

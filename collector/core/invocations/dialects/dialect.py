"""What a dialect is: how to recognise the spans of one instrumentation, and a table of the
attributes that hold its fields.

The reader (`pathgauge.collector.core.invocations`) resolves every field separately over all
dialects of a trace, because one trace, and even one span, often follows several. A dialect
therefore declares only what is specific to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal

from pathgauge.collector.core.invocations.dialects.field_paths import FieldPaths, JsonMember
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.written_results import Result
from pathgauge.collector.core.otlp.spans import Attributes, Span

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
"""What a span represents.

- `agent`, `workflow`, `model`, `tool`: one agent run, workflow run, model call or tool call.
- `tools`: one span that executes all tool calls of a model message; its output messages hold the
  results.
- `tool_detail`: adds details to the tool span that encloses it.
- `handoff`: passes control to another agent.
- `chain`: a step of something larger. Without an agent above it, a `chain` is itself a workflow.
- `named_step`: a step that carries the name of its agent. The outermost step with a name is the
  agent.
- `turn`: the turn of an agent, beside the turns of others. Spans that follow belong to that agent
  until another agent's turn starts.
- `nested_agent`: an agent. Directly below another agent, it was called by it like a tool, and no
  other span shows the call.
- `task`: a message to a team of agents that starts a run of the team.
- `message`: a message between the agents of a team.
- `other`: only connects other spans in the tree.
- `dropped`: describes nothing that an agent did.
"""


@dataclass(frozen=True, slots=True)
class Fields:
    """The field paths of each field. The first path with a value wins."""

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
    response_id: FieldPaths = ()
    """The id that the provider gave to the answer of a model call. Two spans with it are one call.
    """
    input_tokens: FieldPaths = ()
    output_tokens: FieldPaths = ()
    cached_tokens: FieldPaths = ()
    """The part of the input tokens that was read from a cache."""
    cache_write_tokens: FieldPaths = ()
    """The part of the input tokens that was written to a cache."""
    total_input_tokens: FieldPaths = ()
    """On agent spans: the total over the model calls of the agent."""
    total_output_tokens: FieldPaths = ()
    input_messages: FieldPaths = ()
    """The prompt of a model call."""
    output_messages: FieldPaths = ()
    step_input: FieldPaths = ()
    """On the step around a single agent: what the agent was asked, for instrumentations that leave
    it out of the agent itself.
    """
    step_output: FieldPaths = ()
    """On the step around a single model call: the output of the model with its tool calls, for
    instrumentations that leave the calls out of the output of the model call itself.
    """
    agent_input: FieldPaths = ()
    """The input of an agent or workflow: messages, or the text of the user."""
    agent_output: FieldPaths = ()
    """The output of an agent or workflow: messages that end with the answer, or the answer."""
    final_tool: FieldPaths = ()
    """On agent or workflow spans: the name of the tool that a model has to call with its answer."""
    final_response: FieldPaths = ()
    """The answer itself, as text or any other value."""
    finish_reasons: FieldPaths = ()
    """Why a model stopped: one reason or several."""
    error_type: FieldPaths = ()
    tool_definitions: FieldPaths = ()
    """On agents and model calls: the tools offered to the model, with their argument schemas."""
    tool_schema: FieldPaths = ()
    """On tools: the argument schema of this tool."""


_TEXTS = ("name", "content_setting")
"""The fields of a dialect that are texts."""

MessageReader = Callable[[Any, str], tuple[Message, ...]]
"""Reads the decoded value of a message field. Messages without a role get the given role."""


@dataclass(frozen=True, slots=True, eq=False)
class Dialect:
    """How one instrumentation describes agents."""

    name: str
    matches: Callable[[Span], bool]
    """Whether a span is of this dialect. May use the scope, the span name and the attribute keys,
    but not the attribute values: the answer is cached by these.

    Called only for spans with one of the `scopes`, `names` or `key_prefixes`.
    """
    kind: Callable[[Span], Kind | None]
    """What a span represents; `None` if this dialect cannot tell. Called for spans that match."""
    scopes: tuple[str, ...] = ()
    """Prefixes of the names of its instrumentation scopes."""
    names: tuple[str, ...] = ()
    """Prefixes of span names that only this dialect uses."""
    key_prefixes: tuple[str, ...] = ()
    """Beginnings of attribute keys of which every span of the dialect has at least one. They let
    spans of HTTP clients and databases pass without being decoded.
    """
    reads: tuple[str | JsonMember, ...] = ()
    """The attributes that the functions of this dialect read, except those in `fields`.

    Redaction with `content: false` keeps these attributes and drops all that no dialect declares.
    Do not list attributes with content. Attributes with objects inside are kept only as
    `JsonMember`s.
    """
    fields: Fields = Fields()
    entry_names: tuple[str, ...] = ()
    """Prefixes of the names of spans that may be the entry span of an invocation."""
    before: tuple[str, ...] = ()
    """Names of dialects that are asked after this one, because they also match some of its spans.
    The names are those of the entry points. Third-party dialects are asked first anyway.
    """
    outranks_conventions: bool = False
    """Whether its own field paths take precedence over those of the GenAI conventions."""
    content_setting: str = ""
    """The setting that makes the instrumentation record content, as alerts quote it."""
    shows_tools: bool = True
    """Whether tool calls are recorded at all."""
    beside_run: bool = False
    """Whether the span of an agent may be a sibling of the agent's run instead of enclosing it."""
    ends_before_run: bool = False
    """Whether the span of an agent may end when its run begins, because the answer is streamed. The
    model and tool calls of the run are then later siblings of it.
    """
    final_tools: tuple[str, ...] = ()
    """Names of the framework's own tools with which an agent ends its run. They are no work."""
    loses_parent: bool = False
    """Whether the run of an agent that is called as a tool is a sibling of its caller or of the
    call instead of a child of the call.
    """
    adds_up_usage: Callable[[Span], bool] | None = None
    """For instrumentations whose model calls state the tokens of all calls of a loop so far.
    Receives the span of a tool that ran between two model calls. Returns whether both calls are of
    one loop, so that the second states the tokens of both. With this hook, a model call inside
    another is one more call and not the same one.
    """
    calls_in_next_prompt: bool = False
    """Whether the output of a model call lacks its tool calls. The prompt of the next model call of
    the agent holds them.
    """
    states_last_round: bool = False
    """Whether a model span around tool calls, or beside those that ran during it, encloses several
    rounds with the model, and states the tokens of the last one.
    """
    totals_leave_out_agents: bool = False
    """Whether the total of an agent leaves out the tokens of the agents that it calls."""
    may_be_entry: Callable[[Span], bool] | None = None
    """Whether a span may be the entry span of an invocation, if `entry_names` cannot tell. Called
    for every arriving span, or every span with one of the `scopes`, so it must not decode
    attributes.
    """
    name_of: Callable[[Span], str | None] | None = None
    """The name of the agent, workflow or tool that a span represents, if no field has it."""
    function_name: Callable[[str], str] | None = None
    """Converts the name by which models know a tool into the name of the function."""
    messages: MessageReader | None = None
    """Reads the message attributes of this dialect, if their shape alone is ambiguous."""
    unwrap_arguments: Callable[[Any], Any] | None = None
    """Removes what the framework wraps around the decoded arguments of a tool. Returns unwrapped
    values unchanged.
    """
    unwrap_result: Callable[[Any], Result] | None = None
    """Removes what the framework wraps around decoded results, both on spans and in prompts, and
    returns the error that the wrapping reports.
    """
    failure: Callable[[Span], str | None] | None = None
    """The error of a span whose status and error type do not report it."""
    copied_error: Callable[[Span], bool] | None = None
    """Whether the error in the status of a span is that of another span, which a processor has
    copied. Called for spans with such a status.
    """
    written_call: Callable[[Attributes], tuple[Attributes, Attributes]] | None = None
    """For instrumentations that write a model call onto the span around it, whoever made that.
    Divides the attributes of such a span, which matches and has none of the `scopes` and `names`,
    into its own and those of the call.
    """
    empty_means_not_captured: Callable[[Sequence[Span]], FieldPaths] | None = None
    """Receives the model spans of an invocation. Returns the field paths at which `{}` means that
    content was not captured, and not that there is none.
    """

    def __post_init__(self) -> None:
        """Refuse a text where a tuple belongs: `("key")` without its comma would be read by letter.

        Raises `TypeError`.
        """
        for part in (self, self.fields):
            for one in fields(part):
                value = getattr(part, one.name)
                if isinstance(value, str | bytes) and one.name not in _TEXTS:
                    raise TypeError(f"{one.name}: found {value!r}, expected a tuple")

"""OpenAI Agents as instrumented by Pydantic Logfire.

Recognised by the scope `logfire.openai_agents`. The name of a span is the template of a message
(`Agent run: {name!r}`), and the names of agents and tools are in the attribute `name`, which other
spans have, too. What is absent is `null` as text.

Only model calls of the Responses API state an operation. Their prompt is `raw_input`, and
`response` is the whole response; those of the chat API have `input` and `output`, as tools have.
Nobody states what the agent was asked and what it answered. If a run fails, the span of the whole
trace does not. A text with a word like `password` is scrubbed unless Logfire is told not to; the
attribute `logfire.scrubbed` tells so. Other instrumentations of Logfire follow the conventions, or
are those of the framework itself.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, JsonMember
from pathgauge.collector.core.invocations.dialects.openllmetry import read_items
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "logfire.openai_agents"

_TEMPLATE, _NAME, _GROUP = "logfire.msg_template", "name", "group_id"
_TRACE, _AGENT = "OpenAI Agents trace: ", "Agent run: "

_SCRUBBED = "[Scrubbed due to "

_KINDS: tuple[tuple[str, Kind], ...] = (
    (_TRACE, "workflow"),
    (_AGENT, "agent"),
    ("Function: ", "tool"),
    ("Handoff: ", "handoff"),
    ("Responses API", "model"),
    ("Chat completion", "model"),
)
"""Kinds by the start of the template. Turns and guardrails only connect other spans."""


def matches(span: Span) -> bool:
    """Spans of that scope."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """By the template, which a processor may have removed from the name of the span."""
    template = str(span.attributes.get(_TEMPLATE) or span.name)
    return next((kind for start, kind in _KINDS if template.startswith(start)), "other")


def name_of(span: Span) -> str | None:
    """The name of an agent, a workflow or a tool."""
    return as_id(span.attributes.get(_NAME))


def _written(span: Span, key: str) -> Any:
    """A text, unless it stands for nothing or for what was scrubbed."""
    written = span.attributes.get(key) if matches(span) else None
    if written == "null" or _is_scrubbed(written):
        return None
    return written


def _of(kind_of_span: Kind, key: str) -> Derived:
    """An attribute that tools and model calls have, of one of these."""
    return Derived(lambda span: _written(span, key) if kind(span) == kind_of_span else None)


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages of either API, of which Logfire scrubs texts that look like secrets."""
    return tuple(map(_without_scrubbed, read_items(value, role)))


def _without_scrubbed(message: Message) -> Message:
    return message._replace(text=None, hidden=True) if _is_scrubbed(message.text) else message


def _is_scrubbed(value: Any) -> bool:
    return isinstance(value, str) and value.startswith(_SCRUBBED)


LOGFIRE = Dialect(
    name="logfire",
    before=("langsmith",),
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    reads=(_TEMPLATE, _NAME),
    entry_names=(_TRACE, _AGENT),
    name_of=name_of,
    content_setting="RunConfig(trace_include_sensitive_data=True)",
    messages=read_messages,
    fields=Fields(
        conversation_id=(Derived(lambda span: _written(span, _GROUP), reads=(_GROUP,)),),
        arguments=(_of("tool", "input"),),
        result=(_of("tool", "output"),),
        input_messages=("raw_input", _of("model", "input")),
        output_messages=(JsonMember("response", ("output",)), _of("model", "output")),
        tool_definitions=(JsonMember("response", ("tools",)),),
    ),
)

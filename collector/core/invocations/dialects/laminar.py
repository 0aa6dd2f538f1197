"""Laminar (`lmnr`): its decorator, and its instrumentations of OpenAI and the OpenAI Agents SDK.

Recognised by `lmnr.span.type`, which knows models and tools only, and which JavaScript leaves out
unless it is given; then by Laminar's own tracer. Inputs and outputs are JSON in `lmnr.span.input`
and `.output`; metadata is under `lmnr.association.properties.`. A decorated function that is no
tool may be anything: the outermost one is the run, with its name. An agent of OpenAI Agents is
known by its input, which describes it. browser-use names its run after a method, and wraps what it
writes (`browser_use`). In JavaScript only the recorded exception tells that a function failed.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects import browser_use
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.exceptions import recorded_exception
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, JsonMember
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.unwrap import texts_of_arguments
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.otlp.spans import Span

_SCOPE = "lmnr"
_KIND, _HANDOFF = "lmnr.span.type", "openai.agents.handoff.to"
_INPUT, _OUTPUT = "lmnr.span.input", "lmnr.span.output"
_PROPERTIES = "lmnr.association.properties."
_AGENT_NAME, _OUTPUT_TYPE = JsonMember(_INPUT, ("name",)), JsonMember(_INPUT, ("output_type",))

_KINDS: dict[str, Kind] = {"LLM": "model", "TOOL": "tool"}


def matches(span: Span) -> bool:
    """Spans with a type, and those of Laminar's own tracer."""
    return _KIND in span.attributes or _is_own(span)


def kind(span: Span) -> Kind | None:
    """By type. The spans of other instrumentations may have one, too."""
    attributes = span.attributes
    if _HANDOFF in attributes:
        return "handoff"
    known = _KINDS.get(str(attributes.get(_KIND)))
    if known is not None or not _is_own(span):
        return known
    if _OUTPUT_TYPE.find(span) is not None and _AGENT_NAME.find(span) == span.name:
        return "agent"
    return "chain"


def name_of(span: Span) -> str | None:
    """The name of the function, unless it is that of a method of browser-use."""
    return None if span.name == browser_use.RUN else as_id(span.name)


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages of any form, those of browser-use without what is around them."""
    return tuple(map(browser_use.bare_message, parse_messages(value, role)))


def failure(span: Span) -> str | None:
    """The recorded exception of a decorated function."""
    return recorded_exception(span) if _is_own(span) else None


def _is_own(span: Span) -> bool:
    return span.scope.name.startswith(_SCOPE)


def _texts_or_messages(span: Span) -> Any:
    return texts_of_arguments(decoded(span.attributes.get(_INPUT)))


LAMINAR = Dialect(
    name="laminar",
    before=("openllmetry",),
    scopes=(_SCOPE,),
    key_prefixes=(_KIND,),
    matches=matches,
    kind=kind,
    reads=(_KIND, _HANDOFF, _AGENT_NAME, _OUTPUT_TYPE),
    may_be_entry=lambda span: span.parent_id is None,
    name_of=name_of,
    messages=read_messages,
    unwrap_arguments=browser_use.unwrap_arguments,
    unwrap_result=browser_use.unwrap_result,
    final_tools=(browser_use.FINAL_ACTION,),
    failure=failure,
    content_setting="LMNR_TRACE_CONTENT=true",
    fields=Fields(
        conversation_id=(_PROPERTIES + "session_id",),
        user_id=(_PROPERTIES + "user_id",),
        arguments=(_INPUT,),
        result=(_OUTPUT,),
        agent_input=(Derived(_texts_or_messages),),
        agent_output=(_OUTPUT,),
    ),
)

"""LangChain4j in Quarkus, by the telemetry of its extension.

Recognised by names in the scope of Quarkus: `langchain4j.aiservices.<interface>.<method>` is a run
of an agent, `langchain4j.tools.<name>` the call of a tool, and `completion <model>` a model call.
No status is set: only an exception tells of a failure. A prompt is the texts of its messages, each
on a new line, so that what the user asked is known only if it is all of it. An answer is text.

The span of an agent that streams ends when the stream begins. Below the span of an HTTP request,
the model calls and tools are then its siblings. So an agent is no entry: it must not be read alone.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, InEvent
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "io.quarkus.opentelemetry"

_AGENT, _TOOL, _MODEL = "langchain4j.aiservices.", "langchain4j.tools.", "completion "
_KINDS: dict[str, Kind] = {_AGENT: "agent", _TOOL: "tool", _MODEL: "model"}
_REQUEST_MODEL = "gen_ai.request.model"
_PROMPT, _ANSWER, _RESULT = "gen_ai.prompt", "gen_ai.completion", "gen_ai.tool.call.result"
_FINISH = "gen_ai.response.finish_reasons"
_OUTCOMES = (_RESULT, _FINISH)
_EXCEPTION_TYPE = InEvent("exception", "exception.type")


def matches(span: Span) -> bool:
    """By the name. Other spans of an application may be completions, too."""
    if span.scope.name != SCOPE:
        return False
    if span.name.startswith(_MODEL):
        return _REQUEST_MODEL in span.attributes
    return span.name.startswith((_AGENT, _TOOL))


def kind(span: Span) -> Kind | None:
    """By the name."""
    return next((kind for prefix, kind in _KINDS.items() if span.name.startswith(prefix)), None)


def name_of(span: Span) -> str | None:
    """The interface that is the agent. Its methods are ways to ask it."""
    if not span.name.startswith(_AGENT):
        return None
    return span.name.removeprefix(_AGENT).rpartition(".")[0] or None


def _error_type(span: Span) -> Any:
    """The type of the exception of a span without an outcome. A contributor of attributes that
    fails after the outcome is recorded in the same way.
    """
    if not matches(span) or any(key in span.attributes for key in _OUTCOMES):
        return None
    return _EXCEPTION_TYPE.find(span)


def _question(span: Span) -> Any:
    """The prompt, as a message of the user, if it cannot have any other message."""
    prompt = span.attributes.get(_PROMPT) if matches(span) else None
    if not isinstance(prompt, str) or "\n" in prompt:
        return None
    return {"role": "user", "content": prompt}


def _answer(span: Span) -> Any:
    """The answer, as a message: it is text, also if it looks like JSON."""
    text = span.attributes.get(_ANSWER) if matches(span) else None
    return None if text is None else {"role": "assistant", "content": text}


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages, and no texts: those of a prompt have more than one author."""
    return () if isinstance(value, str) else parse_messages(value, role)


QUARKUS = Dialect(
    name="quarkus-langchain4j",
    before=("langsmith",),
    names=tuple(_KINDS),
    matches=matches,
    kind=kind,
    reads=(_REQUEST_MODEL,),
    name_of=name_of,
    messages=read_messages,
    outranks_conventions=True,
    ends_before_run=True,
    content_setting="quarkus.langchain4j.tracing.include-prompt=true, include-completion=true, "
    "include-tool-arguments=true, include-tool-result=true",
    fields=Fields(
        input_messages=(Derived(_question),),
        output_messages=(Derived(_answer),),
        error_type=(Derived(_error_type, reads=(_FINISH,)),),
    ),
)

"""Haystack's own tracing: in its core up to version 2, in `opentelemetry-haystack` from 3 on.

Recognised by span names `haystack.*`, as the scope is the user's choice. Up to 2 a run of an agent
consists of components, a chat generator and a `ToolInvoker` that carries out all calls of a message
in one span; from 3 on it consists of steps with a span for each call, without its id. Messages are
JSON in `haystack.agent.input` and so on, when content tracing is on. Usage is what the provider
said, in the `meta` of a reply. Pipelines are links of the tree: whatever agents and generators they
run speaks for itself.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, Member, members
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.otlp.spans import Span

_AGENT, _COMPONENT, _TYPE = (
    "haystack.agent.run",
    "haystack.component.run",
    "haystack.component.type",
)
_INPUT, _STEP_INPUT = "haystack.component.input", "haystack.agent.step.llm.input"
_OUTPUT, _STEP_OUTPUT = "haystack.component.output", "haystack.agent.step.llm.output"
_TOOL_OUTPUT, _TOOL_ERROR = "haystack.agent.step.tool.output", "haystack.tool.error"

_KINDS: dict[str, Kind] = {
    _AGENT: "agent",
    "haystack.agent.step.llm": "model",
    "haystack.agent.step.tool": "tool",
    "haystack.chat_generator.run": "model",
}


def _in_reply(*path: str) -> tuple[Member, ...]:
    return tuple(Member(key, ("replies", 0, "meta", *path)) for key in (_OUTPUT, _STEP_OUTPUT))


def matches(span: Span) -> bool:
    """Spans with the names that Haystack gives."""
    return span.name.startswith("haystack.")


def kind(span: Span) -> Kind | None:
    """By name; components by their type."""
    if span.name != _COMPONENT:
        return _KINDS.get(span.name)
    component = str(span.attributes.get(_TYPE))
    if component.endswith("Generator") and not component.endswith("ImageGenerator"):
        return "model"
    return "agent" if component == "Agent" else "tools" if component == "ToolInvoker" else "other"


def name_of(span: Span) -> str | None:
    """The name of an agent in its pipeline; on its own it has none."""
    return (
        as_id(span.attributes.get("haystack.component.name")) if span.name == _COMPONENT else None
    )


def failure(span: Span) -> str | None:
    """Why a tool failed, with which its agent may go on."""
    if not span.attributes.get(_TOOL_ERROR):
        return None
    return as_id(members(span.attributes.get(_TOOL_OUTPUT)).get("error")) or "error"


def _result(span: Span) -> Any:
    """What a tool returned; of one that failed, the output is the error."""
    return None if span.attributes.get(_TOOL_ERROR) else span.attributes.get(_TOOL_OUTPUT)


HAYSTACK = Dialect(
    name="haystack",
    names=("haystack.",),
    matches=matches,
    kind=kind,
    entry_names=(_AGENT,),
    name_of=name_of,
    failure=failure,
    fields=Fields(
        tool_name=("haystack.tool.name",),
        arguments=("haystack.agent.step.tool.input",),
        result=(Derived(_result),),
        response_model=_in_reply("model"),
        input_tokens=(*_in_reply("usage", "prompt_tokens"), *_in_reply("usage", "input_tokens")),
        output_tokens=(
            *_in_reply("usage", "completion_tokens"),
            *_in_reply("usage", "output_tokens"),
        ),
        input_messages=(_INPUT, _STEP_INPUT),
        output_messages=(_OUTPUT, _STEP_OUTPUT),
        agent_input=("haystack.agent.input",),
        agent_output=("haystack.agent.output",),
        tool_definitions=(
            "haystack.agent.tools",
            Member(_INPUT, ("tools",)),
            Member(_STEP_INPUT, ("tools",)),
        ),
    ),
)

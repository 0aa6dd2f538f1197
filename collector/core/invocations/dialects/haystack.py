"""Haystack, own telemetry: in its core up to version 2, in `opentelemetry-haystack` from 3. And
Haystack as instrumented by OpenInference.

Recognised by span names `haystack.*`, because the scope is the choice of the user. Up to 2, the run
of an agent consists of components: a chat generator, and a `ToolInvoker` that executes all calls of
a message in one span. From 3 it consists of steps with a span for each call, without the call id.
Messages are JSON in `haystack.agent.input` and similar attributes if content tracing is on. Token
counts are those of the provider, in the `meta` of a reply. Pipelines only connect other spans:
their agents and generators have spans of their own.

OpenInference names spans after the classes of components. It writes messages as the `repr` of
Haystack's dataclasses; the usual attributes for messages lack the ids and results of calls. From 3
on, it sees neither the generators nor the tools of an agent, and no agent outside of a pipeline.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, JsonMember, members
from pathgauge.collector.core.invocations.dialects.openinference import (
    HAYSTACK as OPENINFERENCE_SCOPE,
)
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.otlp.spans import Span

_AGENT, _COMPONENT = "haystack.agent.run", "haystack.component.run"
_TYPE, _NAME = "haystack.component.type", "haystack.component.name"
_INPUT, _STEP_INPUT = "haystack.component.input", "haystack.agent.step.llm.input"
_OUTPUT, _STEP_OUTPUT = "haystack.component.output", "haystack.agent.step.llm.output"
_TOOL_OUTPUT, _TOOL_ERROR = "haystack.agent.step.tool.output", "haystack.tool.error"

_KINDS: dict[str, Kind] = {
    _AGENT: "agent",
    "haystack.agent.step.llm": "model",
    "haystack.agent.step.tool": "tool",
    "haystack.chat_generator.run": "model",
}
_COMPONENT_KINDS: dict[str, Kind] = {"Agent": "agent", "ToolInvoker": "tools"}


def _in_reply(*path: str) -> tuple[JsonMember, ...]:
    return tuple(JsonMember(key, ("replies", 0, "meta", *path)) for key in (_OUTPUT, _STEP_OUTPUT))


def matches(span: Span) -> bool:
    """By the names that Haystack gives."""
    return span.name.startswith("haystack.")


def kind(span: Span) -> Kind | None:
    """By name, components by their type."""
    if span.name != _COMPONENT:
        return _KINDS.get(span.name)
    component = str(span.attributes.get(_TYPE))
    if component.endswith("Generator") and not component.endswith("ImageGenerator"):
        return "model"
    return _COMPONENT_KINDS.get(component, "other")


def name_of(span: Span) -> str | None:
    """The name of an agent in its pipeline. An agent outside of a pipeline has none."""
    if span.name == _COMPONENT:
        return as_id(span.attributes.get(_NAME))
    return None


def failure(span: Span) -> str | None:
    """The error of a tool. Its agent may continue after it."""
    if not span.attributes.get(_TOOL_ERROR):
        return None
    return as_id(members(span.attributes.get(_TOOL_OUTPUT)).get("error")) or "error"


def _result(span: Span) -> Any:
    """The result of a tool. The output of a failed tool is the error, not a result."""
    if span.attributes.get(_TOOL_ERROR):
        return None
    return span.attributes.get(_TOOL_OUTPUT)


HAYSTACK = Dialect(
    name="haystack",
    before=("langsmith",),
    names=("haystack.",),
    matches=matches,
    kind=kind,
    reads=(_TYPE, _NAME, _TOOL_ERROR),
    entry_names=(_AGENT,),
    name_of=name_of,
    content_setting="HAYSTACK_CONTENT_TRACING_ENABLED=true",
    failure=failure,
    fields=Fields(
        tool_name=("haystack.tool.name",),
        arguments=("haystack.agent.step.tool.input",),
        result=(Derived(_result),),
        response_model=_in_reply("model"),
        input_tokens=(*_in_reply("usage", "prompt_tokens"), *_in_reply("usage", "input_tokens")),
        cached_tokens=_in_reply("usage", "prompt_tokens_details", "cached_tokens"),
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
            JsonMember(_INPUT, ("tools",)),
            JsonMember(_STEP_INPUT, ("tools",)),
        ),
    ),
)

_CLASSES: dict[str, Kind] = {"Agent.run": "agent", "ToolInvoker.run": "tools"}


def kind_of_class(span: Span) -> Kind | None:
    """By the class of a component that the stated kind does not tell from others."""
    return _CLASSES.get(span.name)


OPENINFERENCE_HAYSTACK = Dialect(
    name="openinference",
    before=("openinference",),
    scopes=(OPENINFERENCE_SCOPE,),
    matches=lambda span: span.scope.name == OPENINFERENCE_SCOPE,
    kind=kind_of_class,
    fields=Fields(
        input_messages=(JsonMember("input.value", ("messages",)),),
        output_messages=(
            JsonMember("output.value", ("replies",)),
            JsonMember("output.value", ("tool_messages",)),
        ),
        agent_output=(JsonMember("output.value", ("messages",)),),
    ),
)
"""Messages as they were, and agents; the rest is as in all instrumentations of OpenInference."""

"""Google's Agent Development Kit, own telemetry: schema 1 (up to 2.12, or pinned) and schema 2
(from 2.13).

Recognised by the scope `gcp.vertex.agent`. Schema 1 is a tree `invocation > invoke_agent X >
call_llm [> generate_content]` (`agent_run [X]` up to 1.14) with tools and sub-agents below model
spans. Its content is Google GenAI JSON in
`gcp.vertex.agent.{llm_request,llm_response,tool_call_args,tool_response}`; `{}` there means that
capture was off. Schema 2 is the GenAI conventions with `invoke_workflow` on top. Parallel tool
calls add a span `execute_tool (merged)` that is not a call.

OpenInference adds spans of its own around these and moves others into its own scope. From 2.13 on
it writes the details of all model calls onto the span of their agent, each over the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import FieldPaths, JsonMember
from pathgauge.collector.core.invocations.dialects.openinference import (
    KIND,
    OPENINFERENCE,
    read_messages as read_flattened,
)
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.invocations.messages.written_results import Result
from pathgauge.collector.core.otlp.spans import Span

SCOPE, OPENINFERENCE_SCOPE = "gcp.vertex.agent", "openinference.instrumentation.google_adk"

_REQUEST = "gcp.vertex.agent.llm_request"
_ARGUMENTS = "gcp.vertex.agent.tool_call_args"
_RESULT = "gcp.vertex.agent.tool_response"

_RESPONSE_KEYS = frozenset({"id", "name", "response"})


def matches(span: Span) -> bool:
    """Spans of ADK's own tracer, including those that OpenInference only moved to its scope."""
    if span.scope.name == SCOPE:
        return True
    return span.scope.name == OPENINFERENCE_SCOPE and KIND not in span.attributes


def kind(span: Span) -> Kind | None:
    """By name, because schema 1 writes no operation."""
    if span.name == "execute_tool (merged)":
        return "dropped"
    if span.attributes.get("gen_ai.tool.name") == "(merged tools)":
        return "dropped"
    if span.name == "invocation":
        return "workflow"
    if span.name.startswith(("invoke_agent ", "agent_run [")):
        return "agent"
    if span.name == "call_llm":
        return "model"
    return None


def empty_means_not_captured(model_spans: Sequence[Span]) -> FieldPaths:
    """A tool without arguments also has `{}`, so the prompts tell whether capture was off."""
    requests = [span.attributes[_REQUEST] for span in model_spans if _REQUEST in span.attributes]
    if requests and all(request == "{}" for request in requests):
        return (_ARGUMENTS, _RESULT)
    return ()


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages. The response of a model that said nothing has no parts, or no content at all."""
    if role == "assistant" and isinstance(value, dict) and "role" not in value:
        content = value.get("content", {} if "finish_reason" in value else None)
        if isinstance(content, dict) and not content.get("parts"):
            value = {**value, "content": {"role": "model", "parts": []}}
    return read_flattened(value, role)


def unwrap_result(value: Any) -> Result:
    """ADK wraps every result that is not an object in `result`. OpenInference writes the whole
    response around it.
    """
    if isinstance(value, dict) and value.keys() == _RESPONSE_KEYS:
        value = value["response"]
    wrapped = (
        isinstance(value, dict)
        and value.keys() == {"result"}
        and not isinstance(value["result"], dict)
    )
    return Result(decoded(value["result"]) if wrapped else value)


ADK = Dialect(
    name="adk",
    before=("langsmith",),
    scopes=(SCOPE, OPENINFERENCE_SCOPE),
    matches=matches,
    kind=kind,
    reads=(KIND,),
    content_setting="OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=SPAN_AND_EVENT",
    entry_names=("invocation", "agent_run"),
    empty_means_not_captured=empty_means_not_captured,
    messages=read_messages,
    unwrap_result=unwrap_result,
    fields=Fields(
        conversation_id=("gcp.vertex.agent.session_id",),
        arguments=(_ARGUMENTS,),
        result=(_RESULT,),
        input_messages=(_REQUEST,),
        output_messages=("gcp.vertex.agent.llm_response",),
        tool_definitions=(JsonMember(_REQUEST, ("config", "tools")),),
    ),
)

OPENINFERENCE_ADK = replace(
    OPENINFERENCE,
    before=("openinference",),
    scopes=(OPENINFERENCE_SCOPE,),
    matches=lambda span: span.scope.name == OPENINFERENCE_SCOPE and OPENINFERENCE.matches(span),
    unwrap_result=unwrap_result,
)
"""The spans that OpenInference adds."""

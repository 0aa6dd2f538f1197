"""Google's Agent Development Kit, its own telemetry: schema 1 (up to 2.12, or pinned) and schema 2
(from 2.13 on).

Recognised by the scope `gcp.vertex.agent`. Schema 1 is a tree `invocation > invoke_agent X >
call_llm [> generate_content]` (`agent_run [X]` up to 1.14), in which tools and sub-agents hang
under model spans; content is Google GenAI JSON in
`gcp.vertex.agent.{llm_request,llm_response,tool_call_args,tool_response}`, where `{}` means that
capture was off. Schema 2 is the GenAI conventions with `invoke_workflow` on top. Parallel calls add
an `execute_tool (merged)` span for what is no call.

OpenInference puts spans of its own around these, takes others over into its scope, and from 2.13 on
writes the details of all model calls onto the span of their agent, one over the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import FieldPaths, Member
from pathgauge.collector.core.invocations.dialects.openinference import KIND, OPENINFERENCE
from pathgauge.collector.core.invocations.messages.unwrap import Result
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.otlp.spans import Span

SCOPE, TAKEN_OVER = "gcp.vertex.agent", "openinference.instrumentation.google_adk"
_REQUEST, _ARGUMENTS, _RESULT = (
    "gcp.vertex.agent.llm_request",
    "gcp.vertex.agent.tool_call_args",
    "gcp.vertex.agent.tool_response",
)

_RESPONSE = frozenset({"id", "name", "response"})


def matches(span: Span) -> bool:
    """Spans of ADK's own tracer, and those that OpenInference took over without making them its
    own.
    """
    return span.scope.name == SCOPE or (
        span.scope.name == TAKEN_OVER and KIND not in span.attributes
    )


def kind(span: Span) -> Kind | None:
    """Names decide where schema 1 gives no operation."""
    if (
        span.attributes.get("gen_ai.tool.name") == "(merged tools)"
        or span.name == "execute_tool (merged)"
    ):
        return "dropped"
    if span.name == "invocation":
        return "workflow"
    if span.name.startswith(("invoke_agent ", "agent_run [")):
        return "agent"
    return "model" if span.name == "call_llm" else None


def empty_means_not_captured(model_spans: Sequence[Span]) -> FieldPaths:
    """A tool called without arguments shows `{}` too, so the model spans tell whether capture was
    off.
    """
    requests = [span.attributes[_REQUEST] for span in model_spans if _REQUEST in span.attributes]
    return (
        (_ARGUMENTS, _RESULT) if requests and all(request == "{}" for request in requests) else ()
    )


def unwrap_result(value: Any) -> Result:
    """What a function returned: ADK puts into `result` whatever is no object, and OpenInference
    writes all of the response.
    """
    if isinstance(value, dict) and value.keys() == _RESPONSE:
        value = value["response"]
    wrapped = (
        isinstance(value, dict)
        and value.keys() == {"result"}
        and not isinstance(value["result"], dict)
    )
    return Result(decoded(value["result"]) if wrapped else value)


ADK = Dialect(
    name="adk",
    scopes=(SCOPE, TAKEN_OVER),
    matches=matches,
    kind=kind,
    entry_names=("invocation", "agent_run"),
    empty_means_not_captured=empty_means_not_captured,
    unwrap_result=unwrap_result,
    fields=Fields(
        conversation_id=("gcp.vertex.agent.session_id",),
        arguments=(_ARGUMENTS,),
        result=(_RESULT,),
        input_messages=(_REQUEST,),
        output_messages=("gcp.vertex.agent.llm_response",),
        tool_definitions=(Member(_REQUEST, ("config", "tools")),),
    ),
)

OPENINFERENCE_ADK = replace(
    OPENINFERENCE,
    scopes=(TAKEN_OVER,),
    matches=lambda span: span.scope.name == TAKEN_OVER and OPENINFERENCE.matches(span),
    unwrap_result=unwrap_result,
)
"""The spans that OpenInference made its own."""

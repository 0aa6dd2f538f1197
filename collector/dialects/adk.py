"""Google's Agent Development Kit, its own telemetry: schema 1 (up to 2.12, or pinned) and schema 2 (from 2.13 on).

Recognised by the scope `gcp.vertex.agent`. Schema 1 is a tree `invocation > invoke_agent X > call_llm [> generate_content]`
(`agent_run [X]` up to 1.14), in which tools and sub-agents hang under model spans; content is Google GenAI JSON in
`gcp.vertex.agent.{llm_request,llm_response,tool_call_args,tool_response}`, where `{}` means that capture was off. Schema 2
is the GenAI conventions with `invoke_workflow` on top. Parallel calls add an `execute_tool (merged)` span for what is no call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from collector.dialects.dialect import Dialect, Fields, Keys, Kind
from collector.dialects.messages import Message, parse_messages
from collector.spans import Span

SCOPE = "gcp.vertex.agent"
_REQUEST, _ARGUMENTS, _RESULT = "gcp.vertex.agent.llm_request", "gcp.vertex.agent.tool_call_args", "gcp.vertex.agent.tool_response"


def speaks(span: Span) -> bool:
    """Spans of ADK's own tracer."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """Names decide where schema 1 gives no operation."""
    if span.attributes.get("gen_ai.tool.name") == "(merged tools)" or span.name == "execute_tool (merged)":
        return "dropped"
    if span.name == "invocation":
        return "workflow"
    if span.name.startswith("agent_run ["):
        return "agent"
    return "model" if span.name == "call_llm" else None


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """The `contents` of a request, or the `content` of a response; `{}` is nothing captured."""
    if not isinstance(value, dict):
        return ()
    if "contents" in value:
        return parse_messages(value["contents"], role)
    return parse_messages(value["content"], role) if isinstance(value.get("content"), dict) else ()


def muted(model_spans: Sequence[Span]) -> Keys:
    """A tool called without arguments shows `{}` too, so the model spans tell whether capture was off."""
    requests = [span.attributes[_REQUEST] for span in model_spans if _REQUEST in span.attributes]
    return (_ARGUMENTS, _RESULT) if requests and all(request == "{}" for request in requests) else ()


ADK = Dialect(
    name="adk",
    speaks=speaks,
    kind=kind,
    anchors=("invocation", "agent_run"),
    messages=read_messages,
    muted=muted,
    fields=Fields(
        conversation_id=("gcp.vertex.agent.session_id",),
        arguments=(_ARGUMENTS,),
        result=(_RESULT,),
        input_messages=(_REQUEST,),
        output_messages=("gcp.vertex.agent.llm_response",),
    ),
)

"""MLflow Tracing: its decorators and its instrumentations of LangChain, OpenAI, the OpenAI Agents
SDK and others.

Recognised by `mlflow.spanType`, or by its scope. Every attribute is JSON, texts included. Inputs
and outputs of everything are in `mlflow.spanInputs` and `mlflow.spanOutputs`, LangChain's metadata
in `metadata`. A trace with tags loses its root, since newer SDKs of OpenTelemetry do not let MLflow
write them on it. With MLFLOW_ENABLE_OTEL_GENAI_SEMCONV, model calls, agents and tools are written
as in the conventions, and of all else only the type is left, as operation and name of the span.
"""

from __future__ import annotations

import re

from pathgauge.collector.core.invocations.dialects import langgraph
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, Member, members
from pathgauge.collector.core.invocations.messages.unwrap import callable_arguments
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.otlp.spans import Span

KIND, SCOPE = "mlflow.spanType", "mlflow."

_INPUT, _OUTPUT, _USAGE = "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.chat.tokenUsage"
_KINDS: dict[str, Kind] = {
    "AGENT": "agent",
    "WORKFLOW": "workflow",
    "CHAT_MODEL": "model",
    "LLM": "model",
    "TOOL": "tool",
}
_RUNNER = "AgentRunner.run"
_METHOD = re.compile(r"[A-Z]\w*\.\w+")


def matches(span: Span) -> bool:
    """Spans with a type, and those of its tracer."""
    return KIND in span.attributes or span.scope.name.startswith(SCOPE)


def kind(span: Span) -> Kind | None:
    """The type; runs of LangChain by their metadata."""
    attributes = span.attributes
    named = str(decoded(attributes.get(KIND)) or attributes.get("gen_ai.operation.name"))
    if named == "CHAIN":
        is_handoff = span.name == "Handoff" and "from_agent" in members(attributes.get(_INPUT))
        return (
            "handoff"
            if is_handoff
            else langgraph.kind(span.name, members(attributes.get("metadata")))
        )
    if span.name.startswith(_RUNNER):
        return "workflow"
    return _KINDS.get(named, "other" if KIND in attributes else None)


def name_of(span: Span) -> str | None:
    """The name of the span, unless it is that of a method, as where frameworks are instrumented by
    class.
    """
    return None if _METHOD.fullmatch(span.name) else as_id(span.name)


MLFLOW = Dialect(
    name="mlflow",
    scopes=(SCOPE,),
    byte_marks=(KIND.encode(),),
    matches=matches,
    kind=kind,
    may_be_entry=lambda span: (
        span.parent_id is None or b'"AGENT"' in span.raw or langgraph.may_be_entry(span)
    ),
    name_of=name_of,
    unwrap_arguments=callable_arguments,
    fields=Fields(
        agent_name=(
            Member("metadata", (langgraph.AGENT_NAME,)),
            Derived(
                lambda span: langgraph.enclosing_graph(
                    members(span.attributes.get("metadata")).get(langgraph.PATH)
                )
            ),
        ),
        conversation_id=(
            Member("mlflow.trace.session", ()),
            Member("metadata", (langgraph.THREAD,)),
        ),
        user_id=(Member("mlflow.trace.user", ()),),
        call_id=(Member("tool_call_id", ()),),
        arguments=(_INPUT,),
        result=(_OUTPUT,),
        response_model=(Member("mlflow.llm.model", ()), Member("model", ())),
        input_tokens=(Member(_USAGE, ("input_tokens",)), Member("usage", ("input_tokens",))),
        output_tokens=(Member(_USAGE, ("output_tokens",)), Member("usage", ("output_tokens",))),
        total_input_tokens=(Member(_USAGE, ("input_tokens",)),),
        total_output_tokens=(Member(_USAGE, ("output_tokens",)),),
        input_messages=(_INPUT,),
        output_messages=(_OUTPUT,),
        agent_input=(_INPUT,),
        agent_output=(_OUTPUT,),
        tool_definitions=("mlflow.chat.tools",),
    ),
)

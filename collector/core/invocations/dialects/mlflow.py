"""MLflow Tracing: its decorators and its instrumentations of LangChain, OpenAI, the OpenAI Agents
SDK and others.

Recognised by `mlflow.spanType`, or by its scope. Every attribute is JSON, including texts. Inputs
and outputs are in `mlflow.spanInputs` and `mlflow.spanOutputs`, LangChain's metadata in `metadata`.
A trace with tags loses its root span, because newer OpenTelemetry SDKs do not let MLflow write them
on it. With MLFLOW_ENABLE_OTEL_GENAI_SEMCONV, model calls, agents and tools follow the conventions;
other spans only keep the type, as their operation and name.

The streamed reply of an OpenAI client lacks its tool calls and says that the model stopped. The
next prompt has the calls.
"""

from __future__ import annotations

import re
from typing import Any

from pathgauge.collector.core.invocations.dialects import langgraph
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, JsonMember, members
from pathgauge.collector.core.invocations.messages.unwrap import callable_arguments
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.otlp.spans import Span

KIND, SCOPE = "mlflow.spanType", "mlflow."

_INPUT, _OUTPUT, _USAGE = "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.chat.tokenUsage"
_METADATA, _OPERATION, _HANDOFF_FROM = "metadata", "gen_ai.operation.name", "from_agent"
_KINDS: dict[str, Kind] = {
    "AGENT": "agent",
    "WORKFLOW": "workflow",
    "CHAT_MODEL": "model",
    "LLM": "model",
    "TOOL": "tool",
}
_STREAM = JsonMember(_INPUT, ("stream",))
_MESSAGE = JsonMember(_OUTPUT, ("choices", 0, "message"))
_RUNNER = "AgentRunner.run"
_METHOD = re.compile(r"[A-Z]\w*\.\w+")


def matches(span: Span) -> bool:
    """Spans with a type, and all spans of its tracer."""
    return KIND in span.attributes or span.scope.name.startswith(SCOPE)


def kind(span: Span) -> Kind | None:
    """By type, LangChain runs by their metadata."""
    attributes = span.attributes
    named = str(decoded(attributes.get(KIND)) or attributes.get(_OPERATION))
    if named == "CHAIN":
        if span.name == "Handoff" and _HANDOFF_FROM in members(attributes.get(_INPUT)):
            return "handoff"
        metadata = members(attributes.get(_METADATA))
        if span.name == langgraph.TOOL_NODE == metadata.get(langgraph.NODE):
            return "tools"  # Prompts do not tell that a call failed, such as that of no known tool.
        return langgraph.kind(span.name, metadata)
    if span.name.startswith(_RUNNER):
        return "workflow"
    return _KINDS.get(named, "other" if KIND in attributes else None)


def name_of(span: Span) -> str | None:
    """The name of the span, unless it is a method, as in frameworks instrumented by class."""
    if _METHOD.fullmatch(span.name):
        return None
    return as_id(span.name)


def _graph_name(span: Span) -> str | None:
    return langgraph.enclosing_graph(members(span.attributes.get(_METADATA)).get(langgraph.PATH))


def _reply(span: Span) -> Any:
    """The output, unless it is a streamed reply that may lack its tool calls."""
    message = _MESSAGE.find(span) if _STREAM.find(span) is True else None
    if isinstance(message, dict) and not message.get("content") and not message.get("tool_calls"):
        return None
    return span.attributes.get(_OUTPUT)


def _may_be_entry(span: Span) -> bool:
    if span.parent_id is None or b'"AGENT"' in span.raw:
        return True
    return langgraph.may_be_entry(span)


MLFLOW = Dialect(
    name="mlflow",
    before=("openinference",),
    scopes=(SCOPE,),
    key_prefixes=(KIND,),
    matches=matches,
    kind=kind,
    reads=(
        KIND,
        _OPERATION,
        JsonMember(_INPUT, (_HANDOFF_FROM,)),
        JsonMember(_METADATA, (langgraph.NODE,)),
    ),
    may_be_entry=_may_be_entry,
    name_of=name_of,
    unwrap_arguments=callable_arguments,
    calls_in_next_prompt=True,
    fields=Fields(
        agent_name=(
            JsonMember(_METADATA, (langgraph.AGENT_NAME,)),
            Derived(_graph_name, reads=(JsonMember(_METADATA, (langgraph.PATH,)),)),
        ),
        conversation_id=(
            JsonMember("mlflow.trace.session", ()),
            JsonMember(_METADATA, (langgraph.THREAD,)),
        ),
        user_id=(JsonMember("mlflow.trace.user", ()),),
        call_id=(JsonMember("tool_call_id", ()),),
        arguments=(_INPUT,),
        result=(_OUTPUT,),
        response_model=(JsonMember("mlflow.llm.model", ()), JsonMember("model", ())),
        input_tokens=(
            JsonMember(_USAGE, ("input_tokens",)),
            JsonMember("usage", ("input_tokens",)),
        ),
        output_tokens=(
            JsonMember(_USAGE, ("output_tokens",)),
            JsonMember("usage", ("output_tokens",)),
        ),
        cached_tokens=(JsonMember(_USAGE, ("cache_read_input_tokens",)),),
        cache_write_tokens=(JsonMember(_USAGE, ("cache_creation_input_tokens",)),),
        total_input_tokens=(JsonMember(_USAGE, ("input_tokens",)),),
        total_output_tokens=(JsonMember(_USAGE, ("output_tokens",)),),
        input_messages=(_INPUT,),
        output_messages=(Derived(_reply),),
        agent_input=(_INPUT,),
        agent_output=(_OUTPUT,),
        tool_definitions=("mlflow.chat.tools",),
    ),
)

"""MLflow Tracing: its decorators and its instrumentations of LangChain, OpenAI, the OpenAI Agents
SDK and others.

Recognised by `mlflow.spanType`, or by its scope. Every attribute is JSON, including texts. Inputs
and outputs are in `mlflow.spanInputs` and `mlflow.spanOutputs`, LangChain's metadata in `metadata`.
A trace with tags loses its root span, because newer OpenTelemetry SDKs do not let MLflow write them
on it. With MLFLOW_ENABLE_OTEL_GENAI_SEMCONV, model calls, agents and tools follow the conventions;
other spans only keep the type, as their operation and name.

Frameworks that it instruments by class have names of methods, `Agent.run`; the `name` of the object
is an attribute. AutoGen's agents have theirs before the method, `clerk.run`, and an agent that runs
by itself has a second span inside, of the messages that it answers. Modules of DSPy state that they
are models, and what models write for them is a template. LlamaIndex prepares a call of a model in
a span that states it, too. Spans of other instrumentations that MLflow exports have no type: it is
`null`.

The streamed reply of an OpenAI client lacks its tool calls and says that the model stopped. The
next prompt has the calls.
"""

from __future__ import annotations

import re
from typing import Any

from pathgauge.collector.core.invocations.dialects import dspy, langgraph
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import (
    Derived,
    JsonMember,
    members,
    value_below,
)
from pathgauge.collector.core.invocations.dialects.llama_index import (
    unwrap_result as unwrap_llama_index,
)
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.unwrap import callable_arguments
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.invocations.messages.written_results import Result
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
_PRIVATE_METHOD = re.compile(r"[A-Z]\w*\._\w+")
_OF_AGENT = re.compile(r"\.(?:run|on_messages)$")
"""The methods of AutoGen's agents, behind the name of the agent."""
_ANSWERING = ".on_messages"
_NAME = JsonMember("name", ())
"""The name of the object whose method the span is."""
_ASKED_LLAMA_INDEX = "user_msg"
_OF_TURN = JsonMember(_OUTPUT, ("current_agent_name",))
_RUNS_OF_LLAMA_INDEX = frozenset(
    {"AgentWorkflow.run", "FunctionAgent.run", "ReActAgent.run", "CodeActAgent.run"}
)
"""Steps in them have the names of the agents."""
_RESULT_OF_LLAMA_INDEX = frozenset(
    {"blocks", "tool_name", "raw_input", "raw_output", "is_error"},
)
_NULL = "null"
"""How a missing value is written."""


def matches(span: Span) -> bool:
    """Spans with a type, and all spans of its tracer."""
    return KIND in span.attributes or span.scope.name.startswith(SCOPE)


def kind(span: Span) -> Kind | None:
    """By type and by the names of methods, LangChain runs by their metadata."""
    attributes = span.attributes
    stated = decoded(attributes.get(KIND))
    if stated == _NULL:
        return None
    named = str(stated or attributes.get(_OPERATION))
    if named == "CHAIN":
        return _kind_of_step(span)
    found = _kind_of_method(span.name, named)
    if found is not None:
        return found
    return _KINDS.get(named, "other" if KIND in attributes else None)


def _kind_of_step(span: Span) -> Kind | None:
    if span.name == "Handoff" and _HANDOFF_FROM in members(span.attributes.get(_INPUT)):
        return "handoff"
    metadata = members(span.attributes.get(_METADATA))
    if span.name == langgraph.TOOL_NODE == metadata.get(langgraph.NODE):
        return "tools"  # Prompts do not tell that a call failed, such as that of no known tool.
    if _OF_TURN.find(span) is not None:
        return "turn"
    return langgraph.kind(span.name, metadata)


def _kind_of_method(name: str, named: str) -> Kind | None:
    """What a span is whose name says more than its type."""
    if name.startswith(_RUNNER):
        return "workflow"
    if named == "AGENT":
        if name in _RUNS_OF_LLAMA_INDEX:
            return "workflow"
        return "named_step" if name.endswith(_ANSWERING) else None
    if named == "LLM":
        if _PRIVATE_METHOD.fullmatch(name):
            return "other"
        return "chain" if name.endswith(dspy.MODULE) else None
    return None


def name_of(span: Span) -> str | None:
    """The name of the span, or of the object whose method it is, as in frameworks instrumented by
    class.
    """
    if _METHOD.fullmatch(span.name):
        return as_id(_NAME.find(span))
    if decoded(span.attributes.get(KIND)) == "AGENT":
        return as_id(_OF_AGENT.sub("", span.name))
    return as_id(span.name)


def _graph_name(span: Span) -> str | None:
    return langgraph.enclosing_graph(members(span.attributes.get(_METADATA)).get(langgraph.PATH))


def _reply(span: Span) -> Any:
    """The output, unless it is a streamed reply that may lack its tool calls."""
    message = _MESSAGE.find(span) if _STREAM.find(span) is True else None
    if isinstance(message, dict) and not message.get("content") and not message.get("tool_calls"):
        return None
    return _output(span)


def _output(span: Span) -> Any:
    written = span.attributes.get(_OUTPUT)
    return None if written == _NULL else written


def _asked(span: Span) -> Any:
    """What an agent was asked: in DSPy and LlamaIndex one of the inputs."""
    given = span.attributes.get(_INPUT)
    if span.name.endswith(dspy.MODULE):
        return dspy.question_in(members(given))
    asked = members(given).get(_ASKED_LLAMA_INDEX)
    return asked if isinstance(asked, str) else given


def _answered(span: Span) -> Any:
    """The output of an agent, in LlamaIndex a member of it."""
    output = _output(span)
    response = value_below(members(output), ("result", "response"))
    return output if response is None else response


def _predicted(span: Span) -> Any:
    """The answer of a module of DSPy."""
    if not span.name.endswith(dspy.MODULE):
        return None
    return dspy.answer_in(decoded(span.attributes.get(_OUTPUT)))


def _unwrapped(value: Any) -> Result:
    """The result of a tool, without LlamaIndex's object around it."""
    if isinstance(value, dict) and value.keys() == _RESULT_OF_LLAMA_INDEX:
        return unwrap_llama_index(value)
    return Result(value)


def _read_messages(value: Any, role: str) -> tuple[Message, ...]:
    return dspy.without_templates(parse_messages(value, role))


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
        _NAME,
        _OF_TURN,
    ),
    may_be_entry=_may_be_entry,
    name_of=name_of,
    messages=_read_messages,
    unwrap_arguments=callable_arguments,
    unwrap_result=_unwrapped,
    calls_in_next_prompt=True,
    fields=Fields(
        agent_name=(
            JsonMember(_METADATA, (langgraph.AGENT_NAME,)),
            _OF_TURN,
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
        response_model=(
            JsonMember(_OUTPUT, ("model",)),
            JsonMember(_OUTPUT, ("model_name",)),
            JsonMember(_OUTPUT, ("raw", "model")),
            JsonMember("mlflow.llm.model", ()),
            JsonMember("model", ()),
        ),
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
        agent_input=(Derived(_asked),),
        agent_output=(Derived(_answered),),
        final_response=(Derived(_predicted),),
        tool_definitions=("mlflow.chat.tools",),
    ),
)

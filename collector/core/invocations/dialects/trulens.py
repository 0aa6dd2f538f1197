"""TruLens with OpenTelemetry: its decorator, its recording of apps, and LangGraph in `TruGraph`.

Recognised by `ai.observability.span_type`. A recorded call of an app is a `record_root`, whatever
type its function was given; the app is the agent, and has a version. Other spans have the name of a
function, with its module unless a name is given. Arguments are attributes of their own,
`ai.observability.call.kwargs.<name>`, and what was returned is `ai.observability.call.return`.
Tokens are added up on the span around the model client: on that of an agent they are no total.

LangGraph: the span of a tool has the name of the first tool of the agent, and its calls in its
input. Messages are the `repr` of objects; those of models are not read. Evaluations are dropped.
"""

from __future__ import annotations

import re
from typing import Any

from pathgauge.collector.core.invocations.dialects import langgraph, structures
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, JsonMember
from pathgauge.collector.core.invocations.messages.literals import call
from pathgauge.collector.core.invocations.messages.reprs import shows_object
from pathgauge.collector.core.invocations.messages.unwrap import texts_of_arguments
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.invocations.messages.written_results import Result
from pathgauge.collector.core.otlp.spans import Span

_BASE = "ai.observability."
_KIND, _APP = _BASE + "span_type", _BASE + "app_name"
_MODEL, _TOOL = _BASE + "cost.model", "gen_ai.tool.name"
_KWARGS, _RETURN = _BASE + "call.kwargs.", _BASE + "call.return"
_NODE_INPUT = _KWARGS + "input"
_FUNCTION = _BASE + "call.function"

_KINDS: dict[str, Kind] = {
    "record_root": "agent",
    "agent": "agent",
    "tool": "tool",
    "generation": "model",
    "eval_root": "dropped",
    "eval": "dropped",
}
_TOOL_NODE = "langgraph.prebuilt.tool_node."
_RESULT = re.compile(r"\{'messages': \[(ToolMessage\(.*\))\]\}", re.DOTALL)


def matches(span: Span) -> bool:
    """Spans with a type."""
    return _KIND in span.attributes


def kind(span: Span) -> Kind | None:
    """By type. A node of a graph that has tokens called the model."""
    attributes = span.attributes
    stated = str(attributes[_KIND])
    if stated == "graph_node" and _MODEL in attributes:
        return "model"
    return _KINDS.get(stated, "other")


def _is_tool_node(span: Span) -> bool:
    return str(span.attributes.get(_FUNCTION)).startswith(_TOOL_NODE)


def name_of(span: Span) -> str | None:
    """The app, or the name of an agent, unless it is that of a method."""
    if span.attributes.get(_KIND) == "record_root":
        return as_id(span.attributes.get(_APP))
    return None if "." in span.name else as_id(span.name)


def _tool_name(span: Span) -> str | None:
    if _is_tool_node(span):
        return as_id(_NAME_IN_NODE.find(span))
    name = as_id(span.attributes.get(_TOOL))
    return None if name is None else name.rpartition(".")[2]


def _model(span: Span) -> str | None:
    """The model, unless the span adds up the tokens of several."""
    name = as_id(span.attributes.get(_MODEL))
    return None if name == "mixed" else name


def _kwargs(span: Span) -> dict[str, Any]:
    return {
        key.removeprefix(_KWARGS): decoded(value)
        for key, value in span.attributes.items()
        if key.startswith(_KWARGS)
    }


def _arguments(span: Span) -> Any:
    if not _is_tool_node(span):
        return _kwargs(span) or None  # without content, the arguments of any call are missing
    asked = langgraph.only_call(decoded(span.attributes.get(_NODE_INPUT)))
    return None if asked is None else asked.get("args")


def unwrap_result(value: Any) -> Result:
    """The content of the only message that a node of LangGraph returned."""
    if not isinstance(value, str) or not value.startswith("{'messages': ["):
        return Result(value)
    found = _RESULT.fullmatch(value)
    try:
        members = call(found[1]).keywords if found is not None else {}
    except ValueError:
        return Result()
    content = decoded(members.get("content"))
    return Result(content, str(content) if members.get("status") == "error" else None)


def _prompt(span: Span) -> Any:
    """The only argument of a model's function that has messages."""
    return structures.only(filter(structures.has_messages, _kwargs(span).values()))


def _said(span: Span) -> Any:
    """What a function returned, unless it is the state of a graph, or that of a recorded app: what
    the app said is known.
    """
    value = decoded(span.attributes.get(_RETURN))
    texts = value if isinstance(value, list) else [value]
    is_state = any(isinstance(text, str) and shows_object(text) for text in texts)
    if is_state or span.attributes.get(_KIND) == "record_root":
        return None
    return value


def _asked(span: Span) -> Any:
    return texts_of_arguments(_kwargs(span))


_NAME_IN_NODE, _ID_IN_NODE = (
    JsonMember(_NODE_INPUT, (0, "name")),
    JsonMember(_NODE_INPUT, (0, "id")),
)

TRULENS = Dialect(
    name="trulens",
    scopes=("trulens",),
    key_prefixes=(_KIND,),
    matches=matches,
    kind=kind,
    reads=(_KIND, _APP, _MODEL, _FUNCTION),
    may_be_entry=lambda span: span.parent_id is None or b"record_root" in span.raw,
    outranks_conventions=True,
    name_of=name_of,
    unwrap_result=unwrap_result,
    fields=Fields(
        agent_name=(_BASE + "workflow.agent_name",),
        agent_version=(_BASE + "app_version",),
        conversation_id=(_BASE + "conversation_id",),
        tool_name=(Derived(_tool_name, reads=(_TOOL, _NAME_IN_NODE, _FUNCTION)),),
        call_id=(_ID_IN_NODE,),
        arguments=(Derived(_arguments),),
        result=(_RETURN,),
        response_model=(Derived(_model, reads=(_MODEL,)),),
        input_tokens=(_BASE + "cost.num_prompt_tokens",),
        output_tokens=(_BASE + "cost.num_completion_tokens",),
        input_messages=(Derived(_prompt),),
        output_messages=(Derived(_said),),
        agent_input=(_BASE + "record_root.input", Derived(_asked)),
        agent_output=(_BASE + "record_root.output", Derived(_said)),
        tool_definitions=(_KWARGS + "tools",),
    ),
)

"""LangSmith's exporter of LangChain runs to OpenTelemetry, and its `@traceable` functions.

Recognised by `langsmith.span.kind`. Inputs and outputs of every run are JSON in `gen_ai.prompt` and
`gen_ai.completion`, in LangChain's own serialisation, or `{}` if they are hidden. Metadata is under
`langsmith.metadata.`. Child spans are created in a background thread, so baggage does not reach
them. A run that fails late keeps the status OK and only has an `exception` event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pathgauge.collector.core.invocations.dialects import langgraph
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.exceptions import recorded_exception
from pathgauge.collector.core.invocations.dialects.field_paths import (
    Derived,
    FieldPaths,
    JsonMember,
)
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.otlp.spans import Span

KIND, METADATA = "langsmith.span.kind", "langsmith.metadata."

_INPUTS, _OUTPUTS = "gen_ai.prompt", "gen_ai.completion"

_AGENT_NAME, _NODE, _PATH = (
    METADATA + key for key in (langgraph.AGENT_NAME, langgraph.NODE, langgraph.PATH)
)
_KINDS: dict[str, Kind] = {"llm": "model", "tool": "tool"}


def matches(span: Span) -> bool:
    """Spans that LangSmith made of runs."""
    return KIND in span.attributes


def kind(span: Span) -> Kind | None:
    """By the type of the run, chains by their metadata."""
    named = str(span.attributes[KIND])
    if named != "chain":
        return _KINDS.get(named, "other")
    metadata = {
        langgraph.AGENT_NAME: span.attributes.get(_AGENT_NAME),
        langgraph.NODE: span.attributes.get(_NODE),
    }
    return langgraph.kind(span.name, metadata)


def empty_means_not_captured(model_spans: Sequence[Span]) -> FieldPaths:
    """A tool without arguments also has `{}`, so the prompts tell whether inputs are hidden."""
    prompts = [span.attributes[_INPUTS] for span in model_spans if _INPUTS in span.attributes]
    if prompts and all(prompt == "{}" for prompt in prompts):
        return (_INPUTS,)
    return ()


def outputs(span: Span) -> Any:
    """The outputs of a run. `{}` means that there are none."""
    written = span.attributes.get(_OUTPUTS)
    if written == "{}":
        return None
    return written


def _graph_name(span: Span) -> str | None:
    return langgraph.enclosing_graph(span.attributes.get(_PATH))


LANGSMITH = Dialect(
    name="langsmith",
    before=("langfuse",),
    scopes=("langsmith",),
    key_prefixes=(KIND,),
    matches=matches,
    kind=kind,
    reads=(KIND, _NODE),
    may_be_entry=lambda span: span.parent_id is None or langgraph.may_be_entry(span),
    name_of=lambda span: as_id(span.name),
    empty_means_not_captured=empty_means_not_captured,
    failure=recorded_exception,
    content_setting="LANGSMITH_HIDE_INPUTS=false LANGSMITH_HIDE_OUTPUTS=false",
    fields=Fields(
        agent_name=(_AGENT_NAME, Derived(_graph_name, reads=(_PATH,))),
        conversation_id=(
            METADATA + langgraph.THREAD,
            METADATA + "session_id",
            METADATA + "conversation_id",
        ),
        user_id=(METADATA + "user_id",),
        arguments=(_INPUTS,),
        result=(JsonMember(_OUTPUTS, ("output",)), Derived(outputs)),
        agent_input=(_INPUTS,),
        agent_output=(_OUTPUTS,),
    ),
)

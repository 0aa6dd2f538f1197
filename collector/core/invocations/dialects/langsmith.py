"""LangSmith's exporter of LangChain runs to OpenTelemetry, and its `@traceable` functions.

Recognised by `langsmith.span.kind`. Inputs and outputs of every run are JSON in `gen_ai.prompt` and
`gen_ai.completion`, in LangChain's own serialisation; metadata lies under `langsmith.metadata.`.
Children are made in a background thread, so baggage does not reach them. A run that fails late
keeps the status OK and shows an `exception` event alone.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects import langgraph
from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, Member
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.otlp.spans import Span

KIND, METADATA = "langsmith.span.kind", "langsmith.metadata."

_KINDS: dict[str, Kind] = {"llm": "model", "tool": "tool"}


def matches(span: Span) -> bool:
    """Spans that were runs."""
    return KIND in span.attributes


def kind(span: Span) -> Kind | None:
    """The type of the run; chains by their metadata."""
    named = str(span.attributes[KIND])
    if named != "chain":
        return _KINDS.get(named, "other")
    metadata = {
        key[len(METADATA) :]: value
        for key, value in span.attributes.items()
        if key.startswith(METADATA)
    }
    return langgraph.kind(span.name, metadata)


def failure(span: Span) -> str | None:
    """The exception of a run whose status was set before it failed."""
    exceptions = (event.attributes for event in span.events if event.name == "exception")
    return next(
        (
            as_id(e.get("exception.message")) or as_id(e.get("exception.type")) or "error"
            for e in exceptions
        ),
        None,
    )


def outputs(span: Span) -> Any:
    """The outputs of a run, which are `{}` when there are none."""
    written = span.attributes.get("gen_ai.completion")
    return None if written == "{}" else written


LANGSMITH = Dialect(
    name="langsmith",
    scopes=("langsmith",),
    byte_marks=(b"langsmith.span.kind",),
    matches=matches,
    kind=kind,
    may_be_entry=lambda span: span.parent_id is None or langgraph.may_be_entry(span),
    name_of=lambda span: as_id(span.name),
    failure=failure,
    fields=Fields(
        agent_name=(
            METADATA + langgraph.AGENT_NAME,
            Derived(
                lambda span: langgraph.enclosing_graph(
                    span.attributes.get(METADATA + langgraph.PATH)
                )
            ),
        ),
        conversation_id=(
            METADATA + langgraph.THREAD,
            METADATA + "session_id",
            METADATA + "conversation_id",
        ),
        user_id=(METADATA + "user_id",),
        arguments=("gen_ai.prompt",),
        result=(Member("gen_ai.completion", ("output",)), Derived(outputs)),
        agent_input=("gen_ai.prompt",),
        agent_output=("gen_ai.completion",),
    ),
)

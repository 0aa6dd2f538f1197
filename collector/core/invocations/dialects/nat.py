"""NVIDIA NeMo Agent Toolkit, whose spans are those of OpenInference with its own kinds.

Recognised by its scope. A workflow is a span of that kind around one of the function `<workflow>`,
which is no name. Other functions are tools; what runs inside of one, such as a chain of LangChain,
states the name of that function beside its own. The text of a model has its tool calls behind it,
as a `repr`. With the plug-in for profiles, the toolkit (1.9) exports only the first round of an
agent of LangChain. A run that fails never exports its outermost span, and no span states an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived
from pathgauge.collector.core.invocations.dialects.openinference import OPENINFERENCE
from pathgauge.collector.core.invocations.messages.values import as_id, decoded
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "nat"
KIND = "nat.span.kind"

_FUNCTION, _STEP = "nat.function.name", "nat.subspan.name"
_WORKFLOW = "<workflow>"
_KINDS: Mapping[str, Kind] = {
    "WORKFLOW": "workflow",
    "AGENT": "agent",
    "LLM": "model",
    "TOOL": "tool",
}
_CALLS = "\n\nTool calls: "


def matches(span: Span) -> bool:
    """Spans of its tracer that state a kind."""
    return span.scope.name == SCOPE and KIND in span.attributes


def kind(span: Span) -> Kind | None:
    """By its own kind; functions by whether they state themselves or the function around them."""
    attributes = span.attributes
    if attributes[KIND] != "FUNCTION":
        return _KINDS.get(str(attributes[KIND]), "other")
    named = attributes.get(_FUNCTION)
    return "tool" if named == attributes.get(_STEP) and named != _WORKFLOW else "other"


def name_of(span: Span) -> str | None:
    """The name of the span, unless it is that of every workflow."""
    return None if span.name == _WORKFLOW else as_id(span.name)


def may_be_entry(span: Span) -> bool:
    """Workflows."""
    return span.name == _WORKFLOW


def _reply(span: Span) -> Any:
    """The text of a model and the calls behind it, as a message."""
    output = span.attributes.get("output.value")
    if span.attributes.get(KIND) != "LLM" or not isinstance(output, str):
        return None
    text, _, calls = output.partition(_CALLS)
    return {"role": "assistant", "content": text or None, "tool_calls": decoded(calls)}


NAT = replace(
    OPENINFERENCE,
    before=("openinference",),
    scopes=(SCOPE,),
    key_prefixes=(),
    matches=matches,
    kind=kind,
    reads=(KIND, _FUNCTION, _STEP),
    entry_names=(_WORKFLOW,),
    may_be_entry=may_be_entry,
    name_of=name_of,
    fields=replace(
        OPENINFERENCE.fields,
        output_messages=(Derived(_reply),),
    ),
)

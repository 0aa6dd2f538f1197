"""Microsoft Agent 365: its SDK, and its extensions for LangChain and the OpenAI Agents SDK.

Recognised by its scopes. Spans follow the GenAI conventions, but a processor copies the baggage of
a request onto all of them: `gen_ai.agent.name` is the agent that the baggage names, and only the
title of a span has that of a sub-agent or of the agent after a handoff. The extensions write steps
without an operation (LangChain) or with one of their own, handoffs as tools without a name, and
the definitions of tools one by one in attributes of other meaning.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, unflattened
from pathgauge.collector.core.otlp.spans import Span

_SCOPES = ("Agent365Sdk", "microsoft_agents_a365.")

_OPERATION = "gen_ai.operation.name"
_MODELS = ("Chat", "TextCompletion", "GenerateContent")
"""Operations as the SDK for JavaScript writes them."""
_AGENT, _HANDOFF = "invoke_agent ", "handoff to "
_DEFINITIONS = ("gen_ai.tool.call.arguments.", "gen_ai.choice.")
"""How the keys begin under which model calls have the definitions of tools."""


def matches(span: Span) -> bool:
    """Spans of its scopes."""
    return span.scope.name.startswith(_SCOPES)


def kind(span: Span) -> Kind | None:
    """By operation, as in the conventions, except for handoffs and steps."""
    operation = span.attributes.get(_OPERATION)
    if operation == "execute_tool" and span.name.startswith(_HANDOFF):
        return "handoff"
    if operation in _MODELS:
        return "model"
    return "chain" if operation in (None, "chain") else None


def may_be_entry(span: Span) -> bool:
    """Agents, and the outermost spans that its extensions write."""
    return span.parent_id is None or span.name.startswith(_AGENT)


def _agent_name(span: Span) -> str | None:
    return span.name.removeprefix(_AGENT) if span.name.startswith(_AGENT) else None


def _definitions(span: Span) -> Any:
    found = (unflattened(span.attributes, prefix) for prefix in _DEFINITIONS)
    listed = next((one for one in found if one is not None), None)
    if not isinstance(listed, list):
        return None
    return [one.get("tool_json_schema") if isinstance(one, dict) else one for one in listed]


AGENT365 = Dialect(
    name="agent365",
    before=("genai",),
    scopes=_SCOPES,
    matches=matches,
    kind=kind,
    reads=(_OPERATION,),
    may_be_entry=may_be_entry,
    outranks_conventions=True,
    fields=Fields(
        agent_name=(Derived(_agent_name),),
        workflow_name=(Derived(lambda span: span.name),),
        tool_definitions=(Derived(_definitions),),
    ),
)

"""Strands Agents' own telemetry: the GenAI conventions of any age, their content in span events.

Recognised by the scope `strands.telemetry.tracer`. By default the older message events hold
everything, those of tool spans too: there `gen_ai.tool.message` is what the tool was called with,
and `gen_ai.choice` what came of it, as content blocks. Of an agent's span `gen_ai.choice` is the
answer. `execute_event_loop_cycle` is a turn of the loop, `invoke_swarm` and `invoke_graph` run
several agents. Spans `memory.*` keep the agent's memory, at times with model calls of their own.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, InEvent
from pathgauge.collector.core.invocations.dialects.genai import OPERATIONS
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "strands.telemetry.tracer"

_KINDS: dict[str, Kind] = {**OPERATIONS, "invoke_swarm": "workflow", "invoke_graph": "workflow"}

_ANSWER = InEvent("gen_ai.choice", "message")
"""On a tool's span, what it returned."""


def _answer(span: Span) -> str | None:
    """The answer on an agent's span, whose every text ends with a line break."""
    answer = as_id(_ANSWER.find(span)) if matches(span) else None
    return answer.removesuffix("\n") if answer is not None else None


def matches(span: Span) -> bool:
    """Spans of Strands' own tracer."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """The operation, whatever processors of other vocabularies made of it."""
    operation = str(span.attributes.get("gen_ai.operation.name"))
    return "dropped" if operation.startswith("memory.") else _KINDS.get(operation, "other")


STRANDS = Dialect(
    name="strands",
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    may_be_entry=lambda span: span.name in ("invoke_swarm", "invoke_graph"),
    fields=Fields(
        arguments=(InEvent("gen_ai.tool.message", "content"),),
        result=(_ANSWER,),
        final_response=(Derived(_answer),),
        tool_schema=("gen_ai.tool.json_schema",),
    ),
)

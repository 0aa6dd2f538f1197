"""Strands Agents, own telemetry: the GenAI conventions of any age, with content in span events.

Recognised by the scope `strands.telemetry.tracer`, and in TypeScript, where the name of the service
is the scope, by an attribute with the time of each span. By default all content is in the older
message events, even on tool spans: there `gen_ai.tool.message` has the arguments and
`gen_ai.choice` the result, as content blocks. On agent spans `gen_ai.choice` is the answer.
`execute_event_loop_cycle` is a turn of the loop; `invoke_swarm` and `invoke_graph` run several
agents. Spans `memory.*` maintain the memory of the agent, sometimes with model calls of their own.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, InEvent
from pathgauge.collector.core.invocations.dialects.genai import OPERATIONS
from pathgauge.collector.core.invocations.messages.values import as_id
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "strands.telemetry.tracer"
_TIME = "gen_ai.event.start_time"
"""An attribute of every span in TypeScript."""

_KINDS: dict[str, Kind] = {**OPERATIONS, "invoke_swarm": "workflow", "invoke_graph": "workflow"}

_OPERATION = "gen_ai.operation.name"

_OUTPUT = InEvent("gen_ai.choice", "message")
"""The result on a tool span, the answer on an agent span."""


def _answer(span: Span) -> str | None:
    """The answer on an agent span, without the line break that ends every text."""
    written = _OUTPUT.find(span) if matches(span) else None
    answer = "" if written == "" else as_id(written)
    if answer is None:
        return None
    return answer.removesuffix("\n")


def matches(span: Span) -> bool:
    """Spans of Strands' own tracer."""
    return span.scope.name == SCOPE or _TIME in span.attributes


def kind(span: Span) -> Kind | None:
    """By operation, even if processors added attributes of other dialects."""
    operation = str(span.attributes.get(_OPERATION))
    if operation.startswith("memory."):
        return "dropped"
    return _KINDS.get(operation, "other")


STRANDS = Dialect(
    name="strands",
    before=("langsmith",),
    scopes=(SCOPE,),
    key_prefixes=(_TIME,),
    matches=matches,
    kind=kind,
    reads=(_OPERATION, _TIME),
    may_be_entry=lambda span: span.name in ("invoke_swarm", "invoke_graph"),
    fields=Fields(
        arguments=(InEvent("gen_ai.tool.message", "content"),),
        result=(_OUTPUT,),
        final_response=(Derived(_answer),),
        tool_schema=("gen_ai.tool.json_schema",),
    ),
)

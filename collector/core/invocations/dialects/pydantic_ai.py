"""pydantic-ai's own telemetry from instrumentation version 2 on: the GenAI conventions, and what
they have no place for.

Recognised by the scope `pydantic-ai`. Message content lies on the model spans; the agent span
repeats the whole conversation in `pydantic_ai.all_messages`, earlier turns included, and holds the
answer in `final_result`. Totals of the agent span are `gen_ai.aggregated_usage.*` in 2.x. `running
tools` is a wrapper, not a call. User metadata is JSON in `metadata`.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "pydantic-ai"


def matches(span: Span) -> bool:
    """Spans of pydantic-ai's own tracer."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """Names of the versions that give no operation."""
    if span.name == "running tools":
        return "other"
    if span.name == "agent run" or (span.name.endswith(" run") and "agent_name" in span.attributes):
        return "agent"
    return "tool" if span.name.startswith(("running tool", "running output function")) else None


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages as such, or the events of version 1: the choice is the output, all before it the
    input.
    """
    if isinstance(value, list) and any(
        isinstance(item, dict) and "event.name" in item for item in value
    ):
        events = [item for item in value if isinstance(item, dict)]
        value = [
            item
            for item in events
            if (item.get("event.name") == "gen_ai.choice") == (role == "assistant")
        ]
    return parse_messages(value, role)


PYDANTIC_AI = Dialect(
    name="pydantic-ai",
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    entry_names=("agent run",),
    messages=read_messages,
    fields=Fields(
        agent_name=("agent_name",),
        input_messages=("events",),
        output_messages=("events",),
        agent_input=("all_messages_events",),
        arguments=("tool_arguments",),
        result=("tool_response",),
        total_input_tokens=("gen_ai.aggregated_usage.input_tokens",),
        total_output_tokens=("gen_ai.aggregated_usage.output_tokens",),
        final_response=("final_result",),
        tool_definitions=("model_request_parameters",),
    ),
)

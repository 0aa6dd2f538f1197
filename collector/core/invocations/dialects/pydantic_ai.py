"""pydantic-ai, own telemetry from instrumentation version 2: the GenAI conventions, and what they
do not define.

Recognised by the scope `pydantic-ai`. Message content is on the model spans. The agent span repeats
the whole conversation, including earlier turns, in `pydantic_ai.all_messages`, and has the answer
in `final_result`. In 2.x the totals on the agent span are `gen_ai.aggregated_usage.*`. `running
tools` is a wrapper, not a call. User metadata is JSON in `metadata`.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "pydantic-ai"

_AGENT_NAME = "agent_name"


def matches(span: Span) -> bool:
    """Spans of pydantic-ai's own tracer."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """By the names in versions that write no operation."""
    if span.name == "running tools":
        return "other"
    if span.name == "agent run":
        return "agent"
    if span.name.endswith(" run") and _AGENT_NAME in span.attributes:
        return "agent"
    if span.name.startswith(("running tool", "running output function")):
        return "tool"
    return None


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages, or the events of version 1, in which the choice is the output and all others are
    the input.
    """
    if isinstance(value, list):
        events = [item for item in value if isinstance(item, dict)]
        if any("event.name" in event for event in events):
            value = [event for event in events if _is_output(event) == (role == "assistant")]
    return parse_messages(value, role)


def _is_output(event: dict[str, Any]) -> bool:
    return event.get("event.name") == "gen_ai.choice"


PYDANTIC_AI = Dialect(
    name="pydantic-ai",
    before=("langsmith",),
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    entry_names=("agent run",),
    messages=read_messages,
    content_setting="InstrumentationSettings(include_content=True)",
    fields=Fields(
        agent_name=(_AGENT_NAME,),
        input_messages=("events",),
        output_messages=("events",),
        agent_input=("all_messages_events",),
        arguments=("tool_arguments",),
        result=("tool_response",),
        cached_tokens=("gen_ai.usage.details.cache_read_tokens",),
        cache_write_tokens=("gen_ai.usage.details.cache_write_tokens",),
        total_input_tokens=("gen_ai.aggregated_usage.input_tokens",),
        total_output_tokens=("gen_ai.aggregated_usage.output_tokens",),
        final_response=("final_result",),
        tool_definitions=("model_request_parameters",),
    ),
)

"""AG2 under OpenInference.

A chat is a span `<agent>.initiate_chat` with the name of the agent that starts it, usually a proxy
of the user; `ag2.recipient.name` is the agent that is asked. The replies of both lie below it, side
by side, and a tool below the reply of the agent that executes it, which is not the one that asked
for it. `tool.parameters` is neither schema nor arguments. Model calls have no spans.
"""

from __future__ import annotations

from dataclasses import replace

from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.invocations.dialects.field_paths import JsonMember
from pathgauge.collector.core.invocations.dialects.openinference import (
    OPENINFERENCE,
    kind as stated_kind,
)
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "openinference.instrumentation.ag2"

_RECIPIENT = "ag2.recipient.name"


def kind(span: Span) -> Kind | None:
    """The stated kind, except for the replies in a chat."""
    stated = stated_kind(span)
    if stated == "agent" and _RECIPIENT not in span.attributes:
        return "turn"
    return stated


AG2 = replace(
    OPENINFERENCE,
    before=("openinference",),
    scopes=(SCOPE,),
    matches=lambda span: span.scope.name == SCOPE and OPENINFERENCE.matches(span),
    kind=kind,
    name_of=None,  # The names of spans end in the method.
    reads=(*OPENINFERENCE.reads, _RECIPIENT),
    fields=replace(
        OPENINFERENCE.fields,
        agent_name=(_RECIPIENT, "agent.name"),
        arguments=("tool_call.function.arguments",),
        input_messages=(JsonMember("input.value", ("message",)), "input.value"),
    ),
)

"""LiveKit Agents, own telemetry since 1.8: the GenAI conventions, and a session around the turns.

Recognised by the scope `livekit-agents` with the names and attributes of 1.8. Earlier versions
divide a turn into several spans; the dialect does not claim their scope, so they are read, and
reported, as those of an unknown framework.

A session of many turns is one trace. Its root states that it is a workflow, but each `agent_turn`
below it is a run of its own, and the agent may change between two turns. `llm_node` repeats the
model call inside it. If the user interrupts the agent, the answer is what the agent said until
then. A turn without a question follows instructions of the application, or only says a given text.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "livekit-agents"

_SESSION, _TURN = "agent_session", "agent_turn"
_NAMES = (_SESSION, _TURN, "llm_node", "llm_request", "function_tool", "start_agent_activity")
_OPERATION, _PROVIDER = "gen_ai.operation.name", "gen_ai.provider.name"


def matches(span: Span) -> bool:
    """Spans of LiveKit's own tracer with attributes of the conventions."""
    if span.scope.name != SCOPE or not span.name.startswith(_NAMES):
        return False
    return not {_OPERATION, _PROVIDER}.isdisjoint(span.attributes)


def kind(span: Span) -> Kind | None:
    """Spans around turns and model calls; other spans follow the conventions."""
    if span.name == _SESSION or _OPERATION not in span.attributes:
        return "other"
    return None


LIVEKIT = Dialect(
    name="livekit",
    before=("langsmith",),
    names=_NAMES,
    matches=matches,
    kind=kind,
    reads=(_OPERATION,),
    entry_names=(_TURN,),
    fields=Fields(
        arguments=("lk.pii.function_tool.arguments",),
        result=("lk.pii.function_tool.output",),
        agent_input=("lk.pii.user_input", "lk.pii.instructions"),
        final_response=("lk.pii.response.text",),
    ),
)

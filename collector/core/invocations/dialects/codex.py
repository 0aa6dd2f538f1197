"""Codex, the coding agent of OpenAI: the spans of its own code, several hundred in a turn.

Recognised by scopes that begin with `codex`. `session_task.turn` is a turn of the user. The span of
a tool call has the name of the tool and `codex.tool.phase`; another span inside it tells whether it
succeeded. The span in which a response of the model ended has its tokens. All other spans only
connect these. Content is in no span: log records have the prompt, arguments and results, and
nothing has the answer.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.otlp.spans import Span

SCOPES = ("codex_", "codex-")

_TURN, _RESPONSE = "session_task.turn", "handle_responses"
_PHASE, _USAGE = "codex.tool.phase", "gen_ai.usage.output_tokens"
_DISPATCH = "dispatch_tool_call_with_state"
_EVENT, _RESULT = "event.name", "codex.tool_result"


def matches(span: Span) -> bool:
    """Spans of the program."""
    return span.scope.name.startswith(SCOPES)


def kind(span: Span) -> Kind | None:
    """By the name and by what only spans of tools and of responses have."""
    if span.name == _TURN:
        return "agent"
    if _PHASE in span.attributes:
        return "tool"
    if span.name == _DISPATCH:
        return "tool_detail"
    if span.name == _RESPONSE and _USAGE in span.attributes:
        return "model"
    return "other"


def failure(span: Span) -> str | None:
    """The failure of a tool, of which an event tells without its text."""
    for event in span.events:
        if event.attributes.get(_EVENT) == _RESULT:
            return "error" if str(event.attributes.get("success")).lower() == "false" else None
    return None


CODEX = Dialect(
    name="codex",
    scopes=SCOPES,
    matches=matches,
    kind=kind,
    reads=(_PHASE,),
    entry_names=(_TURN,),
    failure=failure,
    fields=Fields(
        conversation_id=("conversation.id", "thread.id"),
        tool_name=("tool_name",),
        call_id=("call_id",),
    ),
)

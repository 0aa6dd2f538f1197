"""AgentScope 1: its own tracing of agents, models, tools and formatters.

Recognised by its scope together with the name of the traced function, which AgentScope 2 does not
write: that one is read by the conventions. Formatters, which make prompts of messages, are no
work. The conversation is the run of the process, as JSON. The run of an agent inside a tool is
beside it, and the status of a tool that failed is OK, because its framework makes a result of the
exception.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import JsonMember
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "agentscope"

_FUNCTION, _OPERATION = "agentscope.function.name", "gen_ai.operation.name"
_CONVERSATION = "gen_ai.conversation.id"
_READ_BY_CONVENTIONS = frozenset({"invoke_agent", "chat", "execute_tool", "embeddings"})


def matches(span: Span) -> bool:
    """Spans of the functions that version 1 traces."""
    return span.scope.name == SCOPE and _FUNCTION in span.attributes


def kind(span: Span) -> Kind | None:
    """What the conventions know is left to them; all else only connects."""
    operation = str(span.attributes.get(_OPERATION))
    return None if operation in _READ_BY_CONVENTIONS else "other"


AGENTSCOPE = Dialect(
    name="agentscope",
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    reads=(_OPERATION, _FUNCTION),
    entry_names=("invoke_agent",),
    loses_parent=True,
    outranks_conventions=True,
    fields=Fields(conversation_id=(JsonMember(_CONVERSATION, ()),)),
)

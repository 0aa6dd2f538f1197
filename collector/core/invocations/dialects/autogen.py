"""AutoGen, own telemetry: the GenAI conventions without content, and the messages between the
agents of a team.

Recognised by the scopes `autogen-core` and `autogen <runtime>`. Agents of a team work when a
message reaches them: each message is a span `autogen send *` or `autogen publish *`, and the agent
runs below it. Without a span around the whole run, each message starts a trace of its own; with
one, the messages are siblings and the message to the manager of the team starts the run. Arguments,
results and model calls are not recorded; an instrumentation of the model client adds them. The id
of a team is the part of its agents' ids after `/`.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, JsonMember
from pathgauge.collector.core.invocations.dialects.genai import CONTENT_SETTING
from pathgauge.collector.core.otlp.spans import Span

SCOPE, RUNTIME = "autogen-core", "autogen "

_AGENT_ID, _DESTINATION = "gen_ai.agent.id", "messaging.destination"

_UUID_LENGTH = 36


def _team_id(span: Span) -> str | None:
    """The UUID of the team, from the id of an agent or the destination of a message; `None` for
    agents outside of teams.
    """
    team = ""
    if span.scope.name == SCOPE:
        team = str(span.attributes.get(_AGENT_ID)).rpartition("/")[2]
    elif span.scope.name.startswith(RUNTIME):
        destination = str(span.attributes.get(_DESTINATION))
        team = destination.rpartition("(")[2].partition(")")[0]
    if len(team) == _UUID_LENGTH:
        return team
    return None


def matches(span: Span) -> bool:
    """Spans of agents and tools, and of the runtime."""
    return span.scope.name == SCOPE or span.scope.name.startswith(RUNTIME)


def kind(span: Span) -> Kind | None:
    """Only the messages of the runtime; other spans follow the conventions."""
    if span.name.startswith("autogen send "):
        return "task"
    if span.name.startswith(RUNTIME):
        return "message"
    return None


AUTOGEN = Dialect(
    name="autogen",
    before=("langsmith",),
    scopes=(SCOPE, RUNTIME),
    matches=matches,
    kind=kind,
    content_setting=CONTENT_SETTING,
    fields=Fields(
        conversation_id=(Derived(_team_id, reads=(_AGENT_ID, _DESTINATION)),),
        agent_input=(JsonMember("message", ("messages",)),),
    ),
)

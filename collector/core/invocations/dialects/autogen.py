"""AutoGen's own telemetry: the GenAI conventions without any content, and the messages between the
agents of a team.

Recognised by the scopes `autogen-core` and `autogen <runtime>`. Agents of a team work when a
message reaches them: each message is a span `autogen send *` or `autogen publish *`, and only below
that the agent runs. Without a span around the whole, each of these begins a trace of its own; with
one they lie beside each other, and the message that was sent to the team's manager begins the run.
Arguments, results and model calls are not recorded; spans of the model's client add them. The id of
a team is the part of its agents' ids after `/`.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, Member
from pathgauge.collector.core.otlp.spans import Span

SCOPE, RUNTIME = "autogen-core", "autogen "

_UUID = 36


def _team(span: Span) -> str | None:
    """The id of the team, a UUID, in the id of an agent or the destination of a message; agents
    outside teams have none.
    """
    team = ""
    if span.scope.name == SCOPE:
        team = str(span.attributes.get("gen_ai.agent.id")).rpartition("/")[2]
    elif span.scope.name.startswith(RUNTIME):
        team = (
            str(span.attributes.get("messaging.destination")).rpartition("(")[2].partition(")")[0]
        )
    return team if len(team) == _UUID else None


def matches(span: Span) -> bool:
    """Spans of agents and tools, and of the runtime."""
    return span.scope.name == SCOPE or span.scope.name.startswith(RUNTIME)


def kind(span: Span) -> Kind | None:
    """What the runtime delivers; the conventions know the rest."""
    if span.name.startswith("autogen send "):
        return "task"
    return "message" if span.name.startswith(RUNTIME) else None


AUTOGEN = Dialect(
    name="autogen",
    scopes=(SCOPE, RUNTIME),
    matches=matches,
    kind=kind,
    fields=Fields(
        conversation_id=(Derived(_team),),
        agent_input=(Member("message", ("messages",)),),
    ),
)

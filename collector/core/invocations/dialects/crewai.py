"""CrewAI as OpenLLMetry instruments it: a crew's `crewai.workflow`, with a task for each agent's
span below.

Recognised by its scope. Crews and tasks are given the operation of an agent. No tool call leaves a
span, and an agent that reasons in text leaves none in its messages either. The crew's counts of
tokens are those of its model objects over all their lives, so that they are not read.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "opentelemetry.instrumentation.crewai"


def matches(span: Span) -> bool:
    """Spans of that scope."""
    return span.scope.name.startswith(SCOPE)


def kind(span: Span) -> Kind | None:
    """The crew, which has no kind of its own."""
    return "workflow" if span.name == "crewai.workflow" else None


CREWAI = Dialect(
    name="openllmetry",
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    entry_names=("crewai.workflow",),
    shows_tools=False,
    fields=Fields(
        workflow_name=("crewai.crew.name",),
        agent_name=("crewai.agent.role",),
        final_response=("crewai.crew.result",),
    ),
)

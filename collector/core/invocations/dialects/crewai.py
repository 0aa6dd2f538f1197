"""CrewAI as instrumented by OpenLLMetry: the `crewai.workflow` of a crew, with a task below it for
each agent.

Recognised by its scope. Crews and tasks have the operation of an agent. Tool calls have no spans,
and the messages of agents that reason in text do not show them either. The token counts of a crew
cover the whole lifetime of its model objects, so they are not read.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "opentelemetry.instrumentation.crewai"


def matches(span: Span) -> bool:
    """Spans of that scope."""
    return span.scope.name.startswith(SCOPE)


def kind(span: Span) -> Kind | None:
    """Only the crew, which states no kind; other spans follow the conventions."""
    if span.name == "crewai.workflow":
        return "workflow"
    return None


CREWAI = Dialect(
    name="openllmetry",
    before=("openllmetry",),
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

"""Microsoft Agent Framework, own telemetry: the GenAI conventions, and workflows of agents.

Recognised by the scope `agent_framework`. A workflow is `workflow.run` with steps
`executor.process`, `edge_group.process` and `message.send`; its agents run below these. Content is
in span attributes, in the older message events as log records, or in both. The output of an agent
is the messages of its whole loop.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "agent_framework"

_RUN = "workflow.run"


def matches(span: Span) -> bool:
    """Spans of the framework's own tracer."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """Only the run of a workflow; other spans follow the conventions."""
    if span.name == _RUN:
        return "workflow"
    return None


AGENT_FRAMEWORK = Dialect(
    name="agent-framework",
    before=("langsmith",),
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    may_be_entry=lambda span: span.name == _RUN,
    content_setting="ENABLE_SENSITIVE_DATA=true",
    fields=Fields(workflow_name=("workflow.name",)),
)

"""Agno under OpenLLMetry. Under OpenInference, the dialect of OpenInference reads it.

Recognised by the scope of its instrumentation. The run of a team is a `workflow` with the name in
`agno.team.name`; the runs of its members are siblings of the tool call that delegates to them. Only
the text of a result says that the tool failed. Streamed runs have their model and tool calls in
traces of their own.
"""

from __future__ import annotations

from dataclasses import replace

from pathgauge.collector.core.invocations.dialects import openllmetry
from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "opentelemetry.instrumentation.agno"
TEAM = "agno.team.name"


def kind(span: Span) -> Kind | None:
    """As OpenLLMetry states it, but a team is an agent."""
    if TEAM in span.attributes:
        return "agent"
    return openllmetry.kind(span)


AGNO_OPENLLMETRY = replace(
    openllmetry.OPENLLMETRY,
    before=("openllmetry",),
    scopes=(SCOPE,),
    matches=lambda span: span.scope.name == SCOPE,
    kind=kind,
    may_be_entry=lambda span: span.name.endswith((".agent", ".team")),
    reads=(*openllmetry.OPENLLMETRY.reads, TEAM),
    fields=replace(openllmetry.OPENLLMETRY.fields, agent_name=(TEAM,)),
)
"""Its instrumentation of Agno."""

"""Clients of MCP servers under OpenLLMetry.

A call is a span `<tool>.tool`, usually below the span of the framework that called the tool; both
are one call. Arguments and result have the name of the tool and a failure beside them.
"""

from __future__ import annotations

from dataclasses import replace

from pathgauge.collector.core.invocations.dialects.field_paths import JsonMember
from pathgauge.collector.core.invocations.dialects.openllmetry import KIND, OPENLLMETRY

SCOPE = "opentelemetry.instrumentation.mcp"

MCP = replace(
    OPENLLMETRY,
    before=("openllmetry",),
    scopes=(SCOPE,),
    matches=lambda span: span.scope.name.startswith(SCOPE) and KIND in span.attributes,
    fields=replace(
        OPENLLMETRY.fields,
        arguments=(JsonMember("traceloop.entity.input", ("arguments",)),),
        result=(JsonMember("traceloop.entity.output", ("result",)),),
    ),
)

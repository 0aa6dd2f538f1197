"""The instrumentations that the AWS Distribution for OpenTelemetry has itself: of LangChain,
LlamaIndex and the OpenAI Agents SDK.

Recognised by their scopes. Spans follow the GenAI conventions; those without an operation are steps
of a framework, some with the details of the model call inside them.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Kind
from pathgauge.collector.core.invocations.dialects.genai import CONTENT_SETTING
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "amazon.opentelemetry.distro.instrumentation."

_OPERATION = "gen_ai.operation.name"


def kind(span: Span) -> Kind | None:
    """Steps only connect other spans, which follow the conventions."""
    return None if _OPERATION in span.attributes else "other"


AWS = Dialect(
    name="aws",
    before=("genai",),
    scopes=(SCOPE,),
    matches=lambda span: span.scope.name.startswith(SCOPE),
    kind=kind,
    reads=(_OPERATION,),
    content_setting=CONTENT_SETTING,
)

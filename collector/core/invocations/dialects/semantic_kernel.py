"""Semantic Kernel, own telemetry: the GenAI conventions, with messages as log records of Python's
logging.

Recognised by scopes `semantic_kernel.*`. The body of such a record is JSON and its event name is an
attribute; other records of the same spans are ordinary logging. Models know a function as
`Plugin-function`. `AutoFunctionInvocationLoop` is the loop of model and tool calls. The runtime of
orchestrations delivers messages to agents in spans `agent_runtime *`, as AutoGen's does.
"""

from __future__ import annotations

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.otlp.spans import Span

SCOPE, RUNTIME = "semantic_kernel.", "agent_runtime "


def matches(span: Span) -> bool:
    """Spans of the kernel and of its runtime."""
    return span.scope.name.startswith((SCOPE, RUNTIME))


def kind(span: Span) -> Kind | None:
    """Only the messages of the runtime; other spans follow the conventions."""
    if span.name.startswith(RUNTIME):
        return "message"
    return None


def function_name(name: str) -> str:
    """The function without its plugin. Names of plugins have no hyphen."""
    return name.partition("-")[2] or name


SEMANTIC_KERNEL = Dialect(
    name="semantic-kernel",
    before=("langsmith",),
    scopes=(SCOPE, RUNTIME),
    matches=matches,
    kind=kind,
    function_name=function_name,
    content_setting="SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE=true",
    fields=Fields(finish_reasons=("gen_ai.response.finish_reason",)),
)

"""LangChain4j as instrumented by OpenInference for Java.

Recognised by its scope. An AI service is an agent without a name: all have the span name of the
instrumentation. Its output is what Java writes for the object that it returned: with a stream, a
whole response, otherwise perhaps a record of the program. Its last model call has the answer. Spans
of tools are made afterwards and never fail; the text of an exception looks like a result.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields
from pathgauge.collector.core.invocations.dialects.field_paths import Derived
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "com.arize.langchain4j"


def matches(span: Span) -> bool:
    """Spans of its scope."""
    return span.scope.name == SCOPE


def _no_messages(span: Span) -> Any:
    """Instead of the output of an agent."""
    return [] if matches(span) else None


OPENINFERENCE_LANGCHAIN4J = Dialect(
    name="openinference",
    before=("openinference",),
    scopes=(SCOPE,),
    matches=matches,
    kind=lambda span: None,
    name_of=lambda span: None,
    fields=Fields(
        agent_output=(Derived(_no_messages),),
        finish_reasons=("llm.response.finish_reasons",),
    ),
)
"""What is read otherwise than in all instrumentations of OpenInference."""

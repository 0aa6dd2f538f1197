"""Agno under OpenLLMetry. Under OpenInference, the dialect of OpenInference reads it.

Recognised by the scope of its instrumentation. The run of a team is a `workflow` with the name in
`agno.team.name`; the runs of its members are siblings of the tool call that delegates to them. The
result of a tool is `str()` of Agno's `FunctionExecutionResult`, in which the result of a generator
is an object without its content: later prompts of the model have the result. Nothing in such a span
says that the tool failed, except that text. Streamed runs have their model and tool calls in traces
of their own.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from pathgauge.collector.core.invocations.dialects import openllmetry
from pathgauge.collector.core.invocations.dialects.dialect import Kind
from pathgauge.collector.core.invocations.messages.unwrap import Result, is_object
from pathgauge.collector.core.invocations.messages.values import as_text, decoded
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "opentelemetry.instrumentation.agno"
TEAM = "agno.team.name"

_RESULT = re.compile(
    r"status='(?:success|failure)' result=(?P<result>.*)"
    r" error=(?P<error>None|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
    r" updated_session_state=",
    re.DOTALL,
)


def kind(span: Span) -> Kind | None:
    """As OpenLLMetry states it, but a team is an agent."""
    if TEAM in span.attributes:
        return "agent"
    return openllmetry.kind(span)


def unwrap_result(value: Any) -> Result:
    """The result and the error in the text of a `FunctionExecutionResult`."""
    if not isinstance(value, str) or not value.startswith("status='"):
        return Result(value)
    match = _RESULT.match(value)
    if match is None:
        return Result(value)
    error = _literal(match["error"])
    return Result(_literal(match["result"]), as_text(error) if error else None)


def _literal(text: str) -> Any:
    """The value of a `repr`; other text unchanged; `None` for an object without its content."""
    if text == "None" or is_object(text):
        return None
    if text[:1] in ("'", '"'):
        # Only in a list is the `repr` of a text known to be one.
        listed = decoded(f"[{text}]")
        return decoded(listed[0]) if isinstance(listed, list) and len(listed) == 1 else text
    return decoded(text)


AGNO_OPENLLMETRY = replace(
    openllmetry.OPENLLMETRY,
    before=("openllmetry",),
    scopes=(SCOPE,),
    matches=lambda span: span.scope.name == SCOPE,
    kind=kind,
    may_be_entry=lambda span: span.name.endswith((".agent", ".team")),
    reads=(*openllmetry.OPENLLMETRY.reads, TEAM),
    unwrap_result=unwrap_result,
    fields=replace(openllmetry.OPENLLMETRY.fields, agent_name=(TEAM,)),
)
"""Its instrumentation of Agno."""

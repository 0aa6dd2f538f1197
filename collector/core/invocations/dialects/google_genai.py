"""Google's GenAI SDK, instrumented by `opentelemetry-instrumentation-google-genai`.

Recognised by its scope. It follows the GenAI conventions; the name of a call with its position in
the message is its id (`lookup_order_0`), so that ids repeat from message to message.

What a function returns is shown to the model as the only member `result` of an object, an exception
as its only member `error`. The span of the function itself, which there is only if
`generate_content` calls functions on its own, has what it returned. That one span for the model
encloses all rounds and states the tokens of the last one.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Kind
from pathgauge.collector.core.invocations.dialects.genai import CONTENT_SETTING
from pathgauge.collector.core.invocations.messages.message import Message, Response
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "opentelemetry.instrumentation.google_genai"


def matches(span: Span) -> bool:
    """All spans of its scope."""
    return span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """As in the conventions."""
    return None


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages of the conventions whose results lack their wrapping."""
    return tuple(
        message._replace(responses=tuple(map(_unwrapped, message.responses)))
        for message in parse_messages(value, role)
    )


def _unwrapped(response: Response) -> Response:
    wrapped = response.result
    if isinstance(wrapped, dict) and wrapped.keys() == {"result"}:
        return response._replace(result=wrapped["result"])
    return response


GOOGLE_GENAI = Dialect(
    name="google-genai",
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    content_setting=CONTENT_SETTING,
    states_last_round=True,
    messages=read_messages,
)

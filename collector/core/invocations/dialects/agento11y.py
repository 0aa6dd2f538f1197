"""Grafana's agento11y, which records model calls and tools with SDKs and callbacks.

Recognised by its scopes. Spans follow the GenAI conventions, except that a model call may have an
operation of the AI SDK, and that callbacks write the steps of a framework beside what happened in
them. All are children of the span around the run: without one, each begins a trace. JSON that
serialising would change, for example by its spaces, is in base64 beside the member that it belongs
to. If a run has no conversation, every span has one that is made up.
"""

from __future__ import annotations

from base64 import b64decode
from binascii import Error
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived
from pathgauge.collector.core.invocations.messages.message import Message
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import decoded
from pathgauge.collector.core.otlp.spans import Span

SCOPE = "github.com/grafana/sigil/sdks/"

_GENERATION, _OPERATION = "agento11y.generation.id", "gen_ai.operation.name"
_DEFINITIONS = "gen_ai.tool.definitions"

_IN_BASE64 = {
    "agento11y.arguments_b64": "arguments",
    "agento11y.response_b64": "response",
    "agento11y.input_schema_b64": "parameters",
}
"""Members with JSON in base64, and the members of the conventions that they stand for."""
_IS_ERROR = "agento11y.is_error"


def matches(span: Span) -> bool:
    """All spans of its scopes."""
    return span.scope.name.startswith(SCOPE)


def kind(span: Span) -> Kind | None:
    """Model calls have the id of a generation, steps an operation of their own."""
    if _GENERATION in span.attributes:
        return "model"
    is_step = str(span.attributes.get(_OPERATION)).startswith("framework_")
    return "other" if is_step else None


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages of the conventions, with the JSON that was written in base64."""
    if isinstance(value, list):
        value = [_with_parts(message) for message in value]
    return parse_messages(value, role)


def _with_parts(message: Any) -> Any:
    if not isinstance(message, dict) or not isinstance(message.get("parts"), list):
        return message
    return message | {"parts": [_restored(part) for part in message["parts"]]}


def _restored(entry: Any) -> Any:
    """A part or a definition of a tool as in the conventions."""
    if not isinstance(entry, dict):
        return entry
    found: dict[str, Any] = {
        member: text
        for key, member in _IN_BASE64.items()
        if (text := _text(entry.get(key))) is not None
    }
    if entry.get(_IS_ERROR) is True:
        found["is_error"] = True
    return entry | found if found else entry


def _text(encoded: Any) -> str | None:
    try:
        return b64decode(encoded, validate=True).decode() if isinstance(encoded, str) else None
    except (Error, ValueError):
        return None


def _definitions(span: Span) -> Any:
    value = decoded(span.attributes.get(_DEFINITIONS))
    return list(map(_restored, value)) if isinstance(value, list) else value


AGENTO11Y = Dialect(
    name="agento11y",
    before=("genai",),
    scopes=(SCOPE,),
    matches=matches,
    kind=kind,
    reads=(_GENERATION, _OPERATION),
    outranks_conventions=True,
    messages=read_messages,
    content_setting="ClientConfig(content_capture=ContentCaptureMode.FULL)",
    fields=Fields(tool_definitions=(Derived(_definitions),)),
)

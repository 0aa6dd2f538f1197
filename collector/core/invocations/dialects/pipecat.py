"""Pipecat, own telemetry: a span for each turn of a conversation, with its model calls.

Recognised by the scopes `pipecat.turn` and `pipecat`. A conversation of many turns is one trace,
`conversation`; each `turn` below it is a run of the agent, which has no name. Model calls follow
the conventions, but their content is in `input`, `output` and `tools`. Tools have no spans, and
`output` lacks their calls, which are in the prompt of the next model call. The result of a tool
that raised, or does not exist, is a text of the framework. Calls of realtime models (`llm_request`,
`llm_response`) are not understood.
"""

from __future__ import annotations

import re
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived
from pathgauge.collector.core.invocations.messages.written_results import Result
from pathgauge.collector.core.otlp.spans import Span

_TURNS, _SERVICES = "pipecat.turn", "pipecat"
_KINDS: dict[str, Kind] = {"turn": "agent", "llm": "model"}
_NAMES = ("llm", "stt", "tts")
_FAILED = re.compile(
    "The function `[^`]*` (?:failed and returned no result|is not currently available)[.]"
)


def matches(span: Span) -> bool:
    """Turns, and the calls of services in them."""
    scope = span.scope.name
    return scope == _TURNS or (scope == _SERVICES and span.name in _NAMES)


def kind(span: Span) -> Kind | None:
    """By name: the services for speech have operations that the conventions do not know."""
    return _KINDS.get(span.name, "other")


def _answer(span: Span) -> Any:
    """What the model wrote, as a message: it is text, also if it looks like JSON."""
    text = span.attributes.get("output") if matches(span) else None
    return None if text is None else {"role": "assistant", "content": text}


def unwrap_result(value: Any) -> Result:
    """What the framework tells the model instead of a result is an error."""
    if isinstance(value, str) and _FAILED.fullmatch(value):
        return Result(value, value)
    return Result(value)


PIPECAT = Dialect(
    name="pipecat",
    before=("langsmith",),
    scopes=(_TURNS,),
    names=_NAMES,
    matches=matches,
    kind=kind,
    calls_in_next_prompt=True,
    unwrap_result=unwrap_result,
    may_be_entry=lambda span: span.name == "turn",
    fields=Fields(
        conversation_id=("conversation.id",),
        input_messages=("input",),
        output_messages=(Derived(_answer),),
        tool_definitions=("tools",),
    ),
)

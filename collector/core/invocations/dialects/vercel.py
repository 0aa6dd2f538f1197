"""The AI SDK of Vercel: its own spans (up to 6, and the legacy ones of 7), and those of 7, which
follow the GenAI conventions.

Recognised by `ai.operationId`, or by the scope `gen_ai`. A call of the SDK is an agent, whose name
is the function id that its user gave. What a model answers is spread over `ai.response.*`, text and
tool calls apart. Up to 5 a root may state the usage of its last step alone, as
`ai.usage.promptTokens`. Times are whole milliseconds, so that parallel tools start at once. An
error inside a stream leaves the status alone. In 7 the root is named after the model, and its
output says the answer before the calls that led to it.
"""

from __future__ import annotations

from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import Derived, members
from pathgauge.collector.core.invocations.messages.message import Message, Response
from pathgauge.collector.core.invocations.messages.parse import parse_messages
from pathgauge.collector.core.invocations.messages.values import as_id, as_text, decode, decoded
from pathgauge.collector.core.otlp.spans import Span

OPERATION, SCOPE = "ai.operationId", "gen_ai"

_ROOTS = (
    "ai.generateText",
    "ai.streamText",
    "ai.generateObject",
    "ai.streamObject",
    "ai.workflowAgent.stream",
)
_METADATA, _CONTEXT = "ai.telemetry.metadata.", "ai.settings.context."
_CALLS, _FINISH = "ai.response.toolCalls", "ai.response.finishReason"

_ERRORS = ("error-text", "error-json")
_OUTPUTS = ("text", "json", "content", *_ERRORS)


def matches(span: Span) -> bool:
    """Spans with the SDK's operations, and those of its newer tracer."""
    return OPERATION in span.attributes or span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """By the operation; the conventions know the newer spans."""
    operation = str(span.attributes.get(OPERATION))
    if operation in _ROOTS:
        return "agent"
    if operation.endswith((".doGenerate", ".doStream")):
        return "model"
    return "tool" if operation == "ai.toolCall" else None


def failure(span: Span) -> str | None:
    """An error that came in the stream."""
    return "error" if span.attributes.get(_FINISH) == "error" else None


def _asked(span: Span) -> Any:
    """What the user said: messages or a text."""
    prompt = members(span.attributes.get("ai.prompt"))
    said = prompt.get("messages") or prompt.get("prompt")
    return {"role": "user", "content": said} if isinstance(said, str) else said


def _answer(span: Span) -> Any:
    """What was answered, as one message; the calls alone where they were cut."""
    attributes = span.attributes
    text = attributes.get("ai.response.text") or attributes.get("ai.response.object")
    calls = decode(attributes.get(_CALLS))
    if calls.truncated:
        return attributes[_CALLS]
    if not text and not calls.value:
        return None
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": calls.value,
        "finish_reason": as_id(attributes.get(_FINISH)),
    }


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages in which results stand without the type that the SDK writes beside them for its
    models.
    """
    return tuple(
        message._replace(responses=tuple(map(_bare, message.responses)))
        for message in parse_messages(value, role)
    )


def _bare(response: Response) -> Response:
    output = response.result
    if (
        not isinstance(output, dict)
        or output.keys() != {"type", "value"}
        or output["type"] not in _OUTPUTS
    ):
        return response
    failed = (as_text(output["value"]) or "error") if output["type"] in _ERRORS else response.error
    return response._replace(result=decoded(output["value"]), error=failed)


VERCEL = Dialect(
    name="vercel",
    scopes=("ai", SCOPE),
    byte_marks=(OPERATION.encode(),),
    matches=matches,
    kind=kind,
    may_be_entry=lambda span: span.name in _ROOTS,
    failure=failure,
    messages=read_messages,
    fields=Fields(
        agent_name=("ai.telemetry.functionId",),
        conversation_id=tuple(
            wrapper + key
            for key in ("sessionId", "conversationId")
            for wrapper in (_METADATA, _CONTEXT)
        ),
        user_id=(_METADATA + "userId", _CONTEXT + "userId"),
        tool_name=("ai.toolCall.name",),
        call_id=("ai.toolCall.id",),
        arguments=("ai.toolCall.args",),
        result=("ai.toolCall.result",),
        request_model=("ai.model.id",),
        response_model=("ai.response.model",),
        input_tokens=("ai.usage.inputTokens", "ai.usage.promptTokens"),
        output_tokens=("ai.usage.outputTokens", "ai.usage.completionTokens"),
        total_input_tokens=("ai.usage.inputTokens",),
        total_output_tokens=("ai.usage.outputTokens",),
        input_messages=("ai.prompt.messages",),
        output_messages=(Derived(_answer),),
        agent_input=(Derived(_asked),),
        agent_output=(Derived(_answer),),
        finish_reasons=(_FINISH,),
        tool_definitions=("ai.prompt.tools",),
    ),
)

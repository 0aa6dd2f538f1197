"""Vercel's AI SDK: its own spans (up to 6, and the legacy spans of 7), and those of 7, which follow
the GenAI conventions.

Recognised by `ai.operationId`, or by the scope `gen_ai`. A call of the SDK is an agent; its name is
the function id that the user chose. The answer of a model is spread over `ai.response.*`, with text
and tool calls in separate attributes. Up to 5 a root span may have only the usage of its last step,
as `ai.usage.promptTokens`. Times are whole milliseconds, so parallel tools start at the same time.
An error inside a stream leaves the status unset. In 7 the root span is named after the model, and
in its output the answer precedes the calls that led to it.
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
_REFUSALS = ("AI_NoSuchToolError: ", "AI_InvalidToolInputError: ")
"""Prefixes of what 7 writes as the result of a call that it refused."""


def matches(span: Span) -> bool:
    """Spans with operations of the SDK, and those of its newer tracer."""
    return OPERATION in span.attributes or span.scope.name == SCOPE


def kind(span: Span) -> Kind | None:
    """By operation; the newer spans follow the conventions."""
    operation = str(span.attributes.get(OPERATION))
    if operation in _ROOTS:
        return "agent"
    if operation.endswith((".doGenerate", ".doStream")):
        return "model"
    if operation == "ai.toolCall":
        return "tool"
    return None


def failure(span: Span) -> str | None:
    """An error inside the stream."""
    if span.attributes.get(_FINISH) == "error":
        return "error"
    return None


def _user_input(span: Span) -> Any:
    """The messages or the text of the user."""
    prompt = members(span.attributes.get("ai.prompt"))
    content = prompt.get("messages") or prompt.get("prompt")
    if isinstance(content, str):
        return {"role": "user", "content": content}
    return content


def _answer(span: Span) -> Any:
    """The answer as one message, or only the calls if they were truncated."""
    attributes = span.attributes
    texts = [attributes.get(key) for key in ("ai.response.text", "ai.response.object")]
    text = next(filter(None, texts), "" if "" in texts else None)
    calls = decode(attributes.get(_CALLS))
    if calls.truncated:
        return attributes[_CALLS]
    if text is None and not calls.value:
        return None
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": calls.value,
        "finish_reason": as_id(attributes.get(_FINISH)),
    }


def read_messages(value: Any, role: str) -> tuple[Message, ...]:
    """Messages whose tool results lack the type that the SDK writes for its models."""
    return tuple(
        message._replace(responses=tuple(map(_unwrapped, message.responses)))
        for message in parse_messages(value, role)
    )


def _unwrapped(response: Response) -> Response:
    output = response.result
    if isinstance(output, str) and output.startswith(_REFUSALS):
        return response._replace(error=output)
    if not isinstance(output, dict) or output.keys() != {"type", "value"}:
        return response
    if output["type"] not in _OUTPUTS:
        return response
    error = response.error
    if output["type"] in _ERRORS:
        error = as_text(output["value"]) or "error"
    return response._replace(result=decoded(output["value"]), error=error)


VERCEL = Dialect(
    name="vercel",
    before=("langsmith",),
    scopes=("ai", SCOPE),
    key_prefixes=(OPERATION,),
    matches=matches,
    kind=kind,
    reads=(OPERATION,),
    may_be_entry=lambda span: span.name in _ROOTS,
    failure=failure,
    content_setting="recordInputs: true, recordOutputs: true",
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
        cached_tokens=("ai.usage.inputTokenDetails.cacheReadTokens", "ai.usage.cachedInputTokens"),
        cache_write_tokens=("ai.usage.inputTokenDetails.cacheWriteTokens",),
        total_input_tokens=("ai.usage.inputTokens",),
        total_output_tokens=("ai.usage.outputTokens",),
        input_messages=("ai.prompt.messages",),
        output_messages=(Derived(_answer),),
        agent_input=(Derived(_user_input),),
        agent_output=(Derived(_answer),),
        finish_reasons=(_FINISH,),
        tool_definitions=("ai.prompt.tools",),
    ),
)

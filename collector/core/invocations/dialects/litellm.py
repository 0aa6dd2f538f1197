"""LiteLLM's callback `otel`: model calls of any provider, made by code that has no agent framework.

Recognised by the scope `litellm`, or by the names of its spans if `OTEL_TRACER_NAME` changes the
scope. With `USE_OTEL_LITELLM_REQUEST_SPAN=true` each call is a span `litellm_request`. Its
`gen_ai.output.messages` leave out tool calls, which are in `gen_ai.completion.<i>.function_call.*`,
without ids. Below it is `raw_gen_ai_request`, with the request and the response of the provider as
`llm.<provider>.<member>`, mostly Python `repr`: it has the ids. It is absent if content is switched
off, and empty if the call was streamed.

Without that variable, a call inside of another span has no span but the raw one. Its other
attributes are written onto the span around it, whoever made that: those of the last call win, or
those of an earlier one if that span ended before the last call was logged. A failed call has no raw
span at all: what it wrote there is the only record, mixed with the answer of the call before.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pathgauge.collector.core.invocations.dialects.dialect import Dialect, Fields, Kind
from pathgauge.collector.core.invocations.dialects.field_paths import (
    Derived,
    Flattened,
    JsonMember,
    members,
    unflattened,
)
from pathgauge.collector.core.invocations.messages.values import as_int, decoded
from pathgauge.collector.core.otlp.spans import Attributes, Span

SCOPE = "litellm"
RAW, REQUEST = "raw_gen_ai_request", "litellm_request"

_CALL_ID, _COST = "litellm.call_id", "gen_ai.cost.total_cost"
_REQUEST_MODEL, _RESPONSE_ID = "gen_ai.request.model", "gen_ai.response.id"
_OPERATION, _REQUEST_TYPE = "gen_ai.operation.name", "llm.request.type"
_ERROR_TYPE, _OUTPUT = "error.type", "gen_ai.output.messages"

_MODEL_CALLS = ("completion", "chat", "responses", "messages", "generate_content")
"""Parts of the names of the functions that call a model: `acompletion`, `text_completion`."""

_PROVIDERS = (
    "anthropic",
    "azure",
    "azure_ai",
    "bedrock",
    "cohere_chat",
    "deepseek",
    "gemini",
    "groq",
    "hosted_vllm",
    "litellm_proxy",
    "mistral",
    "ollama_chat",
    "openai",
    "openrouter",
    "together_ai",
    "vertex_ai",
    "xai",
)
"""The providers whose numbers and ids are kept without content. Any other is read with content."""

_INPUTS = ("messages", "contents", "input")
_OUTPUTS = ("choices", "candidates", "output", "message", "content")
_USAGES = ("usage", "usageMetadata")
_IDS, _MODELS = ("id", "responseId"), ("model", "modelVersion")
_INPUT_TOKENS = ("prompt_tokens", "input_tokens", "inputTokens", "promptTokenCount")
_OUTPUT_TOKENS = ("completion_tokens", "output_tokens", "outputTokens", "candidatesTokenCount")
_BESIDE_INPUT = ("cache_read_input_tokens", "cache_creation_input_tokens")
"""Tokens that Anthropic does not count as input, but all others do."""

_RAW_KEY = re.compile(r"(llm\.[^.]+\.)[^.]+")

_WRITTEN = (
    "gen_ai.request.",
    "gen_ai.response.",
    "gen_ai.usage.",
    "gen_ai.cost.",
    "gen_ai.input.",
    "gen_ai.output.",
    "gen_ai.prompt.",
    "gen_ai.completion.",
    "gen_ai.openai.",
    "gen_ai.system",
    "gen_ai.provider.",
    _OPERATION,
    "llm.",
    "litellm.",
    "hidden_params",
)
"""Prefixes of the keys that a call writes onto the span around it."""

_OF_RESPONSE = ("gen_ai.response.", "gen_ai.usage.", "gen_ai.output.", "gen_ai.completion.")
_OF_FAILURE = ("error.code", "error.llm_provider")


def _is_own(span: Span) -> bool:
    return span.scope.name == SCOPE or span.name in (RAW, REQUEST)


def matches(span: Span) -> bool:
    """Its own spans, and those of others onto which a call was written."""
    attributes = span.attributes
    if _is_own(span):
        return True
    return _REQUEST_MODEL in attributes and (_CALL_ID in attributes or _COST in attributes)


def kind(span: Span) -> Kind | None:
    """By the function that was called; the raw span is a model call without any."""
    attributes = span.attributes
    if not _is_own(span):
        return None
    if _REQUEST_MODEL in attributes:
        called = str(attributes.get(_REQUEST_TYPE) or attributes.get(_OPERATION) or "chat")
        return "model" if any(part in called for part in _MODEL_CALLS) else "other"
    if span.name == RAW or _raw_key(span, (*_OUTPUTS, *_USAGES)) is not None:
        return "other" if _raw(span, ("object",)) == "list" else "model"  # A list of embeddings.
    return None


def written_call(attributes: Attributes) -> tuple[Attributes, Attributes]:
    """Of a call that failed, nothing of an answer: that was of an earlier call. Of any other, no
    error: that was of an earlier attempt.
    """
    with_failure = any(key in attributes for key in _OF_FAILURE)
    own: dict[str, Any] = {}
    call: dict[str, Any] = {}
    for key, value in attributes.items():
        is_written = key.startswith(_WRITTEN) or (with_failure and key.startswith("error."))
        (call if is_written else own)[key] = value
    response_id = call.get(_RESPONSE_ID)
    has_failed = _ERROR_TYPE in call and call.get(_CALL_ID, response_id) == response_id
    unwanted = _OF_RESPONSE if has_failed else ("error.",)
    return own, {key: value for key, value in call.items() if not key.startswith(unwanted)}


def _raw_key(span: Span, names: tuple[str, ...]) -> str | None:
    """The key of the first member in the raw request and response that exists."""
    if not _is_own(span) or _REQUEST_MODEL in span.attributes:
        return None
    raw_keys = filter(None, map(_RAW_KEY.fullmatch, span.attributes))
    provider = next((match[1] for match in raw_keys), "")
    keys = (f"{provider}{name}" for name in names)
    return next((key for key in keys if key in span.attributes), None)


def _raw(span: Span, names: tuple[str, ...]) -> Any:
    key = _raw_key(span, names)
    if key is None:
        return None
    return span.parsed(key, decoded)


def input_of(span: Span) -> Any:
    """The prompt in the raw request. Objects among the messages make its `repr` unreadable."""
    value = _raw(span, _INPUTS)
    if isinstance(value, str) and value[:1] in ("[", "{"):
        return None
    return value


def output_of(span: Span) -> Any:
    """The answer in the raw response."""
    key = _raw_key(span, _OUTPUTS)
    value = span.parsed(key, decoded) if key is not None else None
    if not isinstance(value, list | dict):
        return None
    if key is not None and key.endswith(".content"):  # Of Anthropic.
        return {"role": "assistant", "content": value}
    return value


def request_output_of(span: Span) -> Any:
    """The answer that LiteLLM wrote, with the calls that it wrote elsewhere."""
    if not _is_own(span):
        return None
    listed = unflattened(span.attributes, "gen_ai.completion.")
    choices = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    calls = [{"function": one["function_call"]} for one in choices if "function_call" in one]
    messages = decoded(span.attributes.get(_OUTPUT))
    if not isinstance(messages, list) or not messages:
        messages = choices[:1]
    first = messages[0] if messages else None
    if not isinstance(first, dict) or not calls or _has_call(messages):
        return messages or None
    return [{**first, "role": "assistant", "tool_calls": calls}, *messages[1:]]


def _has_call(messages: list[Any]) -> bool:
    """Whether the calls are among the messages, as those of OpenAI's responses are."""
    parts = [members(message).get("parts") for message in messages]
    return any(
        members(part).get("type") == "tool_call"
        for listed in parts
        if isinstance(listed, list)
        for part in listed
    )


def _usage(span: Span) -> Mapping[str, Any]:
    return members(_raw(span, _USAGES))


def _count(usage: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    return next((as_int(usage[name]) for name in names if name in usage), None)


def input_tokens_of(span: Span) -> int | None:
    """All tokens of the prompt in the raw response."""
    usage = _usage(span)
    count = _count(usage, _INPUT_TOKENS)
    if count is None or "prompt_tokens" in usage:
        return count
    return count + sum(as_int(usage.get(name)) or 0 for name in _BESIDE_INPUT)


def _keys(*names: str) -> tuple[str, ...]:
    return tuple(f"llm.{provider}.{name}" for provider in _PROVIDERS for name in names)


def _usage_members(*names: str) -> tuple[JsonMember, ...]:
    return tuple(JsonMember(key, (name,)) for key in _keys(*_USAGES) for name in names)


def _function(names: tuple[str, ...]) -> Derived:
    return Derived(lambda span: _raw(span, names), reads=_keys(*names))


LITELLM = Dialect(
    name="litellm",
    before=("openllmetry", "openllmetry_agents"),
    scopes=(SCOPE,),
    names=(RAW, REQUEST),
    key_prefixes=(_CALL_ID, _COST),
    matches=matches,
    kind=kind,
    reads=(
        _CALL_ID,
        _COST,
        _REQUEST_MODEL,
        _RESPONSE_ID,
        _OPERATION,
        _REQUEST_TYPE,
        *_OF_FAILURE,
        *_keys("object"),
    ),
    written_call=written_call,
    outranks_conventions=True,
    content_setting="message_logging=True",
    fields=Fields(
        response_model=("gen_ai.response.model", _function(_MODELS)),
        response_id=(_RESPONSE_ID, _function(_IDS)),
        input_tokens=(
            Derived(input_tokens_of, reads=_usage_members(*_INPUT_TOKENS, *_BESIDE_INPUT)),
        ),
        output_tokens=(
            Derived(
                lambda span: _count(_usage(span), _OUTPUT_TOKENS),
                reads=_usage_members(*_OUTPUT_TOKENS),
            ),
        ),
        input_messages=("gen_ai.input.messages", Derived(input_of)),
        output_messages=(Derived(output_of), Derived(request_output_of)),
        tool_definitions=(
            Derived(lambda span: _raw(span, ("tools",))),
            Flattened("llm.request.functions"),
        ),
    ),
)

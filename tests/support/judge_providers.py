"""Behaviour of real providers for a `JudgeServer`: which parameters they refuse, and with which
texts. The texts are those that users of these providers have reported.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from support.judge_server import JudgeRequest, Reply, completion

Provider = Callable[[JudgeRequest], Reply]

REASONING_TOKENS = 3000
"""What the reasoning models here need before they answer."""


def refusal(body: Any, status: int = 400) -> Reply:
    """An error response with this JSON body."""
    return Reply(status, json.dumps(body).encode(), {"Content-Type": "application/json"})


def openai_error(message: str, param: str | None = None, code: str | None = None) -> Reply:
    """An error in the notation of OpenAI."""
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return refusal({"error": error})


def o_series(answer: Reply) -> Provider:
    """o3-mini and its siblings: no temperature, no `max_tokens`, and reasoning before the text."""

    def reply(request: JudgeRequest) -> Reply:
        if "max_tokens" in request.body:
            text = (
                "Unsupported parameter: 'max_tokens' is not supported with this model. Use"
                " 'max_completion_tokens' instead."
            )
            return openai_error(text, "max_tokens", "unsupported_parameter")
        if "temperature" in request.body:
            text = "Unsupported parameter: 'temperature' is not supported with this model."
            return openai_error(text, "temperature", "unsupported_parameter")
        limit = request.body["max_completion_tokens"]
        if limit < REASONING_TOKENS:
            return reasoning(completion("", finish_reason="length"), limit)
        return reasoning(answer, REASONING_TOKENS)

    return reply


def gpt_5(answer: Reply) -> Provider:
    """gpt-5: only the default temperature."""

    def reply(request: JudgeRequest) -> Reply:
        if request.body.get("temperature", 1) != 1:
            text = (
                "Unsupported value: 'temperature' does not support 0.0 with this model. Only the"
                " default (1) value is supported."
            )
            return openai_error(text, "temperature", "unsupported_value")
        return answer

    return reply


def refusing(parameter: str, refused: Reply) -> Callable[[Reply], Provider]:
    """A provider that refuses one parameter, and needs no other."""

    def provider(answer: Reply) -> Provider:
        return lambda request: refused if parameter in request.body else answer

    return provider


def without_schemas(refused: Reply) -> Callable[[Reply], Provider]:
    """A provider whose `response_format` knows `json_object`, but no schema."""

    def provider(answer: Reply) -> Provider:
        def reply(request: JudgeRequest) -> Reply:
            form = request.body.get("response_format", {"type": "text"})
            return refused if form["type"] == "json_schema" else answer

        return reply

    return provider


EXTRA_INPUT = {
    "type": "extra_forbidden",
    "loc": ["body", "max_completion_tokens"],
    "msg": "Extra inputs are not permitted",
    "input": 77,
}
PROVIDERS: dict[str, Callable[[Reply], Provider]] = {
    "OpenAI o-series": o_series,
    "OpenAI gpt-5": gpt_5,
    "Mistral": refusing(
        "max_completion_tokens",
        refusal({"object": "error", "message": {"detail": [EXTRA_INPUT]}, "param": None}, 422),
    ),
    "Mistral, codestral": refusing(
        "max_completion_tokens", refusal({"detail": [EXTRA_INPUT]}, 422)
    ),
    "Mistral, proxy": refusing(
        "max_completion_tokens",
        refusal({"object": "error", "message": json.dumps({"detail": [EXTRA_INPUT]})}, 422),
    ),
    "vLLM": refusing(
        "max_completion_tokens",
        refusal({"object": "error", "message": str([EXTRA_INPUT]), "param": None, "code": 400}),
    ),
    "Azure, older version": refusing(
        "max_completion_tokens",
        openai_error("Unrecognized request argument supplied: max_completion_tokens"),
    ),
    "Gemini": refusing(
        "max_completion_tokens",
        refusal(
            [
                {
                    "error": {
                        "code": 400,
                        "message": (
                            "Invalid JSON payload received. Unknown name"
                            ' "max_completion_tokens": Cannot find field.'
                        ),
                        "status": "INVALID_ARGUMENT",
                    }
                }
            ]
        ),
    ),
    "Cohere": refusing(
        "max_completion_tokens",
        refusal({"message": "unknown field: 'max_completion_tokens' is not a valid field"}, 422),
    ),
    "LiteLLM": refusing(
        "temperature",
        openai_error(
            "litellm.UnsupportedParamsError: openai does not support parameters:"
            " ['temperature'], for model=o3-mini."
        ),
    ),
    "LiteLLM, wrong member": refusing(
        "temperature",
        openai_error(
            "Unsupported parameter: 'temperature' is not supported with this model.",
            "model",
            "unsupported_parameter",
        ),
    ),
    "OpenRouter": refusing(
        "temperature",
        refusal(
            {
                "error": {
                    "message": "Provider returned error",
                    "code": 400,
                    "metadata": {
                        "raw": '{"error": {"message": "`temperature` is deprecated for this'
                        ' model."}}'
                    },
                }
            }
        ),
    ),
    "Moonshot": refusing(
        "temperature", openai_error("invalid temperature: only 1 is allowed for this model")
    ),
    "plain text": refusing("temperature", Reply(400, b"temperature is not supported")),
    "Ollama": refusing("response_format", refusal({"error": "unsupported response_format"})),
    "DeepSeek": without_schemas(openai_error("This response_format type is unavailable now")),
    "DeepSeek, earlier": without_schemas(
        refusal(
            {
                "error": {
                    "message": (
                        "Failed to deserialize the JSON body into the target type:"
                        " response_format: response_format.type `json_schema` is unavailable now"
                        " at line 1 column 1193"
                    )
                }
            },
            422,
        )
    ),
    "Groq": without_schemas(
        openai_error(
            "This model does not support response format `json_schema`.", "response_format"
        )
    ),
    "OpenAI, older model": without_schemas(
        openai_error(
            "Invalid value: 'json_schema'. Supported values are: 'json_object' and 'text'.",
            "response_format.type",
            "invalid_value",
        )
    ),
}
"""Each refuses something that it is sent at first."""


def reasoning(reply: Reply, tokens: int) -> Reply:
    """The completion, with this many reasoning tokens in its usage."""
    body = json.loads(reply.body)
    usage = body["usage"]
    usage["completion_tokens"] += tokens
    usage["completion_tokens_details"] = {"reasoning_tokens": tokens}
    return Reply(reply.status, json.dumps(body).encode(), reply.headers)

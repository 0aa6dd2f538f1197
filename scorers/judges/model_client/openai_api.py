"""Client for one server with the OpenAI chat completions API.

This module loads the `openai` package, which takes about a second.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeGuard

import httpx2
import openai
from openai.types.chat import ChatCompletion

from pathgauge.scorers.judges.model_client import error_bodies, failures
from pathgauge.scorers.judges.model_client.accepted_parameters import PARAMETERS
from pathgauge.scorers.judges.model_client.allowed_connections import (
    AddressRefusedError,
    CheckedBackend,
    Resolve,
    resolve,
)
from pathgauge.scorers.judges.model_client.failures import CallError
from pathgauge.scorers.judges.model_client.prompts import Messages, Prompt
from pathgauge.scorers.judges.model_client.retries import retry_after
from pathgauge.scorers.judges.model_client.settings import Provider
from pathgauge.scorers.judges.model_client.transport import (
    MAX_BYTES,
    BoundedTransport,
    ResponseTooLargeError,
)
from pathgauge.scorers.types import Json

# They log every request, including the response headers.
for _name in ("httpcore2", "httpx2"):
    logging.getLogger(_name).setLevel(logging.WARNING)

_CONNECT_TIMEOUT_S = 5.0
_MAX_TOKENS = 10_000_000
"""Token counts of one answer above this limit are considered wrong and ignored."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a model."""

    text: str
    refused: bool = False
    max_tokens: int = 0
    """The limit for the answer."""
    cut: bool = False
    """The answer reached that limit."""
    starved: bool = False
    """It reached it because of reasoning, which is not in the text."""
    tokens: tuple[int, int] | None = None
    """Input and output tokens; `None`: not reported."""


class Client:
    """A client for one server. It belongs to one event loop."""

    def __init__(
        self,
        provider: Provider,
        connections: int,
        *,
        wall: Callable[[], float] = time.time,
        resolve: Resolve = resolve,
    ) -> None:
        """`wall` returns Unix seconds.

        Raises `OSError` if `ca_file` cannot be read, `ValueError` if `base_url` is not a URL.
        """
        self._wall = wall
        tls: ssl.SSLContext | None = None
        if provider.base_url.startswith("https:"):
            tls = ssl.create_default_context(cafile=provider.ca_file)
        backend = CheckedBackend(allow_private=provider.allow_private, resolve=resolve)
        try:
            url = httpx2.URL(provider.base_url)
        except httpx2.InvalidURL as error:
            raise ValueError("not a URL") from error
        self._api_key = provider.api_key
        credentials = _credentials(provider.api_key, url)
        client = openai.AsyncOpenAI(
            base_url=url.copy_with(query=None),
            default_query=dict(url.params),
            # The library never has the key, so its logs and exceptions cannot contain it.
            api_key="sent by the transport",
            max_retries=0,  # `retries` handles them
            http_client=httpx2.AsyncClient(
                transport=BoundedTransport(backend, tls, credentials, connections),
                trust_env=False,
                follow_redirects=False,
                # The caller limits the whole call.
                timeout=httpx2.Timeout(None, connect=_CONNECT_TIMEOUT_S),
            ),
        )
        self._close = client.close
        self._create = client.chat.completions.create  # loads the rest of the package

    async def complete(self, model: str, prompt: Prompt, messages: Messages) -> Completion:
        """Send one request. Raises `CallError`."""
        result = await self._request(model, prompt, messages)
        if isinstance(result, CallError):
            raise result
        return result

    async def aclose(self) -> None:
        """Close all connections."""
        await self._close()

    async def _request(
        self, model: str, prompt: Prompt, messages: Messages
    ) -> Completion | CallError:
        """Returns a failure instead of raising it.

        Raised here, it would keep a reference to the library's exception, which quotes the server.
        """
        try:
            answer = await self._create(
                model=model,
                # The library's type is a union of one class per role.
                messages=messages,  # type: ignore[arg-type]
                # Unlike named parameters, these are not converted, which takes a millisecond.
                extra_body=prompt.parameters,
            )
            return self._completion(answer, prompt)
        except openai.APIStatusError as error:
            return self._status_failure(error, prompt)
        except openai.APIError as error:
            return _api_failure(error)
        except AddressRefusedError:
            return failures.address_refused()
        except ResponseTooLargeError:
            return failures.too_large(MAX_BYTES)
        except (ValueError, RecursionError, openai.OpenAIError):
            return failures.not_a_completion()

    def _status_failure(self, error: openai.APIStatusError, prompt: Prompt) -> CallError:
        body = error_bodies.json_of(error.response.text)
        pause = retry_after(error.response.headers, self._wall())
        text = self._shown(error_bodies.text_of(body), prompt)
        failure = failures.of_status(error.status_code, pause, error.code, text)
        if error.status_code in failures.BAD_REQUEST:
            sent = [name for name in PARAMETERS if name in prompt.parameters]
            failure.refused = error_bodies.refused_parameter(body, sent)
        return failure

    def _completion(self, answer: object, prompt: Prompt) -> Completion | CallError:
        """The first choice. The library does not validate types, so they are checked here."""
        choices = answer.choices if isinstance(answer, ChatCompletion) else None
        choice: Any = choices[0] if isinstance(choices, list) and choices else None
        message = getattr(choice, "message", None)
        if message is None:
            error = error_bodies.text_of(getattr(answer, "error", None))
            return failures.not_a_completion(self._shown(error, prompt))
        finish_reason = getattr(choice, "finish_reason", None)
        cut = finish_reason == "length"
        refusal = getattr(message, "refusal", None)
        text = getattr(message, "content", None) or refusal
        usage = getattr(answer, "usage", None)
        return Completion(
            text if isinstance(text, str) else "",
            refused=bool(refusal) or finish_reason == "content_filter",
            max_tokens=prompt.max_tokens,
            cut=cut,
            starved=cut and (not text or _has_reasoning(usage)),
            tokens=_tokens(usage),
        )

    def _shown(self, text: str, prompt: Prompt) -> str:
        content: Json = [prompt.sent_data(), dict(prompt.rejected)]
        return error_bodies.shown(text, self._api_key, content)


def _credentials(api_key: str, url: httpx2.URL) -> dict[str, str]:
    """The header with the key. Azure, whose URLs have an `api-version`, has its own."""
    if not api_key:
        return {}
    if "api-version" in url.params:
        return {"api-key": api_key}
    return {"Authorization": f"Bearer {api_key}"}


def _api_failure(error: openai.APIError) -> CallError:
    if isinstance(error, openai.APITimeoutError):
        return failures.timed_out()
    if not isinstance(error, openai.APIConnectionError):
        return failures.not_a_completion()
    if isinstance(error.__cause__, httpx2.ConnectError):
        return failures.not_connected()
    return failures.connection_lost()


def _has_reasoning(usage: object) -> bool:
    details = getattr(usage, "completion_tokens_details", None)
    tokens = getattr(details, "reasoning_tokens", None)
    return _is_token_count(tokens) and tokens > 0


def _tokens(usage: object) -> tuple[int, int] | None:
    prompt = getattr(usage, "prompt_tokens", None)
    completion = getattr(usage, "completion_tokens", None)
    if _is_token_count(prompt) and _is_token_count(completion):
        return prompt, completion
    return None


def _is_token_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_TOKENS

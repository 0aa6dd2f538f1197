"""One server that speaks the chat completions of OpenAI: messages come in, what the model answered
goes out, or `CallError`.

This module loads the `openai` package, which takes a second.
"""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2
import openai
from openai.types.chat import ChatCompletion

from pathgauge.scorers.judges.model_client import failures
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

for _name in (
    "httpcore2",
    "httpx2",
):  # which write lines for every request, with the headers of responses
    logging.getLogger(_name).setLevel(logging.WARNING)

_CONNECT_S = 5.0
_MAX_TOKENS = 10_000_000
"""Of one answer; a server that reports more is not believed."""


@dataclass(frozen=True, slots=True)
class Completion:
    """What a model answered."""

    text: str
    refused: bool = False
    cut: bool = False
    """It ended because of its length."""
    tokens: tuple[int, int] | None = None
    """Of the question and of the answer; `None`: not reported."""


class Client:
    """A server; belongs to one event loop. `wall` gives Unix seconds.

    Raises `OSError` for a `ca_file` that cannot be read, and `ValueError` for a `base_url` that is
    none.
    """

    def __init__(
        self,
        provider: Provider,
        connections: int,
        *,
        wall: Callable[[], float] = time.time,
        resolve: Resolve = resolve,
    ) -> None:
        self._wall = wall
        tls = (
            ssl.create_default_context(cafile=provider.ca_file)
            if provider.base_url.startswith("https:")
            else None
        )
        backend = CheckedBackend(allow_private=provider.allow_private, resolve=resolve)
        try:
            httpx2.URL(provider.base_url)
        except httpx2.InvalidURL as error:
            raise ValueError("not a URL") from error
        authorization = f"Bearer {provider.api_key}" if provider.api_key else ""
        client = openai.AsyncOpenAI(
            base_url=provider.base_url,
            # which no log and no exception of the library can show
            api_key="sent by the transport",
            max_retries=0,  # `retries` is ours
            http_client=httpx2.AsyncClient(
                transport=BoundedTransport(backend, tls, authorization, connections),
                trust_env=False,
                follow_redirects=False,
                timeout=httpx2.Timeout(
                    None, connect=_CONNECT_S
                ),  # whoever calls sets one for the whole call
            ),
        )
        self._close = client.close
        self._create = client.chat.completions.create  # loads the rest of the package

    async def complete(self, model: str, prompt: Prompt, messages: Messages) -> Completion:
        """One request. Raises `CallError`."""
        found = await self._answer(model, prompt, messages)
        if isinstance(found, CallError):
            raise found
        return found

    async def aclose(self) -> None:
        """Close all connections."""
        await self._close()

    async def _answer(
        self, model: str, prompt: Prompt, messages: Messages
    ) -> Completion | CallError:
        """A failure is handed back and not raised here: raised, it would hold on to the error of
        the library, which quotes the server.
        """
        optional: dict[str, Any] = {
            "temperature": prompt.temperature,
            "response_format": prompt.response_format,
        }
        given: Any = {name: value for name, value in optional.items() if value is not None}
        try:
            return _completion(
                await self._create(
                    model=model,
                    # typed as one of many classes by role
                    messages=messages,  # type: ignore[arg-type]
                    max_completion_tokens=prompt.max_tokens,
                    **given,
                )
            )
        except openai.APIStatusError as error:
            return failures.of_status(
                error.status_code, retry_after(error.response.headers, self._wall()), error.code
            )
        except openai.APITimeoutError:
            return failures.timed_out()
        except openai.APIConnectionError as error:
            return (
                failures.not_connected()
                if isinstance(error.__cause__, httpx2.ConnectError)
                else failures.broken()
            )
        except AddressRefusedError:
            return failures.address_refused()
        except ResponseTooLargeError:
            return failures.too_large(MAX_BYTES)
        except (ValueError, RecursionError, openai.OpenAIError):
            return failures.not_a_completion()


def _completion(answer: object) -> Completion | CallError:
    """The first choice. The library checks no types, so nothing is taken for granted here."""
    choices = answer.choices if isinstance(answer, ChatCompletion) else None
    choice: Any = choices[0] if isinstance(choices, list) and choices else None
    message = getattr(choice, "message", None)
    if message is None:
        return failures.not_a_completion()
    ended = getattr(choice, "finish_reason", None)
    text = getattr(message, "content", None)
    refused = bool(getattr(message, "refusal", None)) or ended == "content_filter"
    return Completion(
        text if isinstance(text, str) else "",
        refused,
        ended == "length",
        _tokens(getattr(answer, "usage", None)),
    )


def _tokens(usage: object) -> tuple[int, int] | None:
    counts = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
    match counts:
        case [int() as asked, int() as answered] if all(
            not isinstance(count, bool) and 0 <= count <= _MAX_TOKENS for count in (asked, answered)
        ):
            return asked, answered
        case _:
            return None

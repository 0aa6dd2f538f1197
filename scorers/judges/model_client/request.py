"""One request to a model, when everything allows it: budget, circuit breaker, a free place, and
time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pathgauge.scorers.judge_protocol import JudgeError
from pathgauge.scorers.judges.model_client import failures
from pathgauge.scorers.judges.model_client.budget import Budget, Charge
from pathgauge.scorers.judges.model_client.circuit_breaker import Breaker, Passage
from pathgauge.scorers.judges.model_client.failures import CallError
from pathgauge.scorers.judges.model_client.observer import Observer
from pathgauge.scorers.judges.model_client.prompts import Messages, Prompt
from pathgauge.scorers.judges.model_client.settings import Model, Provider, Settings

if TYPE_CHECKING:
    from pathgauge.scorers.judges.model_client.allowed_connections import Resolve
    from pathgauge.scorers.judges.model_client.openai_api import Client, Completion


class Caller:
    """Talks to all providers; belongs to one event loop. `clock` gives seconds that never go back,
    `wall` Unix seconds.
    """

    def __init__(
        self,
        settings: Settings,
        budget: Budget,
        observer: Observer,
        *,
        clock: Callable[[], float],
        wall: Callable[[], float],
        resolve: Resolve | None = None,
    ) -> None:
        self._settings = settings
        self._budget = budget
        self._observer = observer
        self._clock = clock
        self._wall = wall
        self._resolve = resolve
        self._places = asyncio.Semaphore(settings.concurrency)
        self._breakers: dict[Model, Breaker] = {}
        self._clients: dict[str, Client] = {}
        self._connecting = asyncio.Lock()

    async def __call__(self, model: Model, prompt: Prompt, deadline: float) -> Completion:
        """One request, which ends before `deadline` of `clock`. Raises `CallError` where it was
        made, `JudgeError` where it was not.
        """
        client = await self._client(model.provider)
        messages = prompt.messages()
        charge = self._budget.reserve(
            prompt.input_tokens(messages), prompt.max_tokens, self._settings.price(model)
        )
        breaker = self._breakers.setdefault(model, Breaker(self._clock))
        passage: Passage | None = None
        try:
            if not breaker.lets_through:
                raise _circuit_open()
            async with self._place(deadline):
                passage = breaker.begin()
                if passage is None:
                    raise _circuit_open()
                return await self._told(
                    model,
                    charge,
                    breaker,
                    passage,
                    self._timed(client, model, prompt, messages, deadline),
                )
        finally:
            if passage is None:
                self._budget.release(charge)

    def circuits(self) -> list[tuple[Model, bool]]:
        """Each model that was asked, and whether its circuit is open."""
        return [
            (model, not breaker.lets_through) for model, breaker in list(self._breakers.items())
        ]

    async def aclose(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.aclose()

    @asynccontextmanager
    async def _place(self, deadline: float) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(deadline - self._clock()):
                await self._places.acquire()
        except TimeoutError:
            raise JudgeError(
                "judge_timeout", "too many requests are under way to make another one in time"
            ) from None
        try:
            yield
        finally:
            self._places.release()

    async def _timed(
        self, client: Client, model: Model, prompt: Prompt, messages: Messages, deadline: float
    ) -> Completion:
        try:
            async with asyncio.timeout(min(self._settings.timeout, deadline - self._clock())):
                return await client.complete(model.name, prompt, messages)
        except TimeoutError:
            raise failures.timed_out() from None

    async def _told(
        self,
        model: Model,
        charge: Charge,
        breaker: Breaker,
        passage: Passage,
        call: Awaitable[Completion],
    ) -> Completion:
        """The outcome of a call, told to budget, breaker and observer."""
        began = self._clock()
        code, server = "cancelled", "unknown"
        try:
            completion = await call
            code, server = "200", "up"
        except CallError as failure:
            code, server = failure.code, failure.server
            if not failure.uses:
                self._budget.book(charge, 0, 0)
            raise
        finally:
            {"up": breaker.succeeded, "down": breaker.failed, "unknown": breaker.abandoned}[server](
                passage
            )
            self._observer.request(model.label, code, self._clock() - began)
        if completion.tokens is not None:
            self._used(model, charge, *completion.tokens)
        return completion

    def _used(self, model: Model, charge: Charge, asked: int, answered: int) -> None:
        usd = self._budget.book(charge, asked, answered)
        self._observer.tokens(model.label, "input", asked)
        self._observer.tokens(model.label, "output", answered)
        if usd is not None:
            self._observer.cost(model.label, usd)

    async def _client(self, provider: str) -> Client:
        async with self._connecting:
            if provider not in self._clients:
                self._clients[provider] = await asyncio.to_thread(
                    self._connected, self._settings.provider(provider)
                )
            return self._clients[provider]

    def _connected(self, provider: Provider) -> Client:
        """Loads the `openai` package, which takes a second or two."""
        options = {} if self._resolve is None else {"resolve": self._resolve}
        try:
            from pathgauge.scorers.judges.model_client import openai_api  # noqa: PLC0415

            return openai_api.Client(
                provider, self._settings.concurrency, wall=self._wall, **options
            )
        except ImportError:
            raise JudgeError(
                "judge_unconfigured",
                "the package openai is not installed: pip install 'pathgauge[judge]'",
            ) from None
        except OSError:
            raise JudgeError(
                "judge_unavailable", "the ca_file of the provider cannot be read"
            ) from None
        except ValueError:
            raise JudgeError(
                "judge_rejected", "the base_url of the provider is not a URL"
            ) from None


def _circuit_open() -> JudgeError:
    return JudgeError(
        "judge_unavailable", "the last calls failed, so that none is made for a while"
    )

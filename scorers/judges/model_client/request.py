"""Sends one request, if budget, circuit breaker, concurrency limit and deadline allow it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pathgauge.scorers.judge_protocol import JudgeError
from pathgauge.scorers.judges.model_client import failures
from pathgauge.scorers.judges.model_client.accepted_parameters import AcceptedParameters
from pathgauge.scorers.judges.model_client.budget import Budget, Charge
from pathgauge.scorers.judges.model_client.circuit_breaker import Breaker, Permit
from pathgauge.scorers.judges.model_client.failures import CallError, ServerState
from pathgauge.scorers.judges.model_client.observer import Observer
from pathgauge.scorers.judges.model_client.prompts import Messages, Prompt
from pathgauge.scorers.judges.model_client.settings import Model, Provider, Settings

if TYPE_CHECKING:
    from pathgauge.scorers.judges.model_client.allowed_connections import Resolve
    from pathgauge.scorers.judges.model_client.openai_api import Client, Completion


@dataclass(frozen=True, slots=True)
class _Request:
    client: Client
    model: Model
    prompt: Prompt
    messages: Messages
    deadline: float
    charge: Charge
    breaker: Breaker


class RequestSender:
    """Sends requests to all providers. It belongs to one event loop."""

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
        """`clock` returns monotonic seconds, `wall` Unix seconds."""
        self._settings = settings
        self._budget = budget
        self._observer = observer
        self._clock = clock
        self._wall = wall
        self._resolve = resolve
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._accepted = AcceptedParameters()
        self._breakers: dict[Model, Breaker] = {}
        self._clients: dict[str, Client] = {}
        self._connecting = asyncio.Lock()

    async def __call__(self, model: Model, prompt: Prompt, deadline: float) -> Completion:
        """Send one request that ends before `deadline`, a time of `clock`. If the model refuses a
        parameter, or reasons until its answer is cut off, the request is sent again without the
        parameter, or with a higher limit.

        Raises `CallError` if the request failed, `JudgeError` if it was not sent.
        """
        while True:
            fitting = self._accepted.fit(model, prompt)
            try:
                completion = await self._request(model, fitting, deadline)
            except CallError as error:
                if error.refused is None or not self._accepted.refuse(
                    model, fitting, error.refused
                ):
                    raise
                continue
            if completion.starved and fitting.max_tokens == prompt.max_tokens:
                self._accepted.allow_reasoning(model)
            else:
                return completion

    async def _request(self, model: Model, prompt: Prompt, deadline: float) -> Completion:
        client = await self._client(model.provider)
        messages = prompt.messages()
        charge = self._budget.reserve(
            prompt.input_tokens(messages), prompt.max_tokens, self._settings.price(model)
        )
        breaker = self._breakers.setdefault(model, Breaker(self._clock))
        request = _Request(client, model, prompt, messages, deadline, charge, breaker)
        permit: Permit | None = None
        try:
            if not breaker.allows_calls:
                raise _circuit_open()
            async with self._slot(deadline):
                permit = breaker.begin()
                if permit is None:
                    raise _circuit_open()
                return await self._send_and_record(request, permit)
        finally:
            if permit is None:
                self._budget.release(charge)

    def circuits(self) -> list[tuple[Model, bool]]:
        """Each model asked so far, and whether its circuit is open."""
        return [
            (model, not breaker.allows_calls) for model, breaker in list(self._breakers.items())
        ]

    async def aclose(self) -> None:
        """Close all connections."""
        for client in self._clients.values():
            await client.aclose()

    @asynccontextmanager
    async def _slot(self, deadline: float) -> AsyncIterator[None]:
        """Hold one of the `concurrency` slots."""
        try:
            async with asyncio.timeout(deadline - self._clock()):
                await self._slots.acquire()
        except TimeoutError:
            raise JudgeError(
                "judge_timeout", "no request slot became free before the deadline"
            ) from None
        try:
            yield
        finally:
            self._slots.release()

    async def _send(self, request: _Request) -> Completion:
        timeout = min(self._settings.timeout, request.deadline - self._clock())
        try:
            async with asyncio.timeout(timeout):
                return await request.client.complete(
                    request.model.name, request.prompt, request.messages
                )
        except TimeoutError:
            raise failures.timed_out() from None

    async def _send_and_record(self, request: _Request, permit: Permit) -> Completion:
        """Send, and report the result to budget, circuit breaker and observer."""
        started = self._clock()
        code = "cancelled"
        server: ServerState = "unknown"
        try:
            completion = await self._send(request)
            code, server = "200", "up"
        except CallError as error:
            code, server = error.code, error.server
            if not error.may_be_charged:
                self._budget.book(request.charge, 0, 0)
            raise
        finally:
            request.breaker.record(permit, server)
            self._observer.request(request.model.label, code, self._clock() - started)
        if completion.tokens is not None:
            self._record_usage(request, *completion.tokens)
        return completion

    def _record_usage(self, request: _Request, input_tokens: int, output_tokens: int) -> None:
        label = request.model.label
        usd = self._budget.book(request.charge, input_tokens, output_tokens)
        self._observer.tokens(label, "input", input_tokens)
        self._observer.tokens(label, "output", output_tokens)
        if usd is not None:
            self._observer.cost(label, usd)

    async def _client(self, provider: str) -> Client:
        async with self._connecting:
            if provider not in self._clients:
                self._clients[provider] = await asyncio.to_thread(
                    self._new_client, self._settings.provider(provider)
                )
            return self._clients[provider]

    def _new_client(self, provider: Provider) -> Client:
        """Create a client. The first call loads the `openai` package, in 1 to 2 seconds."""
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
        "judge_unavailable", "the circuit breaker is open after repeated failures of the model"
    )

"""Asks models: cache, single flight, budget, deadline, concurrency limit, retries, validation.

An answer that does not fit its schema is requested once more, with a description of the error.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from pathgauge.scorers.judge_protocol import AnswerT, JudgeError, Question
from pathgauge.scorers.judges.answer_parsing import parse
from pathgauge.scorers.judges.model_client.budget import Budget
from pathgauge.scorers.judges.model_client.cache import Cache, key
from pathgauge.scorers.judges.model_client.failures import CallError
from pathgauge.scorers.judges.model_client.observer import NullObserver, Observer
from pathgauge.scorers.judges.model_client.prompts import Prompt, prompt
from pathgauge.scorers.judges.model_client.request import RequestSender
from pathgauge.scorers.judges.model_client.retries import Backoff
from pathgauge.scorers.judges.model_client.settings import Model, Settings
from pathgauge.scorers.judges.model_client.single_flight import SingleFlight

if TYPE_CHECKING:
    from pathgauge.scorers.judges.model_client.allowed_connections import Resolve
    from pathgauge.scorers.judges.model_client.openai_api import Completion


class ModelClient:
    """An `Ask`. It belongs to one event loop.

    It opens no connection and does not load the `openai` package before the first question.
    """

    def __init__(
        self,
        settings: Settings,
        observer: Observer | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        draw: Callable[[], float] = random.random,
        resolve: Resolve | None = None,
    ) -> None:
        """`clock` returns monotonic seconds, `wall` Unix seconds, `draw` random numbers in 0..1."""
        self.settings = settings
        self.budget = Budget(settings.limits, wall)
        self._observer = observer or NullObserver()
        self._clock = clock
        self._send = RequestSender(
            settings, self.budget, self._observer, clock=clock, wall=wall, resolve=resolve
        )
        self._retry = Backoff(settings.retries, clock, sleep, draw)
        self._cache = Cache(settings.cache_size, settings.max_cache_bytes)
        self._in_flight: SingleFlight[str] = SingleFlight()

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        """Return the answer, validated against `question.answer`. Raises `JudgeError`."""
        model = self.settings.resolve(question.model)
        provider = self.settings.provider(model.provider)
        request = prompt(question, provider.structured_output)
        cache_key = key([*model, provider.base_url, *request.key_parts()])
        text = self._look_up(model, cache_key)
        if text is None:
            text = await self._in_flight.run(
                cache_key, lambda: self._answer(model, request, question.answer, cache_key)
            )
        try:
            return parse(text, question.answer)
        except ValueError as error:
            raise _malformed(str(error), text) from None

    def circuits(self) -> list[tuple[str, bool]]:
        """Each model asked so far, and whether its circuit is open. Callable from any thread."""
        return [(model.label, is_open) for model, is_open in self._send.circuits()]

    async def aclose(self) -> None:
        """Cancel open questions (`judge_unavailable`) and close all connections."""
        await self._in_flight.aclose()
        await self._send.aclose()

    def _look_up(self, model: Model, cache_key: str) -> str | None:
        """The cached text, if any; reports the cache result."""
        text = self._cache.get(cache_key)
        if cache_key in self._in_flight:
            self._observer.cached(model.label, "joined")
        elif text is None:
            self._observer.cached(model.label, "miss")
        else:
            self._observer.cached(model.label, "hit")
        return text

    async def _answer(
        self, model: Model, request: Prompt, schema: type[BaseModel], cache_key: str
    ) -> str:
        """The text of a valid answer, which is then cached."""
        deadline = self._clock() + self.settings.deadline
        completion = await self._complete(model, request, deadline)
        error = _error_in(completion, schema)
        if error is not None and not completion.cut:
            correction = request.with_rejected_answer(completion.text, error)
            completion = await self._complete(model, correction, deadline)
            error = _error_in(completion, schema)
        if error is not None and completion.cut:
            error = f"it was cut off at {completion.max_tokens} tokens"
        if error is not None:
            raise _malformed(error, completion.text)
        self._cache.put(cache_key, completion.text)
        return completion.text

    async def _complete(self, model: Model, request: Prompt, deadline: float) -> Completion:
        try:
            completion = await self._retry(lambda: self._send(model, request, deadline), deadline)
        except CallError as error:
            raise JudgeError(error.reason, str(error)) from None
        if completion.refused:
            raise JudgeError("judge_refused", "the model refused to answer", completion.text)
        return completion


def _error_in(completion: Completion, schema: type[Any]) -> str | None:
    """Why an answer cannot be used. `None`: it is valid."""
    try:
        parse(completion.text, schema, cut=completion.cut)
    except ValueError as error:
        return str(error)
    return None


def _malformed(error: str, answer: str) -> JudgeError:
    return JudgeError("judge_malformed", f"the answer cannot be used: {error}", answer)

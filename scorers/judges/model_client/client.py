"""Asks models: a `Question` comes in, its checked answer goes out, or `JudgeError` with the reason.

An answer that was given before is not asked for again, nor one that is under way. Everything else
goes out within budget, deadline and concurrency, is repeated when the server says so, and asked
once more when the answer cannot be read.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from pathgauge.scorers.judge_protocol import AnswerT, JudgeError, Question
from pathgauge.scorers.judges.answers import parse
from pathgauge.scorers.judges.model_client.budget import Budget
from pathgauge.scorers.judges.model_client.cache import Cache, key
from pathgauge.scorers.judges.model_client.failures import CallError
from pathgauge.scorers.judges.model_client.observer import Observer, Unobserved
from pathgauge.scorers.judges.model_client.prompts import Prompt, prompt
from pathgauge.scorers.judges.model_client.request import Caller
from pathgauge.scorers.judges.model_client.retries import Backoff
from pathgauge.scorers.judges.model_client.settings import Model, Settings
from pathgauge.scorers.judges.model_client.single_flight import Shared

if TYPE_CHECKING:
    from pathgauge.scorers.judges.model_client.allowed_connections import Resolve
    from pathgauge.scorers.judges.model_client.openai_api import Completion


class Asker:
    """An `Ask`; belongs to one event loop. `clock` gives seconds that never go back, `wall` Unix
    seconds, `draw` random numbers in 0..1.

    Nothing is connected to, and the `openai` package is not loaded, before the first question.
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
        self.settings = settings
        self.budget = Budget(settings.limits, wall)
        self._observer = observer or Unobserved()
        self._clock = clock
        self._call = Caller(
            settings, self.budget, self._observer, clock=clock, wall=wall, resolve=resolve
        )
        self._repeat = Backoff(settings.retries, clock, sleep, draw)
        self._known = Cache(settings.cache_size)
        self._under_way: Shared[str] = Shared()

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        """The answer, which fits `question.answer`. Raises `JudgeError`."""
        model = self.settings.resolve(question.model)
        provider = self.settings.provider(model.provider)
        asked = prompt(question, provider.structured_output)
        same = key([*model, provider.base_url, *asked.parts()])
        text = self._known.get(same)
        self._observer.cached(
            model.label, "joined" if same in self._under_way else "miss" if text is None else "hit"
        )
        if text is None:
            text = await self._under_way.do(
                same, lambda: self._answer(model, asked, question.answer, same)
            )
        try:
            return parse(text, question.answer)
        except ValueError as mistake:
            raise _malformed(str(mistake)) from None

    def circuits(self) -> list[tuple[str, bool]]:
        """Each model that was asked, and whether it is not asked for the present. For any thread."""
        return [(model.label, is_open) for model, is_open in self._call.circuits()]

    async def aclose(self) -> None:
        """Give up what is under way (`judge_unavailable`), and close all connections."""
        await self._under_way.aclose()
        await self._call.aclose()

    async def _answer(self, model: Model, asked: Prompt, form: type[BaseModel], same: str) -> str:
        """The text of an answer that can be read."""
        deadline = self._clock() + self.settings.deadline
        completion = await self._complete(model, asked, deadline)
        mistake = _mistake(completion, form)
        if mistake is not None and not completion.cut:
            completion = await self._complete(
                model, asked.asked_again(completion.text, mistake), deadline
            )
            mistake = _mistake(completion, form)
        if mistake is not None:
            raise _malformed(
                f"it was cut at {asked.max_tokens} tokens" if completion.cut else mistake
            )
        self._known.put(same, completion.text)
        return completion.text

    async def _complete(self, model: Model, asked: Prompt, deadline: float) -> Completion:
        try:
            completion = await self._repeat(lambda: self._call(model, asked, deadline), deadline)
        except CallError as failure:
            raise JudgeError(failure.reason, str(failure)) from None
        if completion.refused:
            raise JudgeError("judge_refused", "the model refused to answer")
        return completion


def _mistake(completion: Completion, form: type[Any]) -> str | None:
    """Why an answer cannot be used; `None`: it can."""
    try:
        parse(completion.text, form, cut=completion.cut)
    except ValueError as mistake:
        return str(mistake)
    return None


def _malformed(mistake: str) -> JudgeError:
    return JudgeError("judge_malformed", f"the answer cannot be used: {mistake}")

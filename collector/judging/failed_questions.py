"""Logs why a model gives no answers, for whoever is paged about missing scores.

Results have the reason, too, but a wrong key of a provider is found faster in one line of the log.
The message of a `JudgeError` has neither credentials nor judged content.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from pathgauge.collector.core.repetitions import Repetitions
from pathgauge.scorers.judge_protocol import AnswerT, Ask, JudgeError, Question
from pathgauge.scorers.judges.model_client.settings import Settings

_log = structlog.get_logger(__name__)

LOG_INTERVAL_S = 600.0
"""Minimum time between two log lines about the same model and reason."""
MAX_KINDS = 100
"""Models and reasons that are told apart."""


class LoggedQuestions:
    """An `Ask` that logs the failures of another one. It belongs to the same event loop."""

    def __init__(
        self, ask: Ask, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """`settings` give the name of the model that a question is for."""
        self._ask = ask
        self._settings = settings
        self._clock = clock
        self._repetitions = Repetitions(LOG_INTERVAL_S, MAX_KINDS)

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        """The answer of the other one. Raises `JudgeError`."""
        try:
            return await self._ask(question)
        except JudgeError as error:
            if error.reason != "budget":  # a limit that works is no failure
                self._note(question.model, error)
            raise

    def _note(self, model: str | None, error: JudgeError) -> None:
        label = self._settings.resolve(model).label
        questions = self._repetitions.due((label, error.reason), self._clock())
        if questions:
            _log.warning(
                "a judge has no answer",
                model=label,
                reason=error.reason,
                error=str(error),
                questions=questions,
            )

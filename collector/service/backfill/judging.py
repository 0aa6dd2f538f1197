"""What judges would cost over the past: everything is read once without asking them, and the
questions that they would ask are counted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment, PendingJudgments
from pathgauge.collector.core.pipeline_events import PipelineEvent, Withdrawn
from pathgauge.scorers.judge_protocol import AnswerT, JudgeError, Question
from pathgauge.scorers.judges.model_client.prompts import prompt
from pathgauge.scorers.judges.model_client.settings import Settings
from pathgauge.scorers.matching.wording import counted


class Awaiting:
    """The evaluations that wait for judges, as the pipeline has them."""

    def __init__(self) -> None:
        self._pending = PendingJudgments()

    def add(self, events: Iterable[PipelineEvent]) -> None:
        """Take note of evaluations and withdrawals."""
        for event in events:
            if isinstance(event, Evaluation):
                self._pending.update(event)
            elif isinstance(event, Withdrawn):
                self._pending.end(event.key)

    def take(self) -> tuple[PendingJudgment, ...]:
        """Those that came since the last call, to be judged now."""
        begun, _ = self._pending.changes()
        for pending in begun:
            self._pending.end(pending.key)
        self._pending.changes()
        return begun


@dataclass(slots=True)
class Estimate:
    """An `Ask` that only counts. Judges with several steps ask more than their first question, and
    equal questions are asked once.
    """

    settings: Settings
    invocations: int = 0
    requests: int = 0
    input_tokens: int = 0
    max_output_tokens: int = 0
    min_usd: float = 0.0
    """With empty answers."""
    max_usd: float = 0.0
    """With answers of the greatest length."""
    unpriced: int = 0
    """Requests to models without a known price."""

    async def __call__(self, question: Question[AnswerT]) -> AnswerT:
        """Count the question. Raises `JudgeError`: there is no answer."""
        model = self.settings.resolve(question.model)
        request = prompt(question, self.settings.provider(model.provider).structured_output)
        tokens = request.input_tokens(request.messages())
        self.requests += 1
        self.input_tokens += tokens
        self.max_output_tokens += question.max_tokens
        price = self.settings.price(model)
        if price is None:
            self.unpriced += 1
        else:
            self.min_usd += tokens * price.input / 1e6
            self.max_usd += (tokens * price.input + question.max_tokens * price.output) / 1e6
        raise JudgeError("judge_unavailable", "only counted")

    def __str__(self) -> str:
        """A line for the operator."""
        cost = f"{self.min_usd:.2f} to {self.max_usd:.2f} US dollars"
        if self.unpriced == self.requests:
            cost = "no price is known"
        elif self.unpriced:
            cost = f"{cost}, and no price is known for {self.unpriced} of them"
        return (
            f"judges would be asked about {counted(self.invocations, 'invocation')}: about"
            f" {counted(self.requests, 'request')} with"
            f" {counted(self.input_tokens, 'input token')} and at most"
            f" {counted(self.max_output_tokens, 'output token')} ({cost})"
        )

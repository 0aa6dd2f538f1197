"""Judges with a queue, a budget and metrics of their own. Judges in shadow have another lane than
the active ones, so that they neither hold them up nor use up their budget.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain

from pathgauge.collector.config.plugins.scorer_failures import ScorerFailures
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.judging.failed_questions import LoggedQuestions
from pathgauge.collector.judging.queue import Capacity, JudgeQueue, OnJudged
from pathgauge.collector.judging.spend import Spending
from pathgauge.collector.sinks.prometheus.judge_metrics import ACTIVE, JudgeSeries, Whose
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.judges.model_client.client import ModelClient
from pathgauge.scorers.judges.model_client.settings import Settings


class Lane:
    """The judges of some criteria."""

    def __init__(
        self,
        settings: Settings,
        capacity: Capacity,
        on_judged: OnJudged,
        evaluator: Evaluator,
        references: ReferenceSet,
        *,
        shadow: str = "",
        whose: Whose = ACTIVE,
    ) -> None:
        """`on_judged` is called in the thread of the judges. `shadow`: see `JudgeQueue`."""
        models = _models(settings, evaluator)
        self.series = JudgeSeries(models, self._budgets, self._circuits, whose)
        self._client = ModelClient(settings, self.series)
        self.queue = JudgeQueue(
            LoggedQuestions(self._client, settings),
            on_judged,
            capacity,
            evaluator,
            references,
            shadow=shadow,
            on_failure=ScorerFailures(),
            close=self._client.aclose,
        )
        self.spending = Spending(self._client.budget, whose.spent)

    def configure(self, evaluator: Evaluator, references: ReferenceSet, shadow: str = "") -> None:
        """Apply other criteria and references."""
        self.series.expect(_models(self._client.settings, evaluator))
        self.queue.configure(evaluator, references, shadow)

    def _budgets(self) -> Iterator[tuple[str, str, float]]:
        for measure, window, share in self._client.budget.shares_left():
            yield window, measure, share

    def _circuits(self) -> Iterator[tuple[str, bool]]:
        yield from self._client.circuits()


def _models(settings: Settings, evaluator: Evaluator) -> Iterable[str]:
    """The labels of all models that these criteria may ask."""
    scorers = (
        criterion.scorer for criterion in chain(evaluator.criteria, *evaluator.overrides.values())
    )
    named = {scorer.model for scorer in scorers if asks_model(scorer)}
    return sorted({settings.resolve(model).label for model in {None, *named}})

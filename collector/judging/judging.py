"""All that a `judge` section of the configuration brings about: whoever asks models, the bench, the
budgets, and what is shown of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.judging import Judge
from pathgauge.collector.core.evaluations.evaluator import Evaluator, WhenJudged
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.internal_telemetry import Row
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.judging.queue import Capacity, JudgeQueue, Tell
from pathgauge.collector.judging.sampling import Sampling
from pathgauge.collector.judging.spend import Spending
from pathgauge.collector.sinks.prometheus.judge_metrics import JudgeSeries
from pathgauge.collector.sinks.prometheus.scrape_gauges import Queue
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.judges.model_client.client import Asker
from pathgauge.scorers.judges.model_client.settings import Settings
from pathgauge.scorers.types import Invocation


class Judging:
    """Everything that judges, from `start` to `stop`."""

    def __init__(
        self,
        section: Judge,
        folder: Path,
        setup: ActiveConfig,
        tell: Tell,
        unjudged: frozenset[str],
    ) -> None:
        """`tell` receives each verdict, in the thread of the judges; `unjudged` are tenants."""
        settings = section.settings(folder)
        self.series = JudgeSeries(_models(settings, setup.evaluator), self._budgets, self._circuits)
        self._asker = Asker(settings, self.series)
        capacity = Capacity(section.concurrency, section.queue_size, deadline=section.deadline)
        self.bench = JudgeQueue(
            self._asker, tell, capacity, setup.evaluator, setup.references, close=self._asker.aclose
        )
        self.spending = Spending(self._asker.budget)
        rates = {scenario: sampled.sample_rate for scenario, sampled in section.scenarios.items()}
        self._sampling = Sampling(section.sample_rate, rates, unjudged)

    def of(self, invocation: Invocation, scenario: str | None) -> WhenJudged:
        """What becomes of the judges of an invocation. For any thread."""
        if not self._sampling.takes(invocation, scenario):
            return "not_sampled"
        return "overloaded" if self.bench.full else "later"

    @property
    def queue(self) -> Queue:
        """How full the bench is."""
        return Queue(lambda: self.bench.waiting, self.bench.capacity)

    def resume(self, counts: Iterable[Row], awaited: Iterable[PendingJudgment]) -> None:
        """Go on where the last process stopped, and begin to judge.

        The pipeline must not run yet: it would store that nothing was spent, and what it revises
        would be judged as it was before.
        """
        self.spending.restore(counts)
        for one in awaited:
            self.bench.take(one)
        self.bench.start()

    def configure(self, evaluator: Evaluator, references: ReferenceSet) -> None:
        """Put other criteria and references in force."""
        self.series.expect(_models(self._asker.settings, evaluator))
        self.bench.configure(evaluator, references)

    def _budgets(self) -> Iterator[tuple[str, str, float]]:
        for measure, window, share in self._asker.budget.shares_left():
            yield window, measure, share

    def _circuits(self) -> Iterator[tuple[str, bool]]:
        yield from self._asker.circuits()


def _models(settings: Settings, evaluator: Evaluator) -> Iterable[str]:
    """All models that these criteria may ask."""
    scorers = (
        criterion.scorer for criterion in chain(evaluator.criteria, *evaluator.overrides.values())
    )
    named = {scorer.model for scorer in scorers if asks_model(scorer)}
    return sorted({settings.resolve(model).label for model in {None, *named}})

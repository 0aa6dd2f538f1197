"""Builds what the `judge` section of the configuration asks for: the model client, the queue, the
budgets, and their metrics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain
from pathlib import Path

from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.judging import Judge
from pathgauge.collector.core.evaluations.evaluator import Evaluator, WhenJudged
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.internal_telemetry import Row
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.judging.queue import MAX_QUEUE_BYTES, Capacity, JudgeQueue, OnJudged
from pathgauge.collector.judging.sampling import Sampling
from pathgauge.collector.judging.spend import Spending
from pathgauge.collector.sinks.prometheus.judge_metrics import JudgeSeries
from pathgauge.scorers.judge_protocol import asks_model
from pathgauge.scorers.judges.model_client.cache import MAX_BYTES as MAX_CACHE_BYTES
from pathgauge.scorers.judges.model_client.client import ModelClient
from pathgauge.scorers.judges.model_client.settings import Settings
from pathgauge.scorers.types import Invocation


class Judging:
    """The judges of one collector."""

    def __init__(
        self,
        section: Judge,
        folder: Path,
        setup: ActiveConfig,
        on_judged: OnJudged,
        unjudged: frozenset[str],
        *,
        max_queue_bytes: int = MAX_QUEUE_BYTES,
        max_cache_bytes: int = MAX_CACHE_BYTES,
    ) -> None:
        """`on_judged` is called in the thread of the judges. `unjudged` are tenants whose traces
        are not judged.
        """
        settings = replace(section.settings(folder), max_cache_bytes=max_cache_bytes)
        self.series = JudgeSeries(_models(settings, setup.evaluator), self._budgets, self._circuits)
        self._client = ModelClient(settings, self.series)
        capacity = Capacity(
            section.concurrency, section.queue_size, max_queue_bytes, section.deadline
        )
        self.queue = JudgeQueue(
            self._client,
            on_judged,
            capacity,
            setup.evaluator,
            setup.references,
            close=self._client.aclose,
        )
        self.spending = Spending(self._client.budget)
        rates = {scenario: sampled.sample_rate for scenario, sampled in section.scenarios.items()}
        self._sampling = Sampling(section.sample_rate, rates, unjudged)

    def decide(self, invocation: Invocation, scenario: str | None) -> WhenJudged:
        """Whether an invocation will be judged, or why not. For any thread."""
        if not self._sampling.takes(invocation, scenario):
            return "not_sampled"
        return "overloaded" if self.queue.full else "later"

    def resume(self, counts: Iterable[Row], pending: Iterable[PendingJudgment]) -> None:
        """Continue where the last process stopped, and start judging.

        To be called before the pipeline runs. Otherwise it would store that nothing was spent, and
        old revisions would replace the ones that it makes.
        """
        self.spending.restore(counts)
        for one in pending:
            self.queue.take(one)
        self.queue.start()

    def configure(self, evaluator: Evaluator, references: ReferenceSet) -> None:
        """Apply other criteria and references."""
        self.series.expect(_models(self._client.settings, evaluator))
        self.queue.configure(evaluator, references)

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

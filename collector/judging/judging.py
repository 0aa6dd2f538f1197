"""Builds what the `judge` section of the configuration asks for: the model client, the queue, the
budgets, and their metrics; with `shadow.budget`, the same once more for judges in shadow.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.judging import Judge, JudgeBudget
from pathgauge.collector.core.evaluations.evaluator import EvaluationKey, Evaluator, WhenJudged
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.judging.lane import Lane
from pathgauge.collector.judging.queue import Capacity, OnJudged
from pathgauge.collector.judging.sampling import Sampling
from pathgauge.collector.judging.spend import Spending
from pathgauge.collector.sinks.prometheus.judge_metrics import SHADOW
from pathgauge.scorers.judges.model_client.settings import BudgetLimits, Settings
from pathgauge.scorers.types import Invocation

SHADOW_SHARE = 4
"""Judges in shadow get this part of the concurrency, and of the memory for queue and cache."""


class Judging(Collector):
    """The judges of one collector, and their series."""

    def __init__(
        self,
        section: Judge,
        folder: Path,
        setup: ActiveConfig,
        on_judged: OnJudged,
        unjudged: frozenset[str],
        *,
        shadow_budget: JudgeBudget | None,
        max_queue_bytes: int,
        max_cache_bytes: int,
    ) -> None:
        """`on_judged` is called in the thread of the judges. `unjudged` are tenants whose traces
        are not judged. Without `shadow_budget`, none are asked in shadow.
        """
        queue_bytes = cache_bytes = 0
        if shadow_budget is not None:
            queue_bytes = max_queue_bytes // SHADOW_SHARE
            cache_bytes = max_cache_bytes // SHADOW_SHARE
        settings = section.settings(folder)
        capacity = Capacity(
            section.concurrency,
            section.queue_size,
            max_queue_bytes - queue_bytes,
            section.deadline,
        )
        self._active = Lane(
            replace(settings, max_cache_bytes=max_cache_bytes - cache_bytes),
            capacity,
            on_judged,
            setup.evaluator,
            setup.references,
        )
        self.queue = self._active.queue
        self._shadow: Lane | None = None
        if shadow_budget is not None:
            concurrency = max(1, section.concurrency // SHADOW_SHARE)
            evaluator, references, fingerprint = _criteria_in_shadow(setup)
            self._shadow = Lane(
                _in_shadow(settings, shadow_budget, concurrency, cache_bytes),
                replace(capacity, concurrency=concurrency, queue_bytes=queue_bytes),
                on_judged,
                evaluator,
                references,
                shadow=fingerprint,
                whose=SHADOW,
            )
        rates = {scenario: sampled.sample_rate for scenario, sampled in section.scenarios.items()}
        self._sampling = Sampling(section.sample_rate, rates, unjudged)

    @property
    def asks_in_shadow(self) -> bool:
        """Whether there are judges in shadow."""
        return self._shadow is not None

    @property
    def spending(self) -> list[Spending]:
        """What was spent of each budget."""
        return [lane.spending for lane in self._lanes()]

    def decide(self, invocation: Invocation, scenario: str | None) -> WhenJudged:
        """Whether an invocation will be judged, or why not. For any thread."""
        return self._decide(self._active, invocation, scenario)

    def decide_in_shadow(self, invocation: Invocation, scenario: str | None) -> WhenJudged:
        """The same for judges in shadow."""
        if self._shadow is None:
            return "unconfigured"
        return self._decide(self._shadow, invocation, scenario)

    def take(self, pending: PendingJudgment) -> None:
        """Judge an evaluation, instead of an earlier revision of it."""
        if self._shadow is None:
            self._active.queue.take(pending)
            return
        mine, other = self._active, self._shadow
        if pending.in_shadow:
            mine, other = other, mine
        other.queue.give_up(pending.key)
        mine.queue.take(pending)

    def give_up(self, key: EvaluationKey) -> None:
        """Stop judging an evaluation; an unknown key is no error."""
        for lane in self._lanes():
            lane.queue.give_up(key)

    def resume(self, counts: Iterable[Row], pending: Iterable[PendingJudgment]) -> None:
        """Continue where the last process stopped, and start judging.

        To be called before the pipeline runs. Otherwise it would store that nothing was spent, and
        old revisions would replace the ones that it makes.
        """
        stored = tuple(counts)
        for lane in self._lanes():
            lane.spending.restore(stored)
        for one in pending:
            self.take(one)
        for lane in self._lanes():
            lane.queue.start()

    def finish(self, timeout: float) -> None:
        """Wait until everything is judged, for at most `timeout` seconds."""
        self._active.queue.finish(timeout)

    def stop(self) -> None:
        """Stop. Evaluations that are not judged yet are dropped; a durable store still has them."""
        for lane in self._lanes():
            lane.queue.stop()

    def configure(self, setup: ActiveConfig) -> None:
        """Apply other criteria and references."""
        self._active.configure(setup.evaluator, setup.references)
        if self._shadow is not None:
            self._shadow.configure(*_criteria_in_shadow(setup))

    def collect(self) -> Iterator[Metric]:
        """All series. prometheus_client calls this at a scrape."""
        for lane in self._lanes():
            yield from lane.series.collect()

    def _lanes(self) -> list[Lane]:
        return [self._active] if self._shadow is None else [self._active, self._shadow]

    def _decide(self, lane: Lane, invocation: Invocation, scenario: str | None) -> WhenJudged:
        if not self._sampling.takes(invocation, scenario):
            return "not_sampled"
        return "overloaded" if lane.queue.full else "later"


def _in_shadow(
    settings: Settings, budget: JudgeBudget, concurrency: int, max_cache_bytes: int
) -> Settings:
    return replace(
        settings,
        limits=BudgetLimits(**budget.model_dump()),
        concurrency=concurrency,
        max_cache_bytes=max_cache_bytes,
    )


def _criteria_in_shadow(setup: ActiveConfig) -> tuple[Evaluator, ReferenceSet, str]:
    shadow = setup.shadow
    if shadow is None:
        return Evaluator(()), ReferenceSet(), ""
    return shadow.evaluator, shadow.references, shadow.setup

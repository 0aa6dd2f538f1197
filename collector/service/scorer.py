"""The part that scores: a store, the pipeline over its journal, the judges, and their thread.

Requests enter by `requests.accept`. Events leave in one of two ways: to the sinks of this process,
or as publications for another one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from types import MappingProxyType

import structlog
from prometheus_client.registry import Collector

from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.config.plugins.scorer_failures import ScorerFailures
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.scorer_watch import ScorerWatch
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.partitioning import WHOLE, Partition
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.sink import Sink
from pathgauge.collector.core.traces.explain import Waiting
from pathgauge.collector.judging.judgment import without_judges
from pathgauge.collector.service.clock import RunningTime
from pathgauge.collector.service.components import build_judging, build_pipeline, build_requests
from pathgauge.collector.service.memory.plan import MemoryPlan
from pathgauge.collector.service.publisher import COMMIT_S, DurableCounts, Publisher
from pathgauge.collector.service.worker import Worker
from pathgauge.collector.sinks.prometheus.scoring_time import ScoringTime
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage
from pathgauge.collector.store import Progress, Restored, Store
from pathgauge.scorers.judge_protocol import asks_model

_log = structlog.get_logger(__name__)


class Scorer:
    """Scores what is in one store, from `resume` to `stop`."""

    worker: Worker
    """Set by `connect`."""

    def __init__(
        self,
        plan: MemoryPlan,
        setup: ActiveConfig,
        telemetry: InternalTelemetry,
        store: Store,
        partition: Partition = WHOLE,
        *,
        named: Mapping[str, int] = MappingProxyType({}),
        beyond: str = "senders are told to retry",
    ) -> None:
        """`named` is in each line of the log that is about this scorer, because a process may have
        several. `beyond` is what becomes of requests that it does not accept.
        """
        self.store = store
        self.judging = build_judging(plan, setup, self._on_judged)
        self._watch, self._shadow_watch = (
            ScorerWatch(ScorerFailures(named), time.monotonic) for _ in range(2)
        )
        self._expect(setup)
        self._time = ScoringTime(self._watch, self._shadow_watch)
        self.pipeline = build_pipeline(
            plan,
            setup,
            telemetry,
            store,
            self.judging,
            partition=partition,
            watch=self._watch,
            shadow_watch=self._shadow_watch,
        )
        self.requests = build_requests(plan, store, self.pipeline)
        self._setup = setup
        self._telemetry = telemetry
        self._named = named
        self._beyond = beyond

    def connect(
        self,
        *,
        metrics: Sequence[Sink] = (),
        sinks: Sequence[Sink] = (),
        counts: Sequence[DurableCounts] = (),
        needs_commit: Callable[[], bool] = lambda: False,
        complete: Callable[[Progress], Progress] = lambda progress: progress,
        commit_s: float = COMMIT_S,
    ) -> None:
        """Decide where events go; to be called once, before `resume`. `Publisher` documents the
        arguments.
        """
        judging = self.judging
        durable_counts: list[DurableCounts] = [self.pipeline.records, *counts]
        if judging is not None:
            durable_counts += judging.spending
        publisher = Publisher(
            self.pipeline,
            self.store,
            immediate_sinks=metrics,
            sinks=sinks,
            durable_counts=durable_counts,
            judges=judging,
            has_pending_counts=lambda: (
                needs_commit()
                or (judging is not None and any(one.has_pending for one in judging.spending))
            ),
            complete=complete,
            commit_s=commit_s,
        )
        self.worker = Worker(self.pipeline, self.store, self._telemetry, publisher, self.requests)

    def series(self) -> list[Collector]:
        """What it counts beside the results; every process begins at 0."""
        return [self._time] if self.judging is None else [self._time, self.judging]

    def usage(self) -> CollectorUsage:
        """How much the store, the pipeline and the queue before it hold; for any thread."""
        return CollectorUsage(self.store.usage(), self.pipeline.usage(), *self.requests.usage())

    def explain_open_traces(self, max_traces: int) -> Future[list[Waiting]]:
        """What the oldest open traces wait for; answered by the pipeline thread."""
        return self.worker.ask(lambda: self.pipeline.waiting(self.store.horizon(), max_traces))

    def resume(
        self,
        restored: Restored,
        *,
        before_start: Callable[[], None] = lambda: None,
        when_open: Callable[[], None] = lambda: None,
    ) -> None:
        """Continue with what the store has restored. `before_start` is called before the store
        accepts requests, `when_open` when it can commit, before anything is scored.
        """
        clock = RunningTime(restored.at)
        self.pipeline.restore(restored.traces, clock())
        for turn in restored.turns:
            self.pipeline.restore_turn(turn)
        for session in restored.sessions:
            self.pipeline.restore_session(session)
        for pending in restored.pending:
            self.pipeline.restore_pending(pending)
        self.pipeline.records.restore(restored.counts)
        before_start()
        self.store.start(self.requests.deliver, clock)
        when_open()
        self._resume_judging(restored)
        self.worker.start(restored)
        if restored.requests:
            _log.info(
                "resumed",
                **self._named,
                requests=restored.requests,
                to_read=restored.last_row - restored.row,
                traces=self.pipeline.usage().open_traces,
            )

    def stop(self, timeout: float) -> None:
        """Process what is queued and make it durable; `timeout` in seconds. The store stays open.

        Pending judgments are left to the next process. With a store in memory, the judges finish
        them first, within another `timeout`.
        """
        if self.judging is not None:
            if not self.store.durable:
                self.judging.finish(timeout)
            self.judging.stop()
        if not self.worker.stop(timeout):
            _log.error(
                "stopped before all queued requests were processed",
                **self._named,
                open_traces=self.pipeline.usage().open_traces,
            )

    def configure(self, setup: ActiveConfig) -> None:
        """Apply other criteria and references; for the pipeline thread."""
        self._setup = setup
        self._expect(setup)
        self.pipeline.configure(setup.evaluator, setup.references, setup.shadow)
        if self.judging is not None:
            self.judging.configure(setup)

    def _expect(self, setup: ActiveConfig) -> None:
        self._watch.expect(_run_here(setup.evaluator))
        if setup.shadow is not None:
            self._shadow_watch.expect(_run_here(setup.shadow.evaluator))

    def stuck(self) -> list[str]:
        """What keeps the scoring from going on; for any thread."""
        return self.worker.stuck()

    def unready(self) -> list[str]:
        """The reasons for which no requests are accepted; none when they are."""
        reasons = []
        if not self.worker.alive:
            reasons.append("the pipeline thread is not running")
        store = self.store.usage()
        if store.state != "ok":
            reasons.append(store.reason or f"the store cannot be written to: {self._beyond}")
        if self.pipeline.full:
            reasons.append(f"open traces use up their memory: {self._beyond}")
        if self.requests.is_late():
            reasons.append(f"scoring is further behind than store.max_backlog_age: {self._beyond}")
        return reasons

    def _resume_judging(self, restored: Restored) -> None:
        if self.judging is not None:
            self.judging.resume(restored.counts, restored.pending)
            return
        for pending in restored.pending:
            setup = self._setup.shadow if pending.in_shadow else self._setup
            evaluator, references = Evaluator(()), ReferenceSet()
            if setup is not None:
                evaluator, references = setup.evaluator, setup.references
            evaluation = without_judges(pending, evaluator, references)
            self._on_judged(pending, evaluation)

    def _on_judged(self, pending: PendingJudgment, evaluation: Evaluation) -> None:
        self.worker.judged(pending, evaluation)


def _run_here(evaluator: Evaluator) -> Iterator[str]:
    """The criteria that no judge is asked about."""
    return (one.name for one in evaluator.every if not asks_model(one.scorer))

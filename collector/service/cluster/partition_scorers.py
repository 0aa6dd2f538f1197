"""The scorers of the partitions that this process has, each with a pipeline and a thread.

The consumer group decides which partitions these are. A partition that is taken away is committed
first. If that was too late, because the process was stopped for a while, PostgreSQL refuses the
commit, and what is in memory is forgotten.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace

import structlog
from prometheus_client.registry import Collector

from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.partitioning import Partition
from pathgauge.collector.core.traces.explain import Waiting
from pathgauge.collector.receivers.kafka.partition_source import PartitionSource, Position
from pathgauge.collector.receivers.kafka.records import KafkaRecord
from pathgauge.collector.service.cluster.partition_store import PartitionStore, Source
from pathgauge.collector.service.components import evidence_policy, sends_content
from pathgauge.collector.service.judge_share import share_of
from pathgauge.collector.service.memory.plan import MemoryPlan
from pathgauge.collector.service.publishing import Publishing
from pathgauge.collector.service.scorer import Scorer
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage
from pathgauge.collector.store import StoreError, Transaction
from pathgauge.collector.store.essential import EssentialThread
from pathgauge.collector.store.postgres.messages import Purge
from pathgauge.collector.store.postgres.partition import PartitionDatabase

_log = structlog.get_logger(__name__)

STOP_S = 8.0
"""Time limit for what a partition has queued when it is taken away."""
COMMIT_S = 1.0
"""How long events are collected: each partition commits on its own."""
_POLL_S = 1.0
_LEARN_S = 10.0
_RETRY_S = 1.0
CLAIM_S = 120.0
"""How long PostgreSQL may be unreachable while a partition is assigned."""


class PartitionScorer:
    """The scorer of one partition, from `start` to `stop`."""

    def __init__(
        self,
        plan: MemoryPlan,
        setup: ActiveConfig,
        partition: Partition,
        database: PartitionDatabase,
        source: Source,
    ) -> None:
        self.partition = partition.number
        telemetry = InternalTelemetry()
        self.store = PartitionStore(
            database,
            source,
            f"{socket.gethostname()}:{os.getpid()}",
            on_lost=self._on_lost,
            on_purge=self._on_purge,
            on_reached=self._on_reached,
            on_dropped=telemetry.turns_dropped.add,
            on_feedback_dropped=lambda answers: telemetry.feedback_dropped.add("purged", n=answers),
        )
        self.scorer = Scorer(
            plan,
            setup,
            telemetry,
            self.store,
            partition,
            named={"partition": partition.number},
            beyond="requests wait in Kafka",
        )
        config = plan.config
        self.scorer.connect(
            complete=Publishing(
                telemetry,
                evidence_policy(config),
                with_content=sends_content(config),
                with_evidence=False,
            ),
            commit_s=COMMIT_S,
        )

    def start(self) -> None:
        """Continue where the last owner has stopped. Raises `StoreError`."""
        self.scorer.resume(self.store.open())

    def stop(self, timeout: float) -> None:
        """Commit what is queued, and give the partition up."""
        self.scorer.stop(timeout)
        self.store.close()

    def poll(self, *, learn: bool) -> None:
        """Take what others have left for the partition, and with `learn` what they know of agent
        versions.
        """
        self.scorer.worker.call(self.store.poll)
        if learn:
            self.scorer.worker.call(self._learn)

    def _learn(self) -> None:
        self.scorer.pipeline.records.merge(self.store.learned())

    def _on_lost(self) -> None:
        self.scorer.requests.close()

    def _on_reached(self, reached: float) -> None:
        self.scorer.pipeline.hear(reached)

    def _on_purge(self, purge: Purge) -> None:
        self.scorer.pipeline.discard(purge.traces)
        if self.scorer.judging is not None:
            for key in purge.evaluations:
                self.scorer.judging.give_up(key)


class PartitionScorers:
    """All partitions of this process: the `Listener` of its consumer. The thread of Kafka calls
    `assigned`, `deliver`, `revoked` and `lost`.
    """

    def __init__(
        self,
        plan: MemoryPlan,
        setup: ActiveConfig,
        conninfo: str,
        partitions: int,
        on_commit: Callable[[Transaction, float], None],
    ) -> None:
        """`partitions` is the number of all partitions. `plan` is for one of them."""
        self._plan = plan
        self._setup = setup
        self._conninfo = conninfo
        self._total = partitions
        self._on_commit = on_commit
        self._scorers: dict[int, PartitionScorer] = {}
        self._closed = threading.Event()
        self._thread = EssentialThread(self._run, "partitions")
        self.fenced = 0
        """Partitions that were lost before they were committed."""
        self.assignments = 0
        """Partitions that this process was given, each time it was given one."""
        self.is_fenced = threading.Event()
        """Set when a partition was lost: this process has to join the group anew."""

    def start(self) -> None:
        """Start the thread that looks after the scorers."""
        self._thread.start()

    def stop(self) -> None:
        """To be called when all partitions were revoked."""
        self._closed.set()
        self._thread.join()

    def assigned(self, source: PartitionSource) -> Position:
        """Claim a partition, and continue where its last owner has stopped. Raises `StoreError` if
        PostgreSQL cannot be reached for long.
        """
        self.assignments += 1
        ends = time.monotonic() + CLAIM_S
        while True:
            setup = self._setup
            scorer = self._build(source, setup)
            try:
                scorer.start()
                break
            except StoreError as error:
                scorer.store.close()
                if self._closed.is_set() or time.monotonic() >= ends:
                    raise
                _log.error(
                    "partition cannot be claimed; trying again",
                    partition=source.partition,
                    reason=str(error),
                )
                self._closed.wait(_RETRY_S)
        self._scorers = {**self._scorers, source.partition: scorer}
        if self._setup is not setup:  # a reload in between did not know this partition
            self._apply_setup(scorer)
        return scorer.store.position

    def deliver(self, partition: int, record: KafkaRecord) -> bool:
        """Pass a request on; `False` if there is no room for it."""
        scorer = self._scorers.get(partition)
        return scorer is not None and scorer.store.take(record)

    def revoked(self, partition: int) -> None:
        """Commit what is queued, because another process gets the partition."""
        if (scorer := self._removed(partition)) is not None:
            scorer.stop(STOP_S)

    def lost(self, partition: int) -> None:
        """Drop what is queued: another process may have the partition already."""
        if (scorer := self._removed(partition)) is not None:
            scorer.store.lost = True
            scorer.stop(STOP_S)

    def configure(self, setup: ActiveConfig) -> None:
        """Apply other criteria and references; for any thread."""
        self._setup = setup
        for one in self._scorers.values():
            self._apply_setup(one)

    def usages(self) -> dict[int, CollectorUsage]:
        """How much each partition holds; for any thread."""
        return {number: one.scorer.usage() for number, one in self._scorers.items()}

    def series(self) -> dict[int, list[Collector]]:
        """What the scorer of each partition counts beside the results."""
        return {number: one.scorer.series() for number, one in self._scorers.items()}

    def unready(self) -> list[str]:
        """The reasons for which partitions are not scored."""
        return [
            f"partition {number}: {reason}"
            for number, one in self._scorers.items()
            for reason in one.scorer.unready()
        ]

    def stuck(self) -> list[str]:
        """What keeps partitions from being scored; for any thread."""
        return [
            f"partition {number}: {reason}"
            for number, one in self._scorers.items()
            for reason in one.scorer.stuck()
        ]

    def explain_open_traces(self, max_traces: int) -> list[Future[list[Waiting]]]:
        """What the oldest open traces of each partition wait for."""
        return [one.scorer.explain_open_traces(max_traces) for one in self._scorers.values()]

    def _apply_setup(self, one: PartitionScorer) -> None:
        """Apply what is present when it is the turn of this: two threads may call it."""
        one.scorer.worker.call(lambda: one.scorer.configure(self._setup))

    def _build(self, source: PartitionSource, setup: ActiveConfig) -> PartitionScorer:
        partition = Partition(source.partition, self._total)
        plan, config = self._plan, self._plan.config
        plan = replace(plan, config=share_of(config, partition))
        database = PartitionDatabase(
            self._conninfo, partition.number, evidence_policy(config), self._on_commit
        )
        return PartitionScorer(plan, setup, partition, database, source)

    def _removed(self, partition: int) -> PartitionScorer | None:
        scorers = dict(self._scorers)
        scorer = scorers.pop(partition, None)
        self._scorers = scorers
        return scorer

    def _run(self) -> None:
        """Look for what others have left."""
        learned_at = time.monotonic()
        while not self._closed.wait(_POLL_S):
            now = time.monotonic()
            learn = now >= learned_at + _LEARN_S
            if learn:
                learned_at = now
            for one in self._scorers.values():
                if not one.store.lost:
                    one.poll(learn=learn)
                elif not self.is_fenced.is_set():
                    self.fenced += 1
                    self.is_fenced.set()

"""The engine with several scorer processes: this process receives and publishes, they score.

`Engine` documents the methods. All that awaits runs in the event loop of the receivers.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from heapq import nlargest
from typing import Any

import structlog

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig, KnownReferences, fingerprint
from pathgauge.collector.core.agent_records import AgentRecords
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.otlp.split import as_protobuf, split
from pathgauge.collector.core.partitioning import partition_of_trace
from pathgauge.collector.core.publication import Publication
from pathgauge.collector.core.traces.explain import Waiting
from pathgauge.collector.core.traffic.drift import TrafficStatus
from pathgauge.collector.service.canary import Canary
from pathgauge.collector.service.components import build_gauge_store, stored as store_section
from pathgauge.collector.service.engine import with_reloaded
from pathgauge.collector.service.gauge import Gauge
from pathgauge.collector.service.left_publications import apply_left_publications
from pathgauge.collector.service.publications import Arrived, Publications, Stored
from pathgauge.collector.service.workers import messages
from pathgauge.collector.service.workers.publication_thread import PublicationThread
from pathgauge.collector.service.workers.purging import FleetPurge
from pathgauge.collector.service.workers.relaying import Relaying
from pathgauge.collector.service.workers.scorer_process import ScorerProcess
from pathgauge.collector.service.workers.usage import FleetUsage
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.prometheus.drift.recording import Explained
from pathgauge.collector.sinks.prometheus.exposition.registry import Registry
from pathgauge.collector.sinks.prometheus.live_metrics import Live
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage, commit_durations
from pathgauge.collector.sinks.unknown_scenarios import UnknownScenarios
from pathgauge.collector.store import FeedbackOutcome, Purged, Selection, StoreError, publications
from pathgauge.collector.store.essential import essential_task
from pathgauge.collector.store.outbox import Acknowledged
from pathgauge.collector.store.resharding import reshard
from pathgauge.scorers.types import Reference

_log = structlog.get_logger(__name__)


class Fleet:
    """The engine of a parent process."""

    def __init__(
        self,
        config: Config,
        setup: ActiveConfig,
        telemetry: InternalTelemetry,
        canary: Canary | None,
    ) -> None:
        """Raises `ConfigError` and `PluginError` when a sink cannot be built."""
        self._config = config
        self._setup = setup
        self._telemetry = telemetry
        self._folder = config.folder / store_section(config).path
        self._published: dict[str, int] = {}
        commits = commit_durations()
        self._store = build_gauge_store(config, commits)
        self._records = AgentRecords()
        self._scorers = [
            ScorerProcess(self._start_message(number), number, self._on_message)
            for number in range(config.workers)
        ]
        self._usage = FleetUsage(self._scorers, self._store.usage, Live([commits]).collect)
        self._gauge = gauge = Gauge(
            config,
            setup,
            telemetry,
            canary,
            usage=self.usage,
            queues=self._usage.queues,
            records=self._records,
        )
        self._publications = Publications(
            gauge, telemetry, self._records, decode=self._decode, commit=self._store.commit
        )
        self._thread = PublicationThread(
            self._publications,
            [gauge.metrics, *gauge.sinks],
            needs_commit=lambda: gauge.needs_commit,
            is_short=lambda: self._store.usage().needs_commit,
            on_stored=self._on_stored,
        )
        self._purging = FleetPurge(self._scorers, self._store, self._publications, self._thread)
        self._relaying = Relaying(self._scorers, self._name)
        self._names: Sequence[str] = ()
        self._tasks: list[asyncio.Task[None]] = []
        self._notes: set[asyncio.Task[None]] = set()
        self.registry.register(self._usage)

    @property
    def registry(self) -> Registry:
        return self._gauge.registry

    @property
    def counted(self) -> InternalTelemetry:
        return self._telemetry

    @property
    def max_record_bytes(self) -> float:
        return math.inf

    @property
    def unknown_scenarios(self) -> UnknownScenarios:
        return self._gauge.unknown_scenarios

    async def accept(self, batch: Batch) -> bool:
        total = len(self._scorers)
        parts = split(batch, lambda trace_id: partition_of_trace(trace_id, total))
        if len(parts) == 1:
            [(number, part)] = parts.items()
            return await self._scorers[number].append(as_protobuf(part))
        stored = await asyncio.gather(
            *(self._scorers[number].append(part) for number, part in parts.items())
        )
        return all(stored)

    def usage(self) -> CollectorUsage:
        return self._usage.total()

    def current_scores(self) -> Sequence[CurrentScore]:
        return self._gauge.current_scores()

    def drifts(self) -> Sequence[Explained]:
        return self._gauge.drifts()

    def traffic(self) -> Sequence[TrafficStatus]:
        return self._gauge.traffic()

    def references(self) -> Iterable[Reference]:
        return self._setup.references

    def evaluator(self) -> Evaluator:
        return self._setup.evaluator

    def explain_open_traces(self, max_traces: int) -> Future[list[Waiting]]:
        async def explain() -> list[Waiting]:
            asked = (scorer.ask(messages.Explain(max_traces)) for scorer in self._scorers)
            found = await asyncio.gather(*asked, return_exceptions=True)
            # Those of a scorer that does not answer are shown when it does again.
            every = [one for known in found if isinstance(known, list) for one in known]
            return nlargest(max_traces, every, key=lambda one: one.age)

        return asyncio.run_coroutine_threadsafe(explain(), self._loop)

    def record_feedback(self, answers: Sequence[Answer]) -> Sequence[FeedbackOutcome]:
        return self._store.record_feedback(answers)

    def purge(self, selection: Selection) -> Future[Purged]:
        return asyncio.run_coroutine_threadsafe(self._purging.purge(selection), self._loop)

    async def start(self) -> None:
        self._loop = asyncio.get_running_loop()
        await asyncio.to_thread(self._resume)
        self._tasks = [
            essential_task(scorer.run(), f"scorer {scorer.number}") for scorer in self._scorers
        ]
        started = await asyncio.gather(*(scorer.started() for scorer in self._scorers))
        if not all(started):
            await self.stop(1.0)
            raise StoreError("a scorer process did not start; the log says why")

    async def stop(self, timeout: float) -> None:
        await asyncio.gather(*(scorer.stop(timeout) for scorer in self._scorers))
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._relaying.stop()
        self._gauge.finish()
        if not await asyncio.to_thread(self._thread.stop, timeout):
            _log.error("stopped before all results were published")
        await asyncio.to_thread(self._store.close)

    def configure(self, setup: ActiveConfig, config: Config) -> None:
        self._setup = setup
        self._config = with_reloaded(self._config, config)
        self._thread.call(lambda: self._gauge.configure(setup, config.exporters.prometheus))
        self._tell_all(messages.Configure(self._config))

    def configure_failed(self) -> None:
        self._thread.call(self._gauge.configure_failed)

    def inactive(self) -> list[str]:
        return []

    def stuck(self) -> list[str]:
        return self._gauge.stuck() + [
            f"scorer {scorer.number}: {reason}"
            for scorer in self._scorers
            if scorer.present is not None
            for reason in scorer.present.stuck
        ]

    def unready(self) -> list[str]:
        reasons = [reason for scorer in self._scorers for reason in scorer.unready()]
        if not self._thread.alive:
            reasons.append("the gauge thread is not running")
        if self._publications.refused is not None:
            reasons.append(self._publications.refused)
        usage = self._store.usage()
        if usage.state != "ok":
            reasons.append(usage.reason or "the store of results cannot be written to")
        return reasons

    def _resume(self) -> None:
        """Move state if the number of scorers has changed, and open the store of the results.
        Raises `StoreError`.
        """
        is_turn = self._setup.references.multi_turn
        folders = reshard(
            self._folder,
            len(self._scorers),
            is_turn=lambda invocation: is_turn(invocation) is not None,
        )
        self._names = [str(folder.relative_to(self._folder)) for folder in folders]
        restored = self._store.open()
        self._published = dict(restored.published)
        self._records.restore(restored.counts)
        self._gauge.restore(restored.counts, self._store.recent)
        self._store.start(lambda _: False, lambda: 0.0)
        self._publications.resume(restored.published)
        apply_left_publications(self._folder, self._store, self._publications)
        self._thread.start()
        if restored.is_purging:
            self._purging.finish()

    def _start_message(self, number: int) -> Callable[[], messages.Start]:
        def start() -> messages.Start:
            name = self._names[number]
            is_changed = fingerprint(self._config) != self._setup.fingerprint
            return messages.Start(
                self._config,
                name,
                self._folder / name,
                number,
                len(self._scorers),
                self._published.get(name, 0),
                KnownReferences.of(self._setup) if is_changed else None,
            )

        return start

    def _name(self, number: int) -> str:
        return self._names[number]

    def _decode(self, body: bytes) -> Publication:
        return publications.decode(body, self._setup.evaluator, self._setup.references)

    async def _on_message(self, scorer: ScorerProcess, message: Any) -> None:
        if isinstance(message, messages.Published):
            for one in message.publications:
                self._thread.put(Arrived(self._names[scorer.number], one.id, one.body))
        elif isinstance(message, messages.Forwarded):
            self._relaying.put(scorer, message.turns)

    def _on_stored(self, stored: Stored) -> None:
        """In the thread of the gauge."""
        self._loop.call_soon_threadsafe(self._acknowledge, stored)

    def _acknowledge(self, stored: Stored) -> None:
        self._published.update(stored.published)
        for scorer in self._scorers:
            row = stored.published.get(self._names[scorer.number])
            if row is not None:
                received = messages.Received(Acknowledged(publication=row))
                self._note(scorer.tell(received))
        if stored.learned:
            self._tell_all(messages.Learn(stored.learned))

    def _tell_all(self, message: object) -> None:
        for scorer in self._scorers:
            self._note(scorer.tell(message))

    def _note(self, telling: Any) -> None:
        task = self._loop.create_task(telling)
        self._notes.add(task)
        task.add_done_callback(self._notes.discard)

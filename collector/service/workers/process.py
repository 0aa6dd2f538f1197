"""A scorer process: `python -m pathgauge.collector.service.workers.process FD`.

It serves the parent over the socket with the number FD. When the parent ends, it commits what it
has, and ends too: acknowledged requests are in its store.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import sqlite3
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial, singledispatchmethod
from typing import Any

import structlog

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import resolve
from pathgauge.collector.config.plugins.registry import PluginError
from pathgauge.collector.core.documents import ConfigError, SettingError
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.decode_batch import decode_batch
from pathgauge.collector.core.partitioning import Partition
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.core.traces.explain import Waiting
from pathgauge.collector.service import logging
from pathgauge.collector.service.components import (
    build_queues,
    build_scorer_store,
    evidence_policy,
    sends_content,
)
from pathgauge.collector.service.crash_report import report_crashes
from pathgauge.collector.service.judge_share import share_of
from pathgauge.collector.service.memory.limits import read_limits
from pathgauge.collector.service.memory.saving import save_memory
from pathgauge.collector.service.part_endings import ENDED, ending_in_loop, ending_in_thread
from pathgauge.collector.service.printed_lines import HeldOutput, printed_to
from pathgauge.collector.service.process_end import FAILED, end_process
from pathgauge.collector.service.process_limits import plan_of_scorer
from pathgauge.collector.service.process_tuning import starting, tune
from pathgauge.collector.service.publishing import Publishing
from pathgauge.collector.service.scorer import Scorer
from pathgauge.collector.service.workers import messages
from pathgauge.collector.service.workers.channel import Channel, ChannelClosedError, open_channel
from pathgauge.collector.service.workers.receiving import store_turns
from pathgauge.collector.service.workers.scorer_process import CANNOT_START
from pathgauge.collector.service.workers.sending import Sending
from pathgauge.collector.sinks.prometheus.live_metrics import Live
from pathgauge.collector.sinks.prometheus.store_metrics import commit_durations
from pathgauge.collector.store import Purged, Restored, StoreInUseError, Transaction
from pathgauge.collector.store.essential import EndedError, essential_task
from pathgauge.collector.store.journal import UNLIMITED
from pathgauge.collector.store.sqlite.store import SqliteStore

_log = structlog.get_logger(__name__)

COMMIT_S = 1.0
"""How long events are collected: each commit is followed by one of the parent."""
STATUS_S = 1.0
STOP_S = 10.0
"""Time limit for what is queued when the parent has ended."""
_LOCK_S = 15.0
"""How long the scorer of a parent that was killed may still hold the store."""
_RETRY_S = 0.1
_LARGE_BODY_BYTES = 256 * 1024
"""A body of this size is decoded beside other messages."""


class ScorerProcess:
    """One scorer and its connection to the parent."""

    def __init__(self, start: messages.Start, channel: Channel) -> None:
        config, partition = start.config, Partition(start.number, start.total)
        config = share_of(config, partition)
        self._config, self._channel = config, channel
        setup = resolve(config, known=start.references)
        self._telemetry = telemetry = InternalTelemetry()
        plan = plan_of_scorer(config)
        self._commits = commit_durations()
        self._store = build_scorer_store(
            config, start.folder, self._on_commit, plan.max_cached_bytes
        )
        self._scorer = Scorer(plan, setup, telemetry, self._store, partition)
        self._scorer.connect(
            complete=Publishing(
                telemetry,
                evidence_policy(config),
                with_content=sends_content(config),
                with_evidence=True,
            ),
            commit_s=COMMIT_S,
        )
        self._queues = build_queues(self._scorer.usage, self._scorer.requests, self._scorer.judging)
        self._loop = asyncio.get_running_loop()
        self._sending = Sending(
            start.folder,
            start.published,
            channel,
            acknowledge=self._store.acknowledge,
            quarantine=self._store.quarantine,
        )
        self._stopped = False

    async def serve(self) -> None:
        """Score until the parent says stop, or ends."""
        with starting():
            restored = await asyncio.to_thread(_open, self._store)
            await asyncio.to_thread(self._scorer.resume, restored)
        tune()
        tasks = [
            essential_task(self._sending.run(), "sending"),
            essential_task(self._report(), "status"),
        ]
        await self._channel.serve(self.handle)
        for task in tasks:
            task.cancel()
        await self._stop(STOP_S)

    @singledispatchmethod
    async def handle(self, message: Any) -> Any:
        """Handle a message of the parent."""
        raise TypeError(f"found {type(message).__name__}, expected a message to a scorer")

    @handle.register
    async def _append(self, message: messages.Append) -> bool:
        decode = partial(decode_batch, message.origin, message.body, UNLIMITED)
        if len(message.body) > _LARGE_BODY_BYTES:
            batch = (await asyncio.to_thread(decode)).batch
        else:
            batch = decode().batch
        return await self._scorer.requests.accept(replace(batch, sent_as=message.sent_as))

    @handle.register
    async def _relay(self, message: messages.Relay) -> bool:
        return await store_turns(message, self._scorer.requests.accept, self._on_dropped)

    @handle.register
    async def _purge(self, message: messages.Purge) -> Purged:
        purging = self._scorer.worker.purge(message.selection, message.traces)
        return await asyncio.wrap_future(purging)

    @handle.register
    async def _hold(self, message: messages.Hold) -> set[TraceKey]:
        return await asyncio.to_thread(self._store.held)

    @handle.register
    async def _explain(self, message: messages.Explain) -> list[Waiting]:
        return await asyncio.wrap_future(self._scorer.explain_open_traces(message.max_traces))

    @handle.register
    async def _configure(self, message: messages.Configure) -> None:
        setup = await asyncio.to_thread(resolve, message.config)
        self._scorer.worker.call(lambda: self._scorer.configure(setup))

    @handle.register
    async def _learn(self, message: messages.Learn) -> None:
        records = self._scorer.pipeline.records
        self._scorer.worker.call(lambda: records.merge(message.records))

    @handle.register
    async def _received(self, message: messages.Received) -> None:
        self._sending.received(message.acknowledged)

    @handle.register
    async def _flush(self, message: messages.Flush) -> None:
        await asyncio.wrap_future(self._scorer.worker.flush())
        await self._sending.finished()

    @handle.register
    async def _stop_when_received(self, message: messages.Stop) -> None:
        await asyncio.to_thread(self._scorer.stop, message.timeout)
        async with asyncio.timeout(message.timeout):
            await self._sending.finished(forwarded=False)

    async def _report(self) -> None:
        with suppress(ChannelClosedError):  # the parent has ended
            while True:
                await self._channel.tell(self._status())
                await asyncio.sleep(STATUS_S)

    def _status(self) -> messages.Status:
        collectors = [Live([self._commits]), *self._scorer.series()]
        return messages.Status(
            self._scorer.usage(),
            {
                name: messages.QueueLevel(queue.size(), queue.capacity())
                for name, queue in self._queues.items()
            },
            self._scorer.unready(),
            self._scorer.stuck(),
            self._sending.unread(),
            [metric for collector in collectors for metric in collector.collect()],
        )

    def _on_dropped(self, turns: int) -> None:
        """Counters belong to the pipeline thread."""
        self._scorer.worker.call(lambda: self._telemetry.turns_dropped.add(n=turns))

    def _on_commit(self, kind: Transaction, seconds: float) -> None:
        """In the thread of the store."""
        self._commits.labels(kind).observe(seconds)
        if kind == "results" and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._sending.look)

    async def _stop(self, timeout: float) -> None:
        if not self._stopped:
            self._stopped = True
            await asyncio.to_thread(self._scorer.stop, timeout)
            await asyncio.to_thread(self._store.close)


def _open(store: SqliteStore) -> Restored:
    """Open the store. Raises `StoreError`."""
    until = time.monotonic() + _LOCK_S
    while True:
        try:
            return store.open()
        except StoreInUseError:
            if time.monotonic() >= until:
                raise
            time.sleep(_RETRY_S)


async def _serve(connection: socket.socket) -> None:
    asyncio.get_running_loop().set_exception_handler(ending_in_loop(_end))
    channel = await open_channel(connection)
    try:
        with HeldOutput() as held:
            start: messages.Start = await channel.receive()
    except asyncio.IncompleteReadError:
        return  # the parent has ended
    form = start.config.logging
    logging.configure(form.level, form.format, scorer=start.number)
    held.release(form.format)
    try:
        with printed_to(form.format):
            await ScorerProcess(start, channel).serve()
    except (OSError, sqlite3.Error, ConfigError, PluginError) as error:
        _log.error("scorer cannot start", reason=_reason(error, start.config))
        sys.exit(CANNOT_START)


def _reason(error: Exception, config: Config) -> str:
    """The text, with the places of mistakes in the configuration file."""
    if isinstance(error, SettingError):
        return str(config.problem(error.path, error.text))
    if isinstance(error, ConfigError):
        placed = (one if one.file else config.problem(one.path, one.text) for one in error.problems)
        return str(ConfigError(placed))
    return str(error)


def _end(error: EndedError) -> None:
    """At once: what is acknowledged is in the store, and the parent starts another process."""
    _log.error(ENDED, reason=str(error))
    end_process(FAILED)


def main() -> None:
    """Score for the parent until it says stop, or ends."""
    # The parent decides when to stop, also if the system asks all processes of a service.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    report_crashes()
    save_memory(read_limits())
    threading.excepthook = ending_in_thread(_end)
    asyncio.run(_serve(socket.socket(fileno=int(sys.argv[1]))))
    end_process()


if __name__ == "__main__":
    main()

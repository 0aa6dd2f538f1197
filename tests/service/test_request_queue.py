"""The queue before the pipeline thread: the backlog, the order of requests, and commands between
them.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.core.traces.explain import Waiting
from pathgauge.collector.service.publisher import Publisher
from pathgauge.collector.service.request_queue import QueueUsage, RequestQueue
from pathgauge.collector.service.worker import Worker
from pathgauge.collector.store import Delivery, Transaction
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import span, trace_id
from support.dialects import INSTALLED
from support.running import PATIENCE_S, until

MAX_AGE_S = 20.0
NEVER = Bounds(settle=3600.0, idle=3600.0, max_age=3600.0)


class Fed(Pipeline):
    """Records the journal rows that it is fed."""

    def __init__(self) -> None:
        super().__init__(INSTALLED, Evaluator(()), ReferenceSet(), InternalTelemetry(), NEVER)
        self.rows: list[int] = []
        self.when_fed: Callable[[int], object] = lambda row: None

    def feed(
        self, spans: Iterable[Span], logs: Iterable[LogRecord], now: float, row: int = 0
    ) -> list[PipelineEvent]:
        self.rows.append(row)
        self.when_fed(row)
        return super().feed(spans, logs, now, row)


class Running:
    """A worker with a store on disk; `now` is the time of both."""

    def __init__(self, folder: Path, capacity: int = 1 << 20) -> None:
        self.now = 100.0
        self.commits: list[Transaction] = []
        self.pipeline = Fed()
        self.store = SqliteStore(folder, on_commit=lambda kind, seconds: self.commits.append(kind))
        self.queue = RequestQueue(
            self.store, lambda: self.pipeline.full, capacity, max_backlog_age=MAX_AGE_S
        )
        publisher = Publisher(self.pipeline, self.store)
        self.worker = Worker(self.pipeline, self.store, InternalTelemetry(), publisher, self.queue)
        self.late: dict[int, threading.Event] = {}
        """Events that delay rows between their commit and their delivery."""
        restored = self.store.open()
        self.store.start(self._deliver, lambda: self.now)
        self.worker.start(restored)

    def _deliver(self, delivery: Delivery) -> bool:
        if delivery.row in self.late:
            self.late[delivery.row].wait(PATIENCE_S)
        return self.queue.deliver(delivery)

    async def send(self, trace: str) -> bool:
        one = span("a", "work", trace=trace)
        request = ExportTraceServiceRequest(
            resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[one.proto])])]
        )
        return await self.queue.accept(
            Batch(Origin("", "grpc", "traces", "protobuf"), request.SerializeToString(), (one,))
        )

    async def ask(self) -> list[Waiting]:
        return await asyncio.wrap_future(
            self.worker.ask(lambda: self.pipeline.waiting(self.now, 10))
        )

    def busy(self) -> threading.Event:
        """Block the worker until the event is set."""
        unblock = threading.Event()
        self.worker.call(partial(unblock.wait, PATIENCE_S))
        return unblock

    def stop(self) -> None:
        self.worker.stop(PATIENCE_S)
        self.store.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    running = Running(tmp_path)
    yield running
    running.stop()


async def test_the_backlog_is_as_old_as_its_oldest_request(running: Running) -> None:
    queue = running.queue
    assert queue.usage() == QueueUsage(0, 0, 0.0)
    running.now = 200.0
    unblock = running.busy()
    assert await running.send("first")
    running.now = 203.0
    assert await running.send("second")
    running.now = 210.0
    assert queue.usage()[1:] == (2, 10.0)
    unblock.set()
    await running.ask()
    assert queue.usage() == QueueUsage(0, 0, 0.0)


async def test_senders_are_told_to_retry_while_the_backlog_is_too_old(running: Running) -> None:
    unblock = running.busy()
    assert await running.send("first")
    running.now += MAX_AGE_S - 0.1
    assert await running.send("second")
    running.now += 0.1
    assert not await running.send("third")
    unblock.set()
    await running.ask()
    assert await running.send("third")


@pytest.fixture
def crowded(tmp_path: Path) -> Iterator[Running]:
    """The queue has space for one request; the others wait in the journal."""
    running = Running(tmp_path, capacity=1)
    yield running
    running.stop()


async def test_a_request_that_is_read_before_it_is_handed_over_is_taken_in_once(
    crowded: Running,
) -> None:
    crowded.late[3] = threading.Event()
    unblock = crowded.busy()
    assert await crowded.send("first")
    assert await crowded.send("second")
    third = asyncio.create_task(crowded.send("third"))
    assert await asyncio.to_thread(until, lambda: crowded.commits == ["requests"] * 3)
    unblock.set()
    assert await asyncio.to_thread(until, lambda: crowded.pipeline.rows == [1, 2, 3])
    for _ in range(20):
        await crowded.ask()  # between questions the worker finds the journal read to its end
    crowded.late[3].set()
    assert await third
    assert await crowded.send("fourth")
    assert await asyncio.to_thread(until, lambda: crowded.pipeline.rows[-1] == 4)
    assert crowded.pipeline.rows == [1, 2, 3, 4]


async def test_a_question_waits_for_one_request_of_a_backlog_and_not_for_all(
    crowded: Running,
) -> None:
    answers: list[Future[list[int]]] = []
    crowded.pipeline.when_fed = lambda row: answers.append(
        crowded.worker.ask(crowded.pipeline.rows.copy)
    )
    unblock = crowded.busy()
    for number in range(1, 6):
        assert await crowded.send(str(number))
    unblock.set()
    assert await asyncio.to_thread(until, lambda: len(answers) == 5)
    assert [await asyncio.wrap_future(answer) for answer in answers] == [
        list(range(1, last + 1)) for last in range(1, 6)
    ]


async def test_what_waits_is_told_after_the_batches_that_came_before(running: Running) -> None:
    unblock = running.busy()
    assert await running.send("first")
    running.now = 107.5
    question = asyncio.create_task(running.ask())
    await asyncio.sleep(0)
    unblock.set()
    [trace] = await question
    assert (trace.trace_id, trace.age, trace.spans) == (trace_id("first"), 7.5, 1)


async def test_a_question_that_nobody_waits_for_any_more_is_passed_over(running: Running) -> None:
    asked: list[str] = []
    unblock = running.busy()
    forgotten = running.worker.ask(lambda: asked.append("forgotten"))
    assert forgotten.cancel()
    unblock.set()
    await asyncio.wrap_future(running.worker.ask(lambda: asked.append("waited for")))
    assert asked == ["waited for"]


async def test_whoever_asks_is_told_what_went_wrong_and_the_worker_goes_on(
    running: Running,
) -> None:
    with pytest.raises(ZeroDivisionError):
        await asyncio.wrap_future(running.worker.ask(lambda: 1 // 0))
    assert await running.ask() == []


async def test_commits_are_timed_by_what_they_are_for(running: Running) -> None:
    assert await running.send("first")
    assert await asyncio.to_thread(until, lambda: "results" in running.commits)
    assert running.commits[0] == "requests"

"""The pipeline thread: which requests it accepts and refuses, and that failures stay isolated."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import pytest
from structlog.testing import capture_logs

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    EvaluationKey,
    Evaluator,
)
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.sink import Sink
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.service.publisher import Publisher
from pathgauge.collector.service.request_queue import RequestQueue
from pathgauge.collector.service.worker import Worker
from pathgauge.collector.store.memory import MemoryStore
from pathgauge.collector.testing import span, span_id, trace_id
from pathgauge.scorers.cost.latency_and_failure import Failure
from support.dialects import INSTALLED
from support.running import PATIENCE_S

Start = Callable[..., "Running"]
Clock = Callable[[], float]


class Running(NamedTuple):
    """A worker and the queue before it."""

    worker: Worker
    queue: RequestQueue


class RecordingSink:
    """A sink that records what is published."""

    def __init__(self) -> None:
        self.agents: list[str | None] = []
        self.withdrawn: list[EvaluationKey] = []
        self.cases: list[ConversationResult] = []
        self.closed = 0
        self.published = threading.Semaphore(0)

    def publish(self, evaluation: Evaluation, now: float) -> None:
        self.agents.append(evaluation.invocation.agent)
        self.published.release()

    def publish_judged(self, judged: Judged, now: float) -> None:
        pass

    def publish_conversation(self, case: ConversationResult, now: float) -> None:
        self.cases.append(case)

    def withdraw(self, key: EvaluationKey) -> None:
        self.withdrawn.append(key)

    def close(self) -> None:
        self.closed += 1


class Broken(RecordingSink):
    """A sink whose methods all fail."""

    def publish(self, evaluation: Evaluation, now: float) -> None:
        raise RuntimeError("disk full")

    def publish_judged(self, judged: Judged, now: float) -> None:
        pass

    def publish_conversation(self, case: ConversationResult, now: float) -> None:
        raise RuntimeError("disk full")

    def withdraw(self, key: EvaluationKey) -> None:
        raise RuntimeError("disk full")

    def close(self) -> None:
        raise RuntimeError("disk full")


class Unreadable(Span):
    """A span of an agent that raises an error when it is read."""

    @property
    def events(self) -> tuple[()]:
        raise RuntimeError("nobody foresaw this")


def run_of(agent: str, trace: str = "", *, parent: str | None = None) -> Span:
    """One agent invocation. Its trace is named after the agent by default."""
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
    return span(agent, f"invoke_agent {agent}", attributes, trace=trace or agent, parent=parent)


def batch(*spans: Span, size: int = 1) -> Batch:
    return Batch(Origin("", "grpc", "traces", "protobuf"), bytes(size), spans=spans)


AT_ONCE = Bounds(settle=0.0, idle=0.0)
NEVER = Bounds(settle=3600.0, idle=3600.0, max_age=3600.0)


def pipeline(bounds: Bounds = AT_ONCE, telemetry: InternalTelemetry | None = None) -> Pipeline:
    return Pipeline(
        INSTALLED,
        Evaluator((Criterion("failure", Failure(), 0.5),)),
        ReferenceSet(),
        telemetry or InternalTelemetry(),
        bounds,
    )


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts workers, and stops them when the test ends."""
    started: list[Worker] = []

    def start(
        *sinks: Sink,
        capacity: int = 100,
        of: Pipeline | None = None,
        telemetry: InternalTelemetry | None = None,
        now: Clock = time.monotonic,
    ) -> Running:
        store = MemoryStore()
        core = of or pipeline()
        queue = RequestQueue(store, lambda: core.full, capacity)
        publisher = Publisher(core, store, sinks=sinks)
        worker = Worker(core, store, telemetry or InternalTelemetry(), publisher, queue)
        store.start(queue.deliver, now)
        worker.start()
        started.append(worker)
        return Running(worker, queue)

    yield start
    for worker in started:
        worker.stop(PATIENCE_S)


async def test_what_is_accepted_is_published(start: Start) -> None:
    recorder = RecordingSink()
    _, queue = start(recorder)
    assert await queue.accept(batch(run_of("planner"), run_of("critic")))
    assert recorder.published.acquire(timeout=PATIENCE_S)
    assert recorder.published.acquire(timeout=PATIENCE_S)
    assert sorted(map(str, recorder.agents)) == ["critic", "planner"]


async def test_a_full_queue_refuses_and_takes_again_when_there_is_room(start: Start) -> None:
    recorder = RecordingSink()
    worker, queue = start(recorder, capacity=100)
    unblock = threading.Event()
    worker.call(partial(unblock.wait, PATIENCE_S))
    assert [await queue.accept(batch(run_of(agent), size=60)) for agent in ("a", "b", "c")] == [
        True,
        False,
        False,
    ]
    assert await queue.accept(batch(run_of("d"), size=40))
    assert queue.usage().queued_bytes == 100
    unblock.set()
    assert recorder.published.acquire(timeout=PATIENCE_S)
    assert recorder.published.acquire(timeout=PATIENCE_S)
    assert queue.usage().queued_bytes == 0
    assert await queue.accept(batch(run_of("e"), size=60))
    worker.stop(PATIENCE_S)
    assert recorder.agents == ["a", "d", "e"]


async def test_a_batch_larger_than_the_queue_is_let_in_alone(start: Start) -> None:
    worker, queue = start(capacity=10)
    unblock = threading.Event()
    worker.call(partial(unblock.wait, PATIENCE_S))
    assert await queue.accept(batch(run_of("a"), size=1000))
    assert not await queue.accept(batch(run_of("b"), size=1))
    unblock.set()


async def test_open_traces_that_use_up_their_memory_refuse_more(start: Start) -> None:
    filled = pipeline(replace(NEVER, max_open_bytes=1))
    worker, queue = start(of=filled)
    assert await queue.accept(batch(run_of("a")))
    done = threading.Event()
    worker.call(done.set)
    assert done.wait(PATIENCE_S)
    assert (filled.usage().open_traces, await queue.accept(batch(run_of("b")))) == (1, False)


async def test_a_sink_that_fails_keeps_nothing_from_the_others(start: Start) -> None:
    recorder = RecordingSink()
    worker, queue = start(Broken(), recorder)
    with capture_logs() as logs:
        assert await queue.accept(batch(run_of("inner", "trace", parent="outer")))
        assert recorder.published.acquire(timeout=PATIENCE_S)
        assert await queue.accept(batch(run_of("outer", "trace")))
        assert recorder.published.acquire(timeout=PATIENCE_S)
        assert worker.stop(PATIENCE_S)
    assert (recorder.agents, recorder.withdrawn) == (
        ["inner", "outer"],
        [("", trace_id("trace"), span_id("inner"))],
    )
    assert recorder.closed == 1
    assert {(entry["event"], entry["log_level"], entry.get("sink")) for entry in logs} == {
        ("sink failed", "error", "Broken"),
        ("sink could not be closed", "error", "Broken"),
    }


async def test_a_trace_that_cannot_be_read_is_logged_and_its_neighbours_are_scored(
    start: Start,
) -> None:
    recorder, telemetry = RecordingSink(), InternalTelemetry()
    worker, queue = start(recorder, of=pipeline(telemetry=telemetry))
    good = run_of("good")
    bad = Unreadable(run_of("bad").raw, good.resource, good.scope)
    with capture_logs() as logs:
        assert await queue.accept(batch(bad, good))
        assert await queue.accept(batch(run_of("next")))
        assert worker.stop(PATIENCE_S)
    assert sorted(map(str, recorder.agents)) == ["good", "next"]
    [entry] = [entry for entry in logs if entry["event"] == "trace could not be read"]
    assert (entry["log_level"], entry["trace_id"], str(entry["exc_info"])) == (
        "error",
        trace_id("bad"),
        "nobody foresaw this",
    )
    assert telemetry.traces_skipped.get("unreadable") == 1


async def test_a_command_that_fails_does_not_stop_the_thread(start: Start) -> None:
    recorder = RecordingSink()
    worker, queue = start(recorder)

    def fail() -> None:
        raise RuntimeError("out of luck")

    with capture_logs() as logs:
        worker.call(fail)
        assert await queue.accept(batch(run_of("a")))
        assert recorder.published.acquire(timeout=PATIENCE_S)
    assert (worker.alive, [entry["event"] for entry in logs]) == (True, ["pipeline step failed"])


async def test_time_alone_makes_a_trace_ready(start: Start) -> None:
    recorder = RecordingSink()
    worker, queue = start(recorder, of=pipeline(replace(AT_ONCE, settle=0.2, idle=0.2)))
    assert await queue.accept(batch(run_of("a")))
    assert recorder.published.acquire(timeout=PATIENCE_S)
    assert (worker.alive, recorder.agents) == (True, ["a"])


async def test_a_worker_that_lags_judges_by_the_times_of_arrival(start: Start) -> None:
    recorder, telemetry, times = RecordingSink(), InternalTelemetry(), [0.0]
    worker, queue = start(
        recorder,
        of=pipeline(replace(AT_ONCE, settle=1.0, idle=1.0), telemetry),
        now=lambda: times[-1],
    )
    unblock = threading.Event()
    worker.call(partial(unblock.wait, PATIENCE_S))
    assert await queue.accept(batch(run_of("inner", "trace", parent="outer")))
    times.append(0.9)
    assert await queue.accept(batch(run_of("outer", "trace")))
    times.append(100.0)
    unblock.set()
    assert worker.stop(PATIENCE_S)
    assert (recorder.agents, recorder.withdrawn, telemetry.revisions.total()) == (["outer"], [], 0)


async def test_a_stop_reads_what_is_queued_and_what_is_open(start: Start) -> None:
    recorder = RecordingSink()
    worker, queue = start(recorder, of=pipeline(NEVER))
    for number in range(50):
        assert await queue.accept(batch(run_of(f"agent-{number}")))
    assert worker.stop(PATIENCE_S)
    assert sorted(map(str, recorder.agents)) == sorted(f"agent-{number}" for number in range(50))
    assert (worker.alive, queue.usage().queued_bytes, recorder.closed) == (False, 0, 1)


async def test_a_stop_that_takes_too_long_says_so(start: Start) -> None:
    worker, _ = start()
    unblock = threading.Event()
    worker.call(partial(unblock.wait, PATIENCE_S))
    assert not worker.stop(0.01)
    unblock.set()


async def test_nothing_is_acknowledged_that_will_not_be_read(start: Start) -> None:
    worker, queue = start()
    assert worker.stop(PATIENCE_S)
    assert not await queue.accept(batch(run_of("late")))

"""The thread of the core: what it takes and refuses, and what one failure may not do to the rest."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

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
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.service.publisher import Publisher
from pathgauge.collector.service.worker import Worker
from pathgauge.collector.sinks import Sink
from pathgauge.collector.store.memory import MemoryStore
from pathgauge.collector.testing import span, span_id, trace_id
from pathgauge.scorers.cost.latency_and_failure import Failure

PATIENCE_S = 20.0

Start = Callable[..., Worker]
Clock = Callable[[], float]


class Notebook:
    """A sink that writes down what it is told."""

    def __init__(self) -> None:
        self.agents: list[str | None] = []
        self.withdrawn: list[EvaluationKey] = []
        self.cases: list[ConversationResult] = []
        self.closed = 0
        self.told = threading.Semaphore(0)

    def publish(self, evaluation: Evaluation, now: float) -> None:
        self.agents.append(evaluation.invocation.agent)
        self.told.release()

    def publish_judged(self, judged: Judged, now: float) -> None:
        pass

    def publish_conversation(self, case: ConversationResult, now: float) -> None:
        self.cases.append(case)

    def withdraw(self, key: EvaluationKey) -> None:
        self.withdrawn.append(key)

    def close(self) -> None:
        self.closed += 1


class Broken(Notebook):
    """A sink that fails at everything."""

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
    """A span that says it is an agent's and then cannot be read."""

    @property
    def events(self) -> tuple[()]:
        raise RuntimeError("nobody foresaw this")


def run_of(agent: str, trace: str = "", *, parent: str | None = None) -> Span:
    """One agent invocation: a trace of its own, named after the agent unless told otherwise."""
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
    return span(agent, f"invoke_agent {agent}", attributes, trace=trace or agent, parent=parent)


def batch(*spans: Span, size: int = 1) -> Batch:
    return Batch(Origin("", "grpc", "traces", "protobuf"), bytes(size), spans=spans)


AT_ONCE = Bounds(settle=0.0, idle=0.0)
NEVER = Bounds(settle=3600.0, idle=3600.0, max_age=3600.0)


def pipeline(bounds: Bounds = AT_ONCE, telemetry: InternalTelemetry | None = None) -> Pipeline:
    return Pipeline(
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
    ) -> Worker:
        store = MemoryStore()
        core = of or pipeline()
        worker = Worker(
            core,
            store,
            telemetry or InternalTelemetry(),
            Publisher(core, store, sinks=sinks),
            capacity,
        )
        store.start(worker.deliver, now)
        worker.start()
        started.append(worker)
        return worker

    yield start
    for worker in started:
        worker.stop(PATIENCE_S)


async def test_what_is_accepted_is_published(start: Start) -> None:
    notebook = Notebook()
    worker = start(notebook)
    assert await worker.accept(batch(run_of("planner"), run_of("critic")))
    assert notebook.told.acquire(timeout=PATIENCE_S)
    assert notebook.told.acquire(timeout=PATIENCE_S)
    assert sorted(map(str, notebook.agents)) == ["critic", "planner"]


async def test_a_full_queue_refuses_and_takes_again_when_there_is_room(start: Start) -> None:
    notebook = Notebook()
    worker = start(notebook, capacity=100)
    going_on = threading.Event()
    worker.call(partial(going_on.wait, PATIENCE_S))
    assert [await worker.accept(batch(run_of(agent), size=60)) for agent in ("a", "b", "c")] == [
        True,
        False,
        False,
    ]
    assert await worker.accept(batch(run_of("d"), size=40))
    assert worker.waiting == 100
    going_on.set()
    assert notebook.told.acquire(timeout=PATIENCE_S)
    assert notebook.told.acquire(timeout=PATIENCE_S)
    assert worker.waiting == 0
    assert await worker.accept(batch(run_of("e"), size=60))
    worker.stop(PATIENCE_S)
    assert notebook.agents == ["a", "d", "e"]


async def test_a_batch_larger_than_the_queue_is_let_in_alone(start: Start) -> None:
    worker = start(capacity=10)
    going_on = threading.Event()
    worker.call(partial(going_on.wait, PATIENCE_S))
    assert await worker.accept(batch(run_of("a"), size=1000))
    assert not await worker.accept(batch(run_of("b"), size=1))
    going_on.set()


async def test_open_traces_that_use_up_their_memory_refuse_more(start: Start) -> None:
    filled = pipeline(replace(NEVER, max_open_bytes=1))
    worker = start(of=filled)
    assert await worker.accept(batch(run_of("a")))
    done = threading.Event()
    worker.call(done.set)
    assert done.wait(PATIENCE_S)
    assert (filled.open_traces, await worker.accept(batch(run_of("b")))) == (1, False)


async def test_a_sink_that_fails_keeps_nothing_from_the_others(start: Start) -> None:
    notebook = Notebook()
    worker = start(Broken(), notebook)
    with capture_logs() as logs:
        assert await worker.accept(batch(run_of("inner", "trace", parent="outer")))
        assert notebook.told.acquire(timeout=PATIENCE_S)
        assert await worker.accept(batch(run_of("outer", "trace")))
        assert notebook.told.acquire(timeout=PATIENCE_S)
        assert worker.stop(PATIENCE_S)
    assert (notebook.agents, notebook.withdrawn) == (
        ["inner", "outer"],
        [("", trace_id("trace"), span_id("inner"))],
    )
    assert notebook.closed == 1
    assert {(entry["event"], entry["log_level"], entry.get("sink")) for entry in logs} == {
        ("sink failed", "error", "Broken"),
        ("sink could not be closed", "error", "Broken"),
    }


async def test_a_trace_that_cannot_be_read_is_logged_and_its_neighbours_are_scored(
    start: Start,
) -> None:
    notebook, telemetry = Notebook(), InternalTelemetry()
    worker = start(notebook, of=pipeline(telemetry=telemetry))
    good = run_of("good")
    bad = Unreadable(run_of("bad").raw, good.resource, good.scope)
    with capture_logs() as logs:
        assert await worker.accept(batch(bad, good))
        assert await worker.accept(batch(run_of("next")))
        assert worker.stop(PATIENCE_S)
    assert sorted(map(str, notebook.agents)) == ["good", "next"]
    [entry] = [entry for entry in logs if entry["event"] == "trace could not be read"]
    assert (entry["log_level"], entry["trace_id"], str(entry["exc_info"])) == (
        "error",
        trace_id("bad"),
        "nobody foresaw this",
    )
    assert telemetry.traces_skipped.get("unreadable") == 1


async def test_a_command_that_fails_does_not_stop_the_thread(start: Start) -> None:
    notebook = Notebook()
    worker = start(notebook)

    def fail() -> None:
        raise RuntimeError("out of luck")

    with capture_logs() as logs:
        worker.call(fail)
        assert await worker.accept(batch(run_of("a")))
        assert notebook.told.acquire(timeout=PATIENCE_S)
    assert (worker.alive, [entry["event"] for entry in logs]) == (True, ["pipeline step failed"])


async def test_time_alone_makes_a_trace_ready(start: Start) -> None:
    notebook = Notebook()
    worker = start(notebook, of=pipeline(replace(AT_ONCE, settle=0.2, idle=0.2)))
    assert await worker.accept(batch(run_of("a")))
    assert notebook.told.acquire(timeout=PATIENCE_S)
    assert (worker.alive, notebook.agents) == (True, ["a"])


async def test_a_worker_that_lags_judges_by_the_times_of_arrival(start: Start) -> None:
    notebook, telemetry, times = Notebook(), InternalTelemetry(), [0.0]
    worker = start(
        notebook,
        of=pipeline(replace(AT_ONCE, settle=1.0, idle=1.0), telemetry),
        now=lambda: times[-1],
    )
    going_on = threading.Event()
    worker.call(partial(going_on.wait, PATIENCE_S))
    assert await worker.accept(batch(run_of("inner", "trace", parent="outer")))
    times.append(0.9)
    assert await worker.accept(batch(run_of("outer", "trace")))
    times.append(100.0)
    going_on.set()
    assert worker.stop(PATIENCE_S)
    assert (notebook.agents, notebook.withdrawn, telemetry.revisions.total()) == (["outer"], [], 0)


async def test_a_stop_reads_what_is_queued_and_what_is_open(start: Start) -> None:
    notebook = Notebook()
    worker = start(notebook, of=pipeline(NEVER))
    for number in range(50):
        assert await worker.accept(batch(run_of(f"agent-{number}")))
    assert worker.stop(PATIENCE_S)
    assert sorted(map(str, notebook.agents)) == sorted(f"agent-{number}" for number in range(50))
    assert (worker.alive, worker.waiting, notebook.closed) == (False, 0, 1)


async def test_a_stop_that_takes_too_long_says_so(start: Start) -> None:
    worker = start()
    going_on = threading.Event()
    worker.call(partial(going_on.wait, PATIENCE_S))
    assert not worker.stop(0.01)
    going_on.set()


async def test_nothing_is_acknowledged_that_will_not_be_read(start: Start) -> None:
    worker = start()
    assert worker.stop(PATIENCE_S)
    assert not await worker.accept(batch(run_of("late")))

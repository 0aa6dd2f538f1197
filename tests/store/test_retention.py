"""The store removes old results, and more when it is nearly full."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from pathgauge.collector.core import otlp
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import Changes, StoredTrace
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.core.traces import Bounds, TraceSnapshot
from pathgauge.collector.service import publisher
from pathgauge.collector.service.publisher import Publisher
from pathgauge.collector.service.request_queue import RequestQueue
from pathgauge.collector.service.worker import Worker
from pathgauge.collector.store import Progress, journal, removal, scorer_state
from pathgauge.collector.store.journal import Packer
from pathgauge.collector.store.recent_results import WindowBounds
from pathgauge.collector.store.retention import Retention
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED
from support.running import PATIENCE_S, until

HOUR, DAY = 3600.0, 86_400.0
MIB = 1 << 20
SMALL = Retention(max_bytes=16 * MIB, results_s=7 * DAY)
"""The write-ahead log alone may use 4 MiB."""
FAT = Evaluator((Criterion("x" * 10_000, Failure(), None),))
"""Each result of it needs 10 kB."""


def turn(name: str, size: int = 0, parent: str | None = None, trace: str = "") -> Span:
    """An invocation with so many incompressible bytes. The trace has the same name by default."""
    noise = random.Random(name).randbytes(size)
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": name,
        "noise": noise,
    }
    return span(name, f"invoke_agent {name}", attributes, trace=trace or name, parent=parent)


def request(*spans: Span) -> Batch:
    scope = ScopeSpans(spans=[span.proto for span in spans])
    body = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[scope])]
    ).SerializeToString()
    return Batch(Origin("", "grpc", "traces", "protobuf"), body, otlp.decode_traces(body).records)


def evaluation(name: str) -> Evaluation:
    return FAT.evaluate(
        Invocation(trace_id=trace_id(name), span_id=name, dialect="genai"),
        Match(unmatched="no_scenario_id"),
    )


class Life:
    """A collector process without its servers. Its running time passes only when the test says
    so.
    """

    def __init__(self, folder: Path, retention: Retention, windows: WindowBounds | None) -> None:
        self.store = SqliteStore(folder, retention, windows)
        restored = self.store.open()
        self.now = restored.at
        self.telemetry = InternalTelemetry()
        bounds = Bounds(settle=6.0, late_ttl=300.0)
        self.pipeline = Pipeline(
            INSTALLED,
            Evaluator(()),
            ReferenceSet(),
            self.telemetry,
            bounds,
            recall=self.store.recall,
        )
        self.pipeline.restore(restored.traces, self.now)
        self.requests = RequestQueue(self.store, lambda: self.pipeline.full, MIB)
        publisher = Publisher(self.pipeline, self.store)
        self.worker = Worker(self.pipeline, self.store, self.telemetry, publisher, self.requests)
        self.store.start(self.requests.deliver, lambda: self.now)
        self.worker.start(restored)

    async def accepts(self, batch: Batch) -> bool:
        """Retry until the request is accepted."""
        return await asyncio.wait_for(self._accepted(batch), PATIENCE_S)

    async def _accepted(self, batch: Batch) -> bool:
        while not await self.requests.accept(batch):
            await asyncio.sleep(0.05)
        return True

    def read(self, seconds: float, invocations: int) -> None:
        """Let time pass until this process has read so many invocations."""
        self.now += seconds
        self.worker.call(lambda: None)
        assert until(lambda: self.telemetry.invocations_read.total() == invocations)

    def end(self) -> None:
        self.worker.stop(PATIENCE_S)
        self.store.close()


Live = Callable[..., Life]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """Starts a collector, after stopping the last one."""
    lives: list[Life] = []

    def live(retention: Retention = SMALL, windows: WindowBounds | None = None) -> Life:
        end()
        lives.append(Life(tmp_path / "data", retention, windows))
        return lives[-1]

    def end() -> None:
        for one in lives:
            one.end()

    yield live
    end()


def commit(life: Life, wall: float, *names: str) -> None:
    """Store results with this wall clock."""
    assert life.store.commit(Progress(0, life.now, wall, [evaluation(name) for name in names]))


def kept(folder: Path, table: str = "results") -> list[str]:
    """The trace ids in a table, in order."""
    with closing(sqlite3.connect(folder / "data" / files.DATABASE)) as connection:
        return [name for (name,) in connection.execute(f"SELECT trace_id FROM {table} ORDER BY id")]


def ids(*names: str) -> list[str]:
    return [trace_id(name) for name in names]


def test_results_are_kept_as_long_as_is_said(live: Live, tmp_path: Path) -> None:
    now = time.time()
    commit(live(), now, "first", "second")
    commit(live(), now + 6 * DAY, "third")
    assert kept(tmp_path) == ids("first", "second", "third")
    commit(live(), now + 8 * DAY, "fourth")
    assert kept(tmp_path) == ids("third", "fourth")


def test_a_wall_clock_that_was_ahead_keeps_nothing_back(live: Live, tmp_path: Path) -> None:
    now = time.time()
    commit(live(), now + 365 * DAY, "from the future")
    commit(live(), now, "old")
    commit(live(), now + 8 * DAY, "new")
    assert kept(tmp_path) == ids("from the future", "new")


def test_a_wall_clock_that_jumps_ahead_while_it_runs_removes_nothing(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathgauge.collector.store.retention.CLEAN_S", 0.0)
    now, life = time.time(), live()
    for wall, name in ((now, "before"), (now + 400 * DAY, "ahead"), (now, "back")):
        commit(life, wall, name)
    commit(live(), now, "next")
    assert kept(tmp_path) == ids("before", "ahead", "back", "next")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("retention_s", "window_s", "expected"),
    [
        (7 * DAY, HOUR, ["recent", "new"]),
        (7 * DAY, 3 * HOUR, ["old", "recent", "new"]),
        (HOUR / 4, 3 * HOUR, ["new"]),
    ],
    ids=[
        "windows need less than is kept",
        "windows need everything",
        "less is kept than windows need",
    ],
)
async def test_a_nearly_full_store_keeps_the_results_that_windows_need(
    retention_s: float, window_s: float, expected: list[str], live: Live, tmp_path: Path
) -> None:
    life, now = live(Retention(64 * MIB)), time.time()
    commit(life, now - 2 * HOUR, "old")
    commit(life, now - HOUR / 2, "recent")
    for number in range(15):
        assert await life.requests.accept(request(turn(f"open {number}", MIB)))
    life = live(Retention(15 * MIB, retention_s), WindowBounds(max_age_s=window_s))
    assert life.store.usage().nearly_full
    commit(life, now, "new")
    assert kept(tmp_path) == ids(*expected)


@pytest.mark.slow
async def test_a_full_store_gives_up_traces_that_were_read_and_takes_requests_again(
    live: Live,
) -> None:
    life = live()
    sent = 0
    while sent < 30 and await life.requests.accept(request(turn(f"turn {sent}", MIB))):
        sent += 1
        await asyncio.sleep(0.05)
    assert 10 <= sent <= 20
    assert not await life.requests.accept(request(turn("refused", MIB)))
    life.read(6, sent)
    for number in range(8):
        assert await life.accepts(request(turn(f"next {number}", MIB)))
    await life.requests.accept(request(turn("late", trace="turn 0", parent="turn 0")))
    life.read(6, sent + 8)
    assert life.telemetry.spans_dropped.get("late") == 1
    assert life.store.usage().used < 16 * MIB
    life = live()
    assert await life.accepts(request(turn("late", trace="turn 1", parent="turn 1"), turn("last")))
    life.read(6, 1)
    assert life.telemetry.spans_dropped.get("late") == 1


@pytest.mark.slow
async def test_a_store_that_is_full_of_results_makes_room_though_nothing_happens(
    live: Live, tmp_path: Path
) -> None:
    life = live()
    commit(life, time.time() - 2 * HOUR, *(str(number) for number in range(1600)))
    life = live()
    assert not await life.requests.accept(request(turn("refused")))
    assert await life.accepts(request(turn("next")))
    assert kept(tmp_path) == []


@pytest.mark.slow
async def test_what_is_too_old_goes_though_nothing_happens(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(live(), time.time() - 8 * DAY, "old")
    monkeypatch.setattr(publisher, "IDLE_COMMIT_S", 0.1)
    live()
    assert until(lambda: kept(tmp_path) == [])


def test_traces_that_cannot_come_back_are_forgotten_from_the_oldest(tmp_path: Path) -> None:
    """Traces that may still have a journal row are kept, and so are the newest ones."""
    (tmp_path / "data").mkdir()
    with closing(files.connect(tmp_path / "data")) as connection:
        journal.append(
            connection, [Packer().pack(1, at=100.0, wall=0.0, batch=request(turn("waiting")))]
        )
        read, recent = (
            TraceSnapshot(("", "read"), (), 0, 0, closed_at=99.0),
            TraceSnapshot(("", "recent"), (), 0, 0, closed_at=100.0),
        )
        given_up, waits = (
            TraceSnapshot(("", "given up"), (), 0, 0, forgotten="late"),
            TraceSnapshot(("", "waits"), (1,), 0, 0),
        )
        newest = [
            TraceSnapshot(("", name), (), 0, 0, closed_at=1.0) for name in ("older", "newest")
        ]
        standings = (read, recent, given_up, waits, *newest)
        scorer_state.write(
            connection,
            Progress(
                0, 0.0, 0.0, changes=Changes(tuple(StoredTrace(one, {}) for one in standings))
            ),
        )
        assert removal.drop_trace_states(connection, kept_traces=1, max_rows=2) == 2
        assert kept(tmp_path, "traces") == ["recent", "waits", "older", "newest"]
        assert removal.drop_trace_states(connection, kept_traces=1, max_rows=2) == 1
        assert kept(tmp_path, "traces") == ["recent", "waits", "newest"]
        connection.execute("DELETE FROM journal")
        assert removal.drop_trace_states(connection, kept_traces=1, max_rows=2) == 2
        assert kept(tmp_path, "traces") == ["newest"]

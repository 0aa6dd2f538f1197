"""A purge removes every byte of the selected data from the folder. Other traces in the same
requests lose nothing.
"""

from __future__ import annotations

import asyncio
import base64
import json
import random
import re
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import zstandard
from hypothesis import given, settings, strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import (
    LogRecord as LogRecordProto,
    ResourceLogs,
    ScopeLogs,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceProto
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from pathgauge.collector.core import otlp
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    EvaluationKey,
    Evaluator,
)
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import Changes, Judged
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.service.publisher import Publisher
from pathgauge.collector.service.request_queue import RequestQueue
from pathgauge.collector.service.worker import Worker
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.store import Delivery, Progress, Purged, Selection
from pathgauge.collector.store.purge import mark
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import log, span, span_id, trace_id
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn
from support.dialects import INSTALLED
from support.examples import examples
from support.running import PATIENCE_S, until
from support.turns import json_of

PROTOBUF = Origin("", "grpc", "traces", "protobuf")
BOUNDS = Bounds(settle=6.0, idle=30.0, late_ttl=300.0)
DIALOGUE = Reference("dialogue", (ReferenceTurn(), ReferenceTurn()))


def secret(of: str) -> bytes:
    """The content of a span or log record with this name: random text, which compression does not
    change.
    """
    return random.Random(of).randbytes(1000)


def user_input_of(by: str) -> str:
    return f"In confidence: {secret(by).hex()[:64]}"


def turn(
    name: str,
    *,
    trace: str = "",
    scenario: str = "",
    conversation: str = "",
    parent: str | None = None,
    start: float = 0,
) -> Span:
    """An agent invocation with its secret. The trace has the same name by default."""
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": name,
        "gen_ai.conversation.id": conversation or None,
        "test.case.id": scenario or None,
        "secret": secret(name),
        "gen_ai.input.messages": json.dumps(
            [{"role": "user", "parts": [{"type": "text", "content": user_input_of(name)}]}]
        ),
    }
    return span(
        name,
        f"invoke_agent {name}",
        attributes,
        trace=trace or name,
        parent=parent,
        start=start,
        end=start + 1,
    )


def record(name: str, *, trace: str) -> LogRecord:
    return log(name, {"secret": secret(name)}, body=name, trace=trace)


def request(*spans: Span, tenant: str = "", as_json: bool = False) -> Batch:
    """An export request in which each span has its own resource and scope."""
    groups = [
        ResourceSpans(
            resource=ResourceProto(
                attributes=[KeyValue(key="service.name", value=AnyValue(string_value=one.name))]
            ),
            scope_spans=[
                ScopeSpans(
                    scope=InstrumentationScope(name=f"scope of {one.name}", version="1.2"),
                    spans=[one.proto],
                )
            ],
        )
        for one in spans
    ]
    proto = ExportTraceServiceRequest(resource_spans=groups)
    if as_json:
        body = json_of(proto)
        return Batch(
            Origin(tenant, "http", "traces", "json"),
            body,
            otlp.decode_traces_json(body, tenant=tenant).records,
        )
    body = proto.SerializeToString()
    return Batch(
        PROTOBUF._replace(tenant=tenant), body, otlp.decode_traces(body, tenant=tenant).records
    )


def logs_request(*records: LogRecord, without_trace: int = 0, tenant: str = "") -> Batch:
    protos = [
        *(one.proto for one in records),
        *[LogRecordProto(event_name="of no trace")] * without_trace,
    ]
    body = ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=protos)])]
    ).SerializeToString()
    return Batch(
        PROTOBUF._replace(signal="logs", tenant=tenant),
        body,
        logs=otlp.decode_logs(body).records,
        without_trace=without_trace,
    )


def holds(folder: Path, *names: str) -> list[bool]:
    """For each name: whether any file contains its secret or its trace id, compressed or not."""
    raw = b"".join(path.read_bytes().strip(b"\0") for path in folder.iterdir() if path.is_file())
    content = raw + b"".join(_decompressed(raw))
    return [any(piece in content for piece in _pieces(name)) for name in names]


def _decompressed(raw: bytes) -> Iterator[bytes]:
    for frame in re.finditer(re.escape(zstandard.FRAME_HEADER), raw):
        with suppress(zstandard.ZstdError):
            yield zstandard.ZstdDecompressor().decompressobj().decompress(raw[frame.start() :])


def _pieces(name: str) -> Iterator[bytes]:
    noise, trace = secret(name), trace_id(name)
    for piece in (noise[start : start + 16] for start in range(0, len(noise), 100)):
        yield piece
        yield base64.b64encode(piece)[:-4]
    yield from (noise.hex()[:64].encode(), trace.encode(), bytes.fromhex(trace))


class RecordingSink:
    """A sink that records what is published."""

    def __init__(self) -> None:
        self.invocations: dict[str | None, Invocation] = {}
        self.withdrawn: list[EvaluationKey] = []
        self.cases: list[ConversationResult] = []

    @property
    def agents(self) -> list[str]:
        return sorted(map(str, self.invocations))

    def publish(self, evaluation: Evaluation, now: float) -> None:
        self.invocations[evaluation.invocation.agent] = evaluation.invocation

    def publish_judged(self, judged: Judged, now: float) -> None:
        pass

    def publish_conversation(self, case: ConversationResult, now: float) -> None:
        self.cases.append(case)

    def withdraw(self, key: EvaluationKey) -> None:
        self.withdrawn.append(key)

    def close(self) -> None:
        pass


class Life:
    """A collector process without its servers. Its time passes only when the test says so."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = SqliteStore(folder)
        restored = self.store.open()
        self.now, self.requests = restored.at, restored.requests
        self.telemetry, counts = InternalTelemetry(), DurableMetrics()
        counts.add_telemetry(self.telemetry)
        evaluator = Evaluator((Criterion("failure", Failure(), 0.5),))
        recall = self.store.recall
        pipeline = Pipeline(
            INSTALLED,
            evaluator,
            ReferenceSet([DIALOGUE]),
            self.telemetry,
            BOUNDS,
            conversation_idle=1000.0,
            recall=recall,
        )
        pipeline.restore(restored.traces, self.now)
        for turn_of_conversation in restored.turns:
            pipeline.restore_turn(turn_of_conversation)
        counts.restore(restored.counts)
        self.sink = RecordingSink()
        self.queue = RequestQueue(self.store, lambda: pipeline.full, 1 << 20)
        publisher = Publisher(
            pipeline,
            self.store,
            immediate_sinks=[self.sink],
            durable_counts=[counts],
        )
        self.worker = Worker(pipeline, self.store, self.telemetry, publisher, self.queue)
        self.store.start(self.queue.deliver, lambda: self.now)
        self.worker.start(restored)

    async def send(self, *batches: Batch) -> None:
        assert await asyncio.gather(*(self.queue.accept(batch) for batch in batches)) == [
            True
        ] * len(batches)

    def scored(self, seconds: float, *agents: str) -> None:
        """Let time pass until this process has scored exactly these agents."""
        self.now += seconds
        self.worker.call(lambda: None)
        assert until(lambda: self.sink.agents == sorted(agents)), self.sink.agents

    def purge(self, selection: Selection) -> Purged:
        return self.worker.purge(selection).result(PATIENCE_S)

    def end(self) -> None:
        self.worker.stop(PATIENCE_S)
        self.store.close()


Live = Callable[[], Life]


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Live]:
    """Starts a collector, after stopping the last one."""
    lives: list[Life] = []

    def live() -> Life:
        end()
        lives.append(Life(tmp_path / "data"))
        return lives[-1]

    def end() -> None:
        for one in lives:
            one.end()

    yield live
    end()


def of_trace(name: str) -> Selection:
    return Selection(trace_id=trace_id(name))


def found(purged: Purged) -> tuple[int, int, str | None]:
    return purged.requests, purged.results, purged.unfinished


async def test_an_open_trace_is_gone_and_its_neighbours_are_scored(live: Live) -> None:
    life = live()
    await life.send(
        request(turn("a"), turn("secret"), turn("b")),
        request(turn("more", trace="secret", parent="secret"), turn("c"), as_json=True),
        logs_request(record("noted", trace="secret"), record("kept", trace="c")),
        request(turn("more", trace="secret", parent="secret")),
    )
    life.worker.ask(lambda: None).result(PATIENCE_S)
    assert all(holds(life.folder, "secret", "more", "noted", "kept", "a", "b", "c"))
    assert found(life.purge(of_trace("secret"))) == (
        3,
        0,
        None,
    )  # the copy that came last brought nothing new, and was given back
    assert not any(holds(life.folder, "secret", "more", "noted"))
    assert all(holds(life.folder, "kept", "a", "b", "c"))
    assert life.store.usage().requests == 3
    life.scored(6, "a", "b", "c")


async def test_the_neighbours_are_scored_by_the_next_process_as_they_would_have_been(
    live: Live,
) -> None:
    life = live()
    await life.send(
        request(turn("a"), turn("secret")),
        request(turn("secret"), turn("b", scenario="s"), as_json=True),
    )
    life.purge(of_trace("secret"))
    life = live()
    life.scored(6, "a", "b")
    b = life.sink.invocations["b"]
    assert (b.scenario_id, b.user_input) == ("s", user_input_of("b"))
    assert not any(holds(life.folder, "secret"))


async def test_a_trace_that_was_read_is_gone_with_its_results_and_leaves_the_windows(
    live: Live,
) -> None:
    life = live()
    await life.send(request(turn("a"), turn("secret")))
    life.scored(6, "a", "secret")
    purged = life.purge(of_trace("secret"))
    assert (found(purged), life.sink.withdrawn) == (
        (1, 1, None),
        [("", trace_id("secret"), span_id("secret"))],
    )
    assert not any(holds(life.folder, "secret"))
    life = live()
    await life.send(request(turn("b")))
    life.scored(6, "b")
    assert life.telemetry.invocations_scored.total() == 3
    assert not any(holds(life.folder, "secret"))


async def test_what_still_comes_of_a_purged_trace_is_dropped_and_counted(live: Live) -> None:
    life = live()
    await life.send(request(turn("secret")))
    life.purge(of_trace("secret"))
    await life.send(
        request(turn("late", trace="secret", parent="secret"), turn("b")),
        logs_request(record("noted", trace="secret")),
    )
    life.scored(6, "b")
    assert (
        life.telemetry.spans_dropped.get("purged"),
        life.telemetry.logs_dropped.get("purged"),
    ) == (
        1,
        1,
    )
    life.purge(of_trace("secret"))
    assert not any(holds(life.folder, "secret", "late", "noted"))


async def test_requests_that_the_pipeline_has_not_taken_in_are_purged_too(live: Live) -> None:
    life = live()
    unblock = threading.Event()
    life.worker.call(lambda: unblock.wait(PATIENCE_S))
    purging = life.worker.purge(of_trace("secret"))
    await life.send(
        request(turn("secret"), turn("a")),
        logs_request(record("noted", trace="secret"), without_trace=2),
    )
    unblock.set()
    assert found(purging.result(PATIENCE_S)) == (2, 0, None)
    assert not any(holds(life.folder, "secret", "noted"))
    life.scored(6, "a")
    assert (
        life.telemetry.spans_dropped.get("purged"),
        life.telemetry.logs_dropped.get("no_trace_id"),
    ) == (1, 2)


async def test_a_trace_is_purged_for_every_tenant(live: Live) -> None:
    life = live()
    await life.send(
        *(request(turn("secret"), turn(tenant), tenant=tenant) for tenant in ("blue", "green"))
    )
    assert found(life.purge(of_trace("secret"))) == (2, 0, None)
    assert not any(holds(life.folder, "secret"))
    life.scored(6, "blue", "green")


async def test_a_trace_of_another_tenant_has_nothing_to_do_with_one_of_the_same_id(
    live: Live,
) -> None:
    life = live()
    await life.send(
        request(turn("a", scenario="sales"), tenant="blue"),
        request(turn("b", trace="a"), tenant="green"),
    )
    life.scored(6, "a", "b")
    assert found(life.purge(Selection(scenario="sales"))) == (1, 1, None)
    assert [key[0] for key in life.sink.withdrawn] == ["blue"]
    assert all(holds(life.folder, "b"))


async def test_a_tenant_is_purged_with_all_that_is_stored_of_it(live: Live) -> None:
    life = live()
    await life.send(
        request(turn("a"), turn("b", scenario="dialogue", conversation="x"), tenant="blue"),
        request(turn("c", trace="a"), tenant="green"),
    )
    life.scored(6, "a", "b", "c")
    await life.send(
        request(turn("open"), tenant="blue"),
        logs_request(without_trace=1, tenant="blue"),
        request(turn("open"), tenant="green"),
    )
    life.worker.call(lambda: None)
    assert found(life.purge(Selection(tenant="blue"))) == (2, 2, None)
    assert sorted(key[0] for key in life.sink.withdrawn) == ["blue", "blue"]
    assert not any(holds(life.folder, "b"))
    assert all(holds(life.folder, "c", "open"))
    with closing(sqlite3.connect(life.folder / files.DATABASE)) as connection:
        for table in ("journal", "traces", "results", "turns", "evidence"):
            tenants = connection.execute(f"SELECT DISTINCT tenant FROM {table}").fetchall()
            assert ("blue",) not in tenants, table
    assert found(life.purge(Selection(tenant="blue"))) == (0, 0, None)
    await life.send(request(turn("again"), tenant="blue"))
    life.scored(6, "a", "again", "b", "c", "open")


async def test_a_scenario_is_purged_with_all_of_the_traces_that_have_a_result_of_it(
    live: Live,
) -> None:
    life = live()
    await life.send(
        request(
            turn("a", scenario="sales"),
            turn("beside", trace="a", scenario="refund"),
            turn("b", scenario="refund"),
        )
    )
    life.scored(6, "a", "b", "beside")
    await life.send(request(turn("open", scenario="sales")))
    assert found(life.purge(Selection(scenario="sales"))) == (1, 2, None)
    assert not any(holds(life.folder, "a", "beside"))
    assert all(holds(life.folder, "b", "open"))
    life.scored(6, "a", "b", "beside", "open")
    assert found(life.purge(Selection(scenario="sales"))) == (1, 1, None)
    assert found(life.purge(Selection(scenario="sales"))) == (0, 0, None)


@pytest.mark.parametrize("restarted", [False, True])
async def test_the_turns_of_an_unfinished_conversation_are_forgotten(
    restarted: bool, live: Live
) -> None:
    life = live()
    await life.send(request(turn("first", scenario="dialogue", conversation="talk", start=1)))
    life.scored(6, "first")
    life.now += 400  # the trace is not kept for late spans any more, the conversation goes on
    await life.send(request(turn("second", scenario="dialogue", conversation="talk", start=2)))
    life.scored(6, "first", "second")
    assert all(holds(life.folder, "first", "second"))
    assert found(life.purge(of_trace("first"))) == (0, 1, None)
    assert holds(life.folder, "first", "second") == [False, True]
    life = live() if restarted else life
    life.now += 1001
    life.worker.call(lambda: None)
    [case] = until(lambda: life.sink.cases)
    assert (case.matched, case.missing, case.unexpected) == (1, 1, 0)


@pytest.mark.parametrize(
    ("selection", "left"),
    [
        (of_trace("turn 8"), 8),
        (Selection(scenario="dialogue"), 0),
        (Selection(before=time.time() + 3600), 0),
    ],
    ids=["trace", "scenario", "before"],
)
async def test_what_is_known_of_turns_that_were_not_kept_goes_with_them(
    selection: Selection, left: int, live: Live
) -> None:
    life, names = live(), [f"turn {number}" for number in range(9)]
    sent = [
        turn(name, scenario="dialogue", conversation="talk", start=start)
        for start, name in enumerate(names)
    ]
    await life.send(request(*sent[:-1]))
    life.scored(6, *names[:-1])
    await life.send(request(sent[-1]))
    life.scored(6, *names)
    life.purge(of_trace("unheard of"))  # what was scored is durable now
    before = _turns(life)
    assert (sorted(before), before[-1]) == (sorted(map(trace_id, names)), trace_id(names[-1]))
    life.purge(selection)
    assert (_turns(life), holds(life.folder, "turn 8")) == (before[:left], [False])


def _turns(life: Life) -> list[str]:
    with closing(sqlite3.connect(life.folder / files.DATABASE)) as connection:
        return [trace for (trace,) in connection.execute("SELECT trace_id FROM turns ORDER BY id")]


async def test_a_turn_that_is_older_goes_though_a_newer_one_renumbered_it(live: Live) -> None:
    life = live()
    await life.send(request(turn("second", scenario="dialogue", conversation="talk", start=2)))
    life.scored(6, "second")
    life.purge(of_trace("unheard of"))  # what was scored is durable now
    between = time.time()
    life.now += 400
    await life.send(request(turn("first", scenario="dialogue", conversation="talk", start=1)))
    life.scored(6, "first", "second")
    life.purge(of_trace("unheard of"))
    assert sorted(_turns(life)) == sorted([trace_id("first"), trace_id("second")])
    assert found(life.purge(Selection(before=between))) == (0, 2, None)
    assert _turns(life) == [trace_id("first")]
    content = b"".join(path.read_bytes() for path in life.folder.iterdir() if path.is_file())
    kept = [user_input_of(name).encode() in content for name in ("first", "second")]
    assert kept == [True, False]


async def test_turns_that_are_older_go_though_their_requests_are_gone(live: Live) -> None:
    life = live()
    await life.send(request(turn("first", scenario="dialogue", conversation="talk", start=1)))
    life.scored(6, "first")
    life.purge(of_trace("unheard of"))  # what was scored is durable now
    between = time.time()
    life.now += 400
    await life.send(request(turn("second", scenario="dialogue", conversation="talk", start=2)))
    life.scored(6, "first", "second")
    assert found(life.purge(Selection(before=between))) == (0, 1, None)
    assert _turns(life) == [trace_id("second")]
    life.now += 1001
    life.worker.call(lambda: None)
    [case] = until(lambda: life.sink.cases)
    assert (case.matched, case.missing) == (1, 1)


async def test_what_is_older_is_purged_and_what_is_newer_is_not(live: Live) -> None:
    life = live()
    await life.send(
        request(turn("read", scenario="dialogue", conversation="talk")),
        logs_request(record("noted", trace="old")),
    )
    life.scored(6, "read")
    await life.send(request(turn("old")))
    assert found(life.purge(Selection(before=time.time() - 3600))) == (0, 0, None)
    between = time.time()
    await life.send(
        request(turn("rest", trace="old", parent="old"), turn("new")), request(turn("other"))
    )
    assert found(life.purge(Selection(before=between))) == (4, 1, None)
    assert not any(holds(life.folder, "read", "noted", "old", "rest"))
    assert all(holds(life.folder, "new", "other"))
    life = live()
    life.scored(6, "new", "other")
    assert found(life.purge(Selection(before=time.time()))) == (2, 2, None)
    assert set(life.sink.withdrawn) == {
        ("", trace_id("new"), span_id("new")),
        ("", trace_id("other"), span_id("other")),
    }


@pytest.mark.parametrize("column", ["body = x'00'", "traces = x'00'", "form = 'grpc traces json'"])
async def test_a_damaged_row_that_may_hold_it_goes_as_a_whole(
    column: str, live: Live, tmp_path: Path
) -> None:
    life = live()
    await life.send(request(turn("secret"), turn("a")))
    await life.send(request(turn("b")))
    life.end()
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE)) as connection, connection:
        connection.execute(f"UPDATE journal SET {column} WHERE id = 1")
    store = SqliteStore(tmp_path / "data")
    store.open()
    store.start(lambda delivery: False, time.monotonic)
    purged = store.purge(of_trace("secret"))
    store.close()
    assert purged.unfinished is None
    assert holds(tmp_path / "data", "secret", "a", "b") == [False, False, True]
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE)) as connection, connection:
        assert connection.execute("SELECT count(*) FROM quarantine").fetchall() == [(0,)]


async def test_what_was_set_aside_goes_whatever_the_purge_is_for(
    live: Live, tmp_path: Path
) -> None:
    life = live()
    await life.send(request(turn("a")))
    for suffix in ("", "-wal"):
        (tmp_path / "data" / f"{files.DATABASE}.damaged-1{suffix}").write_bytes(secret("secret"))
    purged = life.purge(of_trace("unheard of"))
    assert (purged.requests, purged.results, purged.damaged) == (0, 0, 2)
    assert holds(life.folder, "secret", "a") == [False, True]


async def test_a_purge_that_fails_is_finished_by_the_next(live: Live, tmp_path: Path) -> None:
    life = live()
    await life.send(request(turn("secret"), turn("a")))
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE)) as connection, connection:
        connection.execute(
            "CREATE TRIGGER broken BEFORE DELETE ON results BEGIN SELECT RAISE(ABORT, 'out of"
            " luck'); END"
        )
    life.scored(6, "a", "secret")
    assert life.purge(of_trace("secret")).unfinished == "out of luck"
    assert all(holds(life.folder, "secret", "a"))
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE)) as connection, connection:
        connection.execute("DROP TRIGGER broken")
    assert found(life.purge(of_trace("unheard of"))) == (0, 1, None)
    assert holds(life.folder, "secret", "a") == [False, True]
    assert set(life.sink.withdrawn) == {("", trace_id("secret"), span_id("secret"))}


async def test_a_purge_that_ended_before_the_file_was_written_anew_is_finished_by_the_next(
    live: Live, tmp_path: Path
) -> None:
    life = live()
    await life.send(request(turn("secret"), turn("a")))
    with closing(
        sqlite3.connect(tmp_path / "data" / files.DATABASE, isolation_level=None)
    ) as reading:
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM journal").fetchall()
        purged = life.purge(of_trace("secret"))
        assert found(purged) == (1, 0, "another process reads the database")
        assert all(holds(life.folder, "secret"))
    life.scored(6, "a")
    assert found(life.purge(of_trace("secret"))) == (0, 0, None)
    assert holds(life.folder, "secret", "a") == [False, True]


async def test_while_a_purge_waits_requests_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pathgauge.collector.store.sqlite.purging._READER_S", PATIENCE_S)
    store = SqliteStore(tmp_path / "data")
    store.open()
    store.start(lambda delivery: False, time.monotonic)
    assert await store.append(request(turn("secret"), turn("a")))
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE, isolation_level=None)) as one:
        one.execute("BEGIN")
        one.execute("SELECT count(*) FROM journal").fetchall()
        purging = asyncio.create_task(asyncio.to_thread(store.purge, of_trace("secret")))
        assert await asyncio.to_thread(until, lambda: _is_purging(tmp_path / "data"))
        for _ in range(5):
            assert await store.append(request(turn("b")))
        assert not purging.done()
    assert (await purging).unfinished is None
    store.close()
    assert holds(tmp_path / "data", "secret", "a", "b") == [False, True, True]


def _is_purging(folder: Path) -> bool:
    with closing(files.connect_reader(folder)) as connection:
        return mark.read(connection) is not None


Sent = list[list[int]]


@settings(max_examples=examples(25), deadline=None)
@given(
    sent=st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=5), min_size=1, max_size=6),
    as_json=st.booleans(),
)
def test_all_other_records_are_read_as_before(sent: Sent, as_json: bool) -> None:
    """Each number is a trace; trace 0 is purged."""
    batches = [
        request(
            *(turn(f"{row}/{place}", trace=str(trace)) for place, trace in enumerate(traces)),
            as_json=as_json,
        )
        for row, traces in enumerate(sent)
    ]
    with TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "data")
        store.open()
        store.start(lambda delivery: False, map(float, count()).__next__)

        async def append() -> None:
            for batch in batches:
                assert await store.append(batch)

        asyncio.run(append())
        before = list(store.read(0))
        purged = store.purge(of_trace("0"))
        after = list(store.read(0))
        store.close()
    assert purged.requests == sum(0 in traces for traces in sent)
    assert [_content(delivery) for delivery in after] == [
        content for delivery in before if (content := _content(delivery))[-1]
    ]


def _content(delivery: Delivery) -> tuple[object, ...]:
    """The content of a delivery without the records of trace 0."""
    origin = delivery.batch.origin
    spans = [
        (one, one.resource, one.scope)
        for one in delivery.batch.spans
        if one.trace_id != trace_id("0")
    ]
    return delivery.row, delivery.at, origin.tenant, origin.transport, origin.signal, spans


def test_a_turn_that_waits_for_its_evaluation_is_as_old_as_its_requests(tmp_path: Path) -> None:
    invocation = Invocation(trace_id("a"), span_id("a"), "genai", conversation_id="talk")
    changes = Changes(turns=(StoredTurn(invocation, 1.0, held=True),))
    store = SqliteStore(tmp_path)
    store.open()
    store.start(lambda delivery: False, time.monotonic)
    assert store.commit(Progress(0, 1.0, time.time(), changes=changes))
    purged = store.purge(Selection(before=time.time() - 3600))
    left = store.held()
    store.close()
    assert (purged.traces, left) == (frozenset(), {("", trace_id("a"))})


@pytest.mark.parametrize("body", ["{", "null", "{}"])
async def test_a_damaged_result_is_purged_with_its_trace(body: str, live: Live) -> None:
    life = live()
    await life.send(request(turn("secret", conversation="talk"), turn("a", conversation="talk")))
    life.scored(6, "a", "secret")
    life.purge(of_trace("unheard of"))  # what was scored is durable now
    life.store.record_feedback([Answer("", "", conversation_id="other", label="pass")])
    with closing(sqlite3.connect(life.folder / files.DATABASE)) as connection, connection:
        connection.execute(
            "UPDATE results SET body = ? WHERE trace_id = ?", (body, trace_id("secret"))
        )
    assert found(life.purge(of_trace("secret"))) == (1, 1, None)
    assert holds(life.folder, "secret", "a") == [False, True]

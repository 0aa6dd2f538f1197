"""The partitions of a cluster without processes and a broker: each is a real store in PostgreSQL
with a real pipeline, and performs the steps of `pathgauge.collector.service.worker`. Time passes
only when the test says so.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from psycopg.conninfo import make_conninfo

from pathgauge import ToolTrajectoryF1
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.partitioning import (
    Partition,
    partition_of_conversation,
    partition_of_trace,
)
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import (
    PipelineEvent,
    PublishedEvent,
    Unreadable,
    Withdrawn,
)
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.receivers.kafka.records import KafkaRecord
from pathgauge.collector.receivers.kafka.rereading import Place
from pathgauge.collector.service.cluster.partition_store import PartitionStore
from pathgauge.collector.store import Delivery, Progress
from pathgauge.collector.store.postgres.connection import connect
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import ExpectedCall, Reference, ReferenceTurn
from support.dialects import INSTALLED

TOTAL = 3
IDLE_S = 1800.0
"""After which a conversation ends."""
BEGIN = 1_800_000_000.0
STEP_S = 30.0
"""How often a partition that is up to date does something."""
_NUMBERS = count()
_ORIGIN = Origin("", "grpc", "traces", "protobuf")
_BOUNDS = Bounds(settle=1.0, idle=2.0, late_ttl=60.0)
TOOLS = "abcd"
REFERENCE = Reference(
    "talk", tuple(ReferenceTurn(tool_calls=(ExpectedCall(tool),)) for tool in TOOLS)
)


@dataclass(slots=True)
class Log:
    """The topic of one partition, and how far it was read."""

    records: list[KafkaRecord] = field(default_factory=list)
    read: int = 0

    def write(self, at: float, batch: Batch) -> None:
        self.records.append(KafkaRecord("spans", len(self.records), at, batch, {}))

    def at_end(self, now: float) -> bool:
        return self.read == len(self.records)

    def fetch(self, places: Sequence[Place]) -> Iterator[KafkaRecord]:
        return iter([self.records[place[1]] for place in places])


class VirtualPartition:
    """The scorer of one partition."""

    def __init__(self, address: str, partition: Partition, log: Log, clock: Callable[[], float]):
        self.number = partition.number
        self._database = PartitionDatabase(address, partition.number)
        self._log = log
        self._delivered: deque[Delivery] = deque()
        self._gathered: list[PublishedEvent] = []
        self._pipeline = Pipeline(
            INSTALLED,
            Evaluator((Criterion("f1", ToolTrajectoryF1(), 1.0),)),
            ReferenceSet([REFERENCE]),
            InternalTelemetry(),
            _BOUNDS,
            conversation_idle=IDLE_S,
            partition=partition,
        )
        self._store = PartitionStore(
            self._database,
            log,
            "test",
            on_lost=lambda: None,
            on_purge=lambda purge: None,
            on_reached=self._pipeline.hear,
            clock=clock,
        )
        restored = self._store.open()
        log.read = self._store.position.offsets.get("spans", 0)
        self._row = restored.row
        self._pipeline.restore(restored.traces, restored.at)
        for turn in restored.turns:
            self._pipeline.restore_turn(turn)
        self._store.start(self._deliver, clock)

    def read(self, records: int) -> None:
        """Read some records that wait."""
        for record in self._log.records[self._log.read :][:records]:
            assert self._store.take(record)
            self._log.read += 1

    def process(self) -> None:
        """Process what was delivered, and what is due."""
        while self._delivered:
            delivery = self._delivered.popleft()
            while (deadline := self._pipeline.deadline()) is not None and deadline <= delivery.at:
                self._gather(self._pipeline.expire(delivery.at))
            _, at, batch = delivery
            if batch.turn is not None:
                self._gather(self._pipeline.feed_turn(batch.turn, at, delivery.row))
            else:
                self._gather(self._pipeline.feed(batch.spans, (), at, delivery.row))
            self._row = delivery.row
        self._gather(self._pipeline.expire(self._store.horizon()))

    def poll(self) -> None:
        """Take what others have left."""
        self._store.poll()

    def commit(self) -> list[PublishedEvent]:
        """Make everything durable; returns what is published then."""
        published, self._gathered = self._gathered, []
        progress = Progress(
            self._row, self._store.horizon(), 0.0, published, self._pipeline.changes()
        )
        assert self._store.commit(progress)
        return published

    def close(self) -> None:
        """Stop without a commit."""
        self._store.close()

    def _deliver(self, delivery: Delivery) -> bool:
        self._delivered.append(delivery)
        return True

    def _gather(self, events: Iterable[PipelineEvent]) -> None:
        for event in events:
            assert not isinstance(event, Unreadable), event.error
            self._gathered.append(event)


class VirtualCluster:
    """All partitions, in a new schema. One that is `stopped` reads nothing, as if it had no
    scorer.
    """

    def __init__(self, address: str, total: int = TOTAL) -> None:
        self.now = BEGIN
        self.total = total
        self.stopped: set[int] = set()
        self.numbers: dict[str, list[int | None]] = {}
        """The turns of the reference that each trace was evaluated with, in order."""
        self.finished: list[tuple[float, ConversationResult]] = []
        """The conversations that have ended, each with the time when this was published."""
        schema = f"cluster_{next(_NUMBERS)}"
        with closing(connect(address)) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        # The server does not crash, and a commit that waits for the disk takes most of the time.
        options = f"-csearch_path={schema} -csynchronous_commit=off"
        self._address = make_conninfo(address, options=options)
        self._logs = [Log() for _ in range(total)]
        self._partitions = [self._started(number) for number in range(total)]

    def send(self, *spans: Span) -> None:
        """One request with spans of one trace."""
        number = partition_of_trace(spans[0].trace_id, self.total)
        self._logs[number].write(self.now, Batch(_ORIGIN, b"", spans))

    def wait(self, seconds: float, step: float = STEP_S) -> None:
        """Let time pass. At each step, each partition gets a request without agents."""
        until = self.now + seconds
        while self.now < until:
            self.now = min(until, self.now + step)
            for log in self._logs:
                log.write(self.now, Batch(_ORIGIN, b""))
            for one in self._partitions:
                if one.number not in self.stopped:
                    self.catch_up(one.number)

    def catch_up(self, number: int, records: float = math.inf) -> None:
        """Have a partition read what waits for it: so many `records` between two looks at what
        others have left.
        """
        log, one = self._logs[number], self._partitions[number]
        while True:
            one.poll()
            one.read(int(min(records, len(log.records))))
            one.process()
            self._publish(one.commit())
            if log.at_end(self.now):
                return

    def restart(self, number: int) -> None:
        """Another scorer takes a partition over. What the first has processed last is lost."""
        last = self._partitions[number]
        last.poll()
        last.read(1)
        last.process()
        last.close()
        self._partitions[number] = self._started(number)

    def close(self) -> None:
        """Close all connections."""
        for one in self._partitions:
            one.close()

    def _started(self, number: int) -> VirtualPartition:
        partition = Partition(number, self.total)
        return VirtualPartition(self._address, partition, self._logs[number], lambda: self.now)

    def _publish(self, events: Iterable[PublishedEvent]) -> None:
        for event in events:
            assert not isinstance(event, Withdrawn)
            if isinstance(event, ConversationResult):
                self.finished.append((self.now, event))
            elif isinstance(event, Evaluation):
                trace = event.invocation.trace_id
                self.numbers.setdefault(trace, []).append(event.match.turn_index)


def conversation_in(number: int) -> str:
    """The name of a conversation that belongs to a partition."""
    return next(
        name
        for name in map("conversation {}".format, count())
        if partition_of_conversation(("", name, REFERENCE.scenario_id), TOTAL) == number
    )


def turn_in(number: int, conversation: str, start: float) -> tuple[Span, Span]:
    """The spans of a turn whose trace belongs to a partition."""
    names = (f"turn {n} at {start}" for n in count())
    return _spans(
        next(name for name in names if partition_of_trace(trace_id(name), TOTAL) == number),
        conversation,
        start,
    )


def _spans(name: str, conversation: str, start: float) -> tuple[Span, Span]:
    named: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "support",
        "gen_ai.conversation.id": conversation,
        "pathgauge.scenario.id": REFERENCE.scenario_id,
    }
    called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "a"}
    return (
        span(name, "invoke_agent support", named, trace=name, start=start, end=start + 1),
        span(f"{name}/tool", "execute_tool a", called, trace=name, parent=name, start=start + 0.5),
    )

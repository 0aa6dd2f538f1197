"""Scorers of one collector without processes and servers: each is a real store with a real
pipeline. Time passes only when the test says so.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count, islice
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pathgauge.collector.core import otlp
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    EvaluationKey,
    Evaluator,
)
from pathgauge.collector.core.evaluations.fingerprint import fingerprint
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin, Relayed
from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.otlp.split import split
from pathgauge.collector.core.partitioning import WHOLE, Partition, partition_of_trace
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent, Withdrawn
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.store import Progress
from pathgauge.collector.store.forwarded_turns import batch_of_turn
from pathgauge.collector.store.outbox import OutboxReader
from pathgauge.collector.store.resharding import left_publications, reshard
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import log, span
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn
from support.dialects import INSTALLED
from support.judged import JUDGED
from support.turns import json_of

BOUNDS = Bounds(settle=6.0, idle=30.0, late_ttl=300.0)
CONVERSATION_IDLE_S = 500.0
DIALOGUE = Reference("dialogue", (ReferenceTurn(), ReferenceTurn()))
REFERENCES = ReferenceSet([DIALOGUE])
_EVERYTHING = 1 << 30


def is_turn(invocation: Invocation) -> bool:
    """Whether an invocation belongs to a conversation."""
    return REFERENCES.multi_turn(invocation) is not None and bool(invocation.conversation_id)


def folders(main: Path) -> int:
    """How many folders of scorers a store has."""
    return sum(path.name.startswith("scorers-") for path in main.iterdir())


def agent_span(
    name: str,
    *,
    trace: str,
    conversation: str = "",
    start: float = 0.0,
    text: str = "",
    parent: str | None = None,
) -> Span:
    """An invocation of an agent."""
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": name,
        "gen_ai.conversation.id": conversation or None,
        "test.case.id": "dialogue" if conversation else None,
        "text": text or None,
    }
    return span(
        name,
        f"invoke_agent {name}",
        attributes,
        trace=trace,
        start=start,
        end=start + 1,
        parent=parent,
        resource={"service.name": name},
    )


def request(*spans: Span, tenant: str = "", as_json: bool = False) -> Batch:
    """An export request."""
    body = encode_request(spans)
    if not as_json:
        records = otlp.decode_traces(body, tenant=tenant).records
        return Batch(Origin(tenant, "grpc", "traces", "protobuf"), body, records)
    body = json_of(ExportTraceServiceRequest.FromString(body))
    records = otlp.decode_traces_json(body, tenant=tenant).records
    return Batch(Origin(tenant, "http", "traces", "json"), body, records)


def logs_request(*traces: str, without_trace: int = 0, own_events: int = 0) -> Batch:
    """An export request with one log record for each trace, and some of no trace."""
    records = [log("noted", {"n": n}, trace=trace) for n, trace in enumerate(traces)]
    body = encode_request(records, without_trace, own_events)
    decoded = otlp.decode_logs(body)
    return Batch(
        Origin("", "http", "logs", "protobuf"),
        body,
        logs=decoded.records,
        without_trace=decoded.without_trace,
        own_events=decoded.own_events,
    )


class Scorer:
    """One store with its pipeline."""

    def __init__(
        self, folder: Path, name: str, partition: Partition, telemetry: InternalTelemetry
    ) -> None:
        self.folder, self.name = folder, name
        self.is_whole = partition == WHOLE
        self.store = SqliteStore(folder, part="whole" if name == "" else "scorer")
        self.restored = restored = self.store.open()
        self.now = restored.at
        self.row = restored.row
        self.last_row = restored.last_row
        self.telemetry = telemetry
        self.pipeline = Pipeline(
            INSTALLED,
            Evaluator((Criterion("failure", Failure(), 0.5), JUDGED)),
            REFERENCES,
            telemetry,
            BOUNDS,
            conversation_idle=CONVERSATION_IDLE_S,
            recall=self.store.recall,
            judging=lambda invocation, scenario: "later",
            partition=partition,
        )
        self.pipeline.restore(restored.traces, self.now)
        for turn in restored.turns:
            self.pipeline.restore_turn(turn)
        for pending in restored.pending:
            self.pipeline.restore_pending(pending)
        self.pipeline.suspect(self.store.usage().suspect)
        self.events: list[PipelineEvent] = []
        self.store.start(self._deliver, lambda: self.now)

    def _deliver(self, delivery: Any) -> bool:
        self.last_row = delivery.row
        return True

    def append(self, batch: Batch) -> None:
        assert asyncio.run(self.store.append(batch))

    def process(self, requests: int = _EVERYTHING) -> None:
        """Process some of the requests that wait, and everything that is due when none is left."""
        while requests and (found := list(islice(self.store.read(self.row), requests))):
            for delivery in found:
                self._expire(delivery.at)
                delivery.batch.count(self.telemetry)
                if delivery.batch.turn is not None:
                    turn = delivery.batch.turn
                    self.events += self.pipeline.feed_turn(turn, delivery.at, delivery.row)
                else:
                    spans, logs = delivery.batch.spans, delivery.batch.logs
                    self.events += self.pipeline.feed(spans, logs, delivery.at, delivery.row)
                self.row = delivery.row
            requests -= len(found)
        if self.row == self.last_row:
            self._expire(self.now)

    def commit(self, publication: bytes | None = None) -> list[PipelineEvent]:
        """Make everything durable; returns what happened."""
        events, self.events = self.events, []
        published: Any = events
        progress = Progress(
            self.row,
            self.now,
            1e9,
            published,
            self.pipeline.changes(),
            publication=None if self.is_whole and self.name == "" else publication,
        )
        assert self.store.commit(progress)
        return events

    def _expire(self, until: float) -> None:
        while (due := self.pipeline.deadline()) is not None and due <= until:
            self.events += self.pipeline.expire(until)


class Scorers:
    """All scorers of a collector, and what its gauge would know."""

    def __init__(self, main: Path) -> None:
        self.main = main
        self.telemetry = InternalTelemetry()
        self.running: list[Scorer] = []
        self.newest: dict[EvaluationKey, tuple[Any, ...]] = {}
        self.revisions: dict[EvaluationKey, list[int]] = {}
        self.withdrawn: set[EvaluationKey] = set()
        self.conversations: Counter[tuple[Any, ...]] = Counter()
        self.sent_publications: list[int] = []
        self.read_publications: list[int] = []
        self._numbers = count(1)

    def start(self, workers: int) -> None:
        folders = reshard(self.main, workers, is_turn=is_turn)
        self.workers = workers
        if not folders:
            self.running = [Scorer(self.main, "", WHOLE, self.telemetry)]
            return
        self.running = [
            Scorer(
                folder,
                "/".join(folder.parts[-2:]),
                Partition(number, len(folders)),
                self.telemetry,
            )
            for number, folder in enumerate(folders)
        ]

    def stop(self) -> None:
        for scorer in self.running:
            scorer.store.close()
        self.running = []

    def send(self, batch: Batch) -> None:
        parts = split(batch, lambda trace: partition_of_trace(trace, len(self.running)))
        for part, piece in parts.items():
            self.running[part].append(piece)

    def pass_time(self, seconds: float) -> None:
        for scorer in self.running:
            scorer.now += seconds

    def work(self, requests: int = _EVERYTHING) -> None:
        """Each scorer processes some requests, and commits."""
        for scorer in self.running:
            scorer.process(requests)
            number = next(self._numbers)
            if scorer.name:
                self.sent_publications.append(number)
            self._note(scorer.commit(str(number).encode()))

    def relay(self, turns: int = _EVERYTHING) -> int:
        """Bring some turns from each outbox to their receivers; returns how many were new."""
        relayed = 0
        for sender in self.running if len(self.running) > 1 else []:
            for row, body, target in islice(
                OutboxReader(sender.folder).forwarded(0, _EVERYTHING), turns
            ):
                for number, receiver in enumerate(self.running):
                    if receiver is sender or target not in (None, number):
                        continue
                    before = receiver.last_row
                    receiver.append(batch_of_turn(body, Relayed(sender.name, row)))
                    relayed += receiver.last_row - before
        return relayed

    def publish(self, publications: int) -> None:
        """The gauge reads some publications of each scorer, and stores how far it has read."""
        if not self.workers:
            return
        gauge = SqliteStore(self.main, part="gauge")
        restored = gauge.open()
        gauge.start(lambda delivery: True, lambda: 0.0)
        for scorer in self.running:
            after = restored.published.get(scorer.name, 0)
            reader = OutboxReader(scorer.folder)
            for row, body, _ in reader.publications(after, _EVERYTHING)[:publications]:
                self.read_publications.append(int(body))
                assert gauge.commit(Progress(0, 0.0, 1e9, published={scorer.name: row}))
        gauge.close()

    def finish(self) -> None:
        """Process everything until nothing is open. Turns are brought to their conversations before
        these end.
        """
        for seconds in (0.0, *[BOUNDS.idle] * 3, CONVERSATION_IDLE_S + BOUNDS.late_ttl):
            self.pass_time(seconds)
            self.work()
            while self.relay():
                self.work()
        if self.workers:
            self.publish(_EVERYTHING)
        left = left_publications(self.main, 0, _EVERYTHING)
        self.read_publications += [int(body) for _, body, _ in left]

    def accepted(self) -> int:
        return sum(number for _, number in self.telemetry.accepted.items())

    def _note(self, events: Iterable[PipelineEvent]) -> None:
        for event in events:
            if isinstance(event, Evaluation):
                known = fingerprint(event.invocation), event.match.turn_index
                revisions = self.revisions.setdefault(event.key, [])
                revisions.append(event.revision)
                if event.revision >= max(revisions):
                    self.newest[event.key] = known
                self.withdrawn.discard(event.key)
            elif isinstance(event, Withdrawn):
                self.withdrawn.add(event.key)
            elif isinstance(event, ConversationResult):
                key = event.tenant, event.conversation_id
                self.conversations[*key, event.matched, event.missing, event.unexpected] += 1


TRACES = [f"trace {n}" for n in range(12)]
SOME_STATE: Sequence[tuple[str, Any]] = [
    ("send", request(*(agent_span(f"{trace} 0", trace=trace) for trace in TRACES[:6]))),
    ("send", request(agent_span("trace 6 1", trace="trace 6", conversation="one"), as_json=True)),
    ("pass_time", 7.0),
    ("work", 9),
    ("publish", 1),
    ("send", request(agent_span("trace 7 1", trace="trace 7", conversation="one"), tenant="a")),
    ("send", request(agent_span("trace 6 0", trace="trace 6", conversation="two", start=3))),
    ("work", 9),
    ("pass_time", 7.0),
    ("work", 9),
    ("send", logs_request(*TRACES, without_trace=2, own_events=1)),
    ("send", request(*(agent_span(f"{trace} 1", trace=trace, start=1) for trace in TRACES))),
]
"""Traces that were read, open traces, turns, judgments and requests of several traces."""


def run(running: Scorers, steps: Sequence[tuple[str, Any]]) -> None:
    for name, argument in steps:
        getattr(running, name)(argument)

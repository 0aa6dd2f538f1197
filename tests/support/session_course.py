"""Simulated sessions: a pipeline with a store in memory and without a clock, and a simple model of
what should become of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson
import pytest

from pathgauge import SessionTokens, SessionTurns, ToolCalls
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.partitioning import Partition
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import (
    PipelineEvent,
    PublishedEvent,
    Unreadable,
)
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.sessions.session import SessionBounds
from pathgauge.collector.core.traces import Bounds, Recalled, TraceKey
from pathgauge.collector.store import Delivery, Progress, journal, results, scorer_state
from pathgauge.collector.store.journal import Packer
from pathgauge.collector.store.restore import restore
from pathgauge.collector.testing import span, trace_id
from support.dialects import INSTALLED
from support.memory_store import memory_store

TRACE_S = 1.0
"""From the last span of a trace until it is read."""
BOUNDS = Bounds(settle=TRACE_S, idle=TRACE_S, late_ttl=100_000.0, max_age=200_000.0)
SESSION = SessionBounds(
    idle=100.0, settle=10.0, reopen=300.0, max_age=1_000.0, max_turns=5, max_session_bytes=1 << 30
)
CRITERIA = (
    Criterion("session_turns", SessionTurns()),
    Criterion("session_tokens", SessionTokens()),
    Criterion("tool_calls", ToolCalls()),
)


def partition_pipeline(number: int, total: int) -> Pipeline:
    """The pipeline of one of so many partitions."""
    return Pipeline(
        INSTALLED,
        Evaluator(CRITERIA),
        ReferenceSet(),
        InternalTelemetry(),
        BOUNDS,
        session_bounds=SESSION,
        partition=Partition(number, total),
    )


class Sent(NamedTuple):
    """One turn of a conversation, or a late span of it."""

    pause: float
    """Seconds since what was sent before."""
    conversation: str
    number: int
    """Of the turn, in all conversations."""
    ends: bool = False
    """Whether it signals the end of the session."""
    is_late: bool = False
    """Whether it is a late span of a turn that was sent before."""


class Told(NamedTuple):
    """What the newest result of a session says, and how many results it had."""

    turns: frozenset[str]
    ended_by: str
    results: int
    tokens: float


def turn(sent: Sent) -> list[Span]:
    name = f"turn {sent.number}"
    if sent.is_late:
        tokens = {"gen_ai.usage.input_tokens": 100, "gen_ai.usage.output_tokens": 0}
        called = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **tokens}
        return [span(f"{name}/late", "chat m", called, trace=name, parent=name, start=0.2)]
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "support",
        "gen_ai.conversation.id": sent.conversation,
    }
    if sent.ends:
        agent["pathgauge.session.end"] = "resolved"
    tokens = {"gen_ai.usage.input_tokens": 2, "gen_ai.usage.output_tokens": 1}
    called = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", **tokens}
    start = 10.0 * sent.number
    return [
        span(name, "invoke_agent support", agent, trace=name, start=start, end=start + 5),
        span(f"{name}/model", "chat m", called, trace=name, parent=name, start=start + 1),
    ]


@dataclass(slots=True)
class Course:
    """A pipeline over a store."""

    bounds: SessionBounds = SESSION
    max_bytes: int = 1 << 30
    evaluator: Evaluator = field(default_factory=lambda: Evaluator(CRITERIA))
    now: float = 0.0
    telemetry: InternalTelemetry = field(default_factory=InternalTelemetry)
    counted: list[str] = field(default_factory=list)
    """Ids of the sessions that were published as new."""
    core: Pipeline = field(init=False)
    store: sqlite3.Connection = field(init=False)
    _events: list[PublishedEvent] = field(default_factory=list)
    _committed: InternalTelemetry = field(init=False)
    _committed_at: float = 0.0
    _row: int = 0
    _packer: Packer = field(default_factory=Packer)

    def __post_init__(self) -> None:
        self.store = memory_store()
        self._committed = deepcopy(self.telemetry)
        self.restart()

    def restart(self) -> None:
        """Begin, or continue with what is stored."""
        self.core = Pipeline(
            INSTALLED,
            self.evaluator,
            ReferenceSet(),
            self.telemetry,
            BOUNDS,
            session_bounds=self.bounds,
            max_conversation_bytes=self.max_bytes,
            recall=self._recall,
        )
        restored = restore(self.store, lambda *damaged: pytest.fail(f"{damaged} is damaged"))
        self._row = restored.row
        self.core.restore(restored.traces, self.now)
        for session in restored.sessions:
            self.core.restore_session(session)

    def kill(self) -> None:
        """Lose everything since the last commit, and read the journal again."""
        self.telemetry = deepcopy(self._committed)
        until, self.now, self._events = self.now, self._committed_at, []
        self.restart()
        for values in journal.read(self.store, self._row, 1 << 30):
            delivery = journal.unpack(values)
            self._wait_until(delivery.at)
            self._process(delivery)
        self._wait_until(until)

    def send(self, sent: Sent, *, killed: bool = False) -> None:
        """Have the spans read, and commit; `killed`: before the commit."""
        self._wait_until(self.now + sent.pause)
        self._feed(sent)
        self._wait_until(self.now + TRACE_S)
        if killed:
            self.kill()
        self.commit()

    def wait(self, seconds: float) -> None:
        """Let time pass, and commit."""
        self._wait_until(self.now + seconds)
        self.commit()

    def commit(self) -> None:
        """Write everything that happened."""
        changes = self.core.changes()
        progress = Progress(self._row, self.now, 0.0, self._events, changes)
        results.write_results(self.store, progress)
        scorer_state.write(self.store, progress)
        for event in self._events:
            if isinstance(event, Evaluation) and event.session and not event.revision:
                self.counted.append(event.key[1])
        self._events = []
        self._committed, self._committed_at = deepcopy(self.telemetry), self.now

    def told(self) -> list[Told]:
        """The newest result of each session in the store."""
        names = {trace_id(f"turn {number}"): f"turn {number}" for number in range(1_000)}
        found = []
        for revision, text in self.store.execute(
            "SELECT max(revision), body FROM results WHERE body LIKE '%\"session\":{%'"
            " AND withdrawn = 0 GROUP BY trace_id"
        ):
            body = orjson.loads(text)
            values = {one["name"]: one["value"] for one in body["criteria"]}
            turns = frozenset(names[trace] for trace, _ in body["session"]["turns"])
            assert values["session_turns"] == len(body["session"]["turns"]) == len(turns)
            tokens = values["session_tokens"]
            found.append(Told(turns, body["session"]["ended_by"], revision + 1, tokens))
        return sorted(found, key=lambda one: sorted(one.turns))

    def left(self) -> tuple[int, int]:
        """The sessions and turns that are stored to be continued."""
        [sessions] = self.store.execute("SELECT count(*) FROM sessions").fetchone()
        [turns] = self.store.execute("SELECT count(*) FROM session_turns").fetchone()
        return sessions, turns

    def _feed(self, sent: Sent) -> None:
        spans = tuple(turn(sent))
        batch = Batch(Origin("", "grpc", "traces", "protobuf"), encode_request(spans), spans)
        rows = self.store.execute("SELECT coalesce(max(id), 0) + 1 FROM journal").fetchone()
        row = max(self._row + 1, rows[0])
        journal.append(self.store, [self._packer.pack(row, self.now, 0.0, batch)])
        self._process(Delivery(row, self.now, batch))

    def _process(self, delivery: Delivery) -> None:
        self._row = delivery.row
        self._take(self.core.feed(delivery.batch.spans, (), delivery.at, delivery.row))

    def _recall(self, key: TraceKey, rows: Sequence[int]) -> Iterator[Recalled]:
        for row in rows:
            for values in journal.fetch(self.store, row):
                delivery = journal.unpack(values)
                spans = [one for one in delivery.batch.spans if one.trace_id == key[1]]
                yield Recalled(delivery.at, spans, ())

    def _wait_until(self, until: float) -> None:
        while (deadline := self.core.deadline()) is not None and deadline <= until:
            self.now = max(self.now, deadline)
            self._take(self.core.expire(self.now))
        self.now = until

    def _take(self, events: Iterable[PipelineEvent]) -> None:
        for event in events:
            assert not isinstance(event, Unreadable), event.error
            self._events.append(event)


@dataclass(slots=True)
class _Truth:
    """One session of the model."""

    opened: float
    changed: float
    turns: list[Sent] = field(default_factory=list)
    late: set[int] = field(default_factory=set)
    results: int = 0
    ended_by: str = ""
    is_open: bool = True
    waits_for_turns: bool = True
    closed: bool = False

    def due(self) -> tuple[float, str]:
        newest = max(self.turns, key=lambda one: one.number)
        if not self.is_open:
            return self.changed + SESSION.reopen, "forgotten"
        if len(self.turns) >= SESSION.max_turns and not newest.ends and self.waits_for_turns:
            return self.changed, "turns"
        at = self.changed + (SESSION.idle if self.waits_for_turns else SESSION.settle)
        if newest.ends:
            at = self.changed + SESSION.settle
        old_at = self.opened + SESSION.max_age
        if self.waits_for_turns and not self.closed:
            at = min(at, old_at)
        if len(self.turns) >= SESSION.max_turns:
            return at, "turns"
        if at >= old_at:
            return at, "age"
        return at, "signal" if newest.ends else "idle"

    def end_until(self, now: float) -> bool:
        """Whether it is still known at this time."""
        while (due := self.due())[0] <= now:
            at, reason = due
            if reason == "forgotten":
                return False
            self.is_open, self.changed, self.ended_by = False, at, reason
            self.results += 1
            self.closed = self.closed or reason in ("turns", "age")
        return True


def truth(sent: Sequence[Sent], then: float) -> list[Told]:
    """What should become of the turns, with some time after the last one."""
    now, sessions, current = 0.0, list[_Truth](), dict[str, _Truth]()
    known: list[_Truth] = []
    for one in sent:
        now += one.pause + TRACE_S  # a turn arrives when its trace is read
        known = [session for session in known if session.end_until(now)]
        if one.is_late:
            _correct(known, one, now)
            continue
        session = current.get(one.conversation)
        if session is not None and (session.closed or session not in known):
            session = None
        if session is None or now >= session.opened + SESSION.max_age:
            session = current[one.conversation] = _Truth(now, now)
            sessions.append(session)
            known.append(session)
        session.turns.append(one)
        session.changed, session.is_open, session.waits_for_turns = now, True, True
        session.closed = len(session.turns) >= SESSION.max_turns
    for session in known:
        session.end_until(now + then)
    told = [
        Told(
            frozenset(f"turn {turn.number}" for turn in session.turns),
            session.ended_by,
            session.results,
            sum(3 + 100 * (turn.number in session.late) for turn in session.turns),
        )
        for session in sessions
        if session.results
    ]
    return sorted(told, key=lambda one: sorted(one.turns))


def _correct(known: Sequence[_Truth], one: Sent, now: float) -> None:
    for session in known:
        if one.number in (turn.number for turn in session.turns) and one.number not in session.late:
            session.late.add(one.number)
            if session.is_open and session.waits_for_turns:
                return
            session.changed, session.is_open, session.waits_for_turns = now, True, False

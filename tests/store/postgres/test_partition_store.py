"""A partition as the store of a pipeline."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing

import pytest

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey, Evaluator
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import Changes, ForwardedTurn
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.sessions.session import KeptTurn, Session, session_id
from pathgauge.collector.core.sessions.stored_session import SessionChanges
from pathgauge.collector.receivers.kafka.records import KafkaRecord
from pathgauge.collector.service.cluster.partition_store import PartitionStore, Source
from pathgauge.collector.service.publisher import Publisher
from pathgauge.collector.store import Delivery, Progress, Restored, Selection
from pathgauge.collector.store.forwarded_turns import encode
from pathgauge.collector.store.postgres import messages
from pathgauge.collector.store.postgres.connection import connect
from pathgauge.collector.store.postgres.messages import Purge
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.collector.store.postgres.purge import purge
from pathgauge.collector.testing import trace_id
from pathgauge.scorers.types import Invocation
from support.answered import answer, given
from support.dialects import INSTALLED
from support.evaluated import WALL, evaluation
from support.judged import JUDGED, request, run_of
from support.shared_database import NoRecords, rows, scorer, step

GOOD = ForwardedTurn(("", "ab" * 16, "cd" * 8), void=True)
NOW = 1_800_000_000.0
REQUEST = Batch(Origin("", "grpc", "traces", "protobuf"), b"", ())


class Unread(NoRecords):
    """A source whose end is not reached yet."""

    def at_end(self, now: float) -> bool:
        return False


def opened(
    address: str,
    source: Source | None = None,
    on_reached: Callable[[float], None] = lambda reached: None,
    on_purge: Callable[[Purge], None] = lambda purge: None,
    on_feedback_dropped: Callable[[int], None] = lambda answers: None,
) -> tuple[PartitionStore, Restored]:
    store = PartitionStore(
        PartitionDatabase(address, 0),
        source or NoRecords(),
        "one",
        on_lost=lambda: None,
        on_purge=on_purge,
        on_feedback_dropped=on_feedback_dropped,
        on_reached=on_reached,
        clock=lambda: NOW,
    )
    return store, store.open()


def started(store: PartitionStore) -> list[Delivery]:
    """What it delivers."""
    delivered: list[Delivery] = []

    def deliver(delivery: Delivery) -> bool:
        delivered.append(delivery)
        return True

    store.start(deliver, lambda: 0.0)
    return delivered


def forward(address: str, *bodies: bytes) -> None:
    with closing(connect(address)) as others:
        for body in bodies:
            others.execute(
                "INSERT INTO forwarded (target, source, body, tenant, trace_id)"
                " VALUES (0, 1, ?, '', '')",
                (body,),
            )


def record(offset: int, at: float) -> KafkaRecord:
    return KafkaRecord("requests", offset, at, REQUEST, {})


def test_an_open_session_goes_on_in_the_next_process(address: str) -> None:
    store, found = opened(address)
    assert not found.sessions
    invocation = Invocation("ab" * 16, "cd" * 8, "genai", conversation_id="a")
    turn = KeptTurn(invocation, 0, 1.0, {"tool_calls": 2.0})
    session = Session("", "a", session_id(turn), 1.0, 1.0)
    changes = Changes(sessions=SessionChanges((session,), ((session.id, turn),)))
    assert store.commit(Progress(1, 1.0, 0.0, changes=changes))
    store.close()
    store, found = opened(address)
    [stored] = found.sessions
    assert stored.session.id == session.id
    assert stored.turns == (turn,)
    store.close()


def test_a_forwarded_turn_that_cannot_be_read_does_not_hold_up_the_next(address: str) -> None:
    store, _ = opened(address)
    delivered = started(store)
    forward(address, b"of another version", encode(GOOD))
    store.horizon()
    store.poll()
    assert [one.batch.turn for one in delivered] == [GOOD]
    assert store.commit(Progress(delivered[-1].row, 0.0, 0.0))
    with closing(connect(address)) as others:
        assert others.execute("SELECT count(*) FROM forwarded").fetchone() == (0,)
    store.close()


def test_a_forwarded_turn_waits_until_the_time_of_its_partition_is_known(address: str) -> None:
    """Else it would seem to be as old as the last commit, and end its conversation."""
    store, _ = opened(address, Unread())
    delivered = started(store)
    forward(address, encode(GOOD))
    store.horizon()
    store.poll()
    assert delivered == []
    assert store.take(record(7, NOW - 60))
    store.poll()
    assert [(one.at, one.batch.turn) for one in delivered] == [(NOW - 60, None), (NOW - 60, GOOD)]
    store.close()


def test_the_time_of_a_partition_without_records_is_that_of_the_clock(address: str) -> None:
    store, _ = opened(address)
    delivered = started(store)
    forward(address, encode(GOOD))
    store.poll()
    assert delivered == []
    store.horizon()
    store.poll()
    assert [(one.at, one.batch.turn) for one in delivered] == [(NOW, GOOD)]
    store.close()


def test_a_commit_names_the_time_of_what_is_processed_next(address: str) -> None:
    """Others wait for what this partition forwards, until it says that it is further."""
    store, _ = opened(address)
    started(store)
    assert store.take(record(0, NOW - 300))
    assert store.take(record(1, NOW - 200))
    times = []
    for processed in (0, 1, 2):
        assert store.commit(Progress(processed, store.horizon(), 0.0))
        times += rows(address, "SELECT at FROM partitions WHERE partition = 0")
    assert times == [(NOW - 300,), (NOW - 200,), (NOW,)]
    store.close()


def test_a_forwarded_turn_that_waits_holds_back_the_time_of_its_receiver(address: str) -> None:
    store, _ = opened(address)
    [delivered] = [started(store)]
    assert store.take(record(0, NOW - 300))
    forward(address, encode(GOOD))
    store.poll()
    assert store.commit(Progress(1, store.horizon(), 0.0))
    assert rows(address, "SELECT at FROM partitions WHERE partition = 0") == [(NOW - 300,)]
    assert store.commit(Progress(delivered[-1].row, store.horizon(), 0.0))
    assert rows(address, "SELECT at FROM partitions WHERE partition = 0") == [(NOW,)]
    store.close()


def test_the_time_of_the_others_is_that_of_the_last_of_them(address: str) -> None:
    heard: list[float] = []
    store, _ = opened(address, on_reached=heard.append)
    started(store)
    store.poll()
    assert heard == [-math.inf]  # its own time is not known
    store.horizon()
    store.poll()
    assert heard == [-math.inf, math.inf]
    for number, at in ((1, 70), (2, 50)):
        with scorer(address, number) as other:
            assert other.commit(step(at))
    store.poll()
    assert heard[2:] == [50.0]
    store.close()


def test_the_time_of_the_others_is_told_when_their_turns_are_processed(address: str) -> None:
    heard: list[float] = []
    store, _ = opened(address, on_reached=heard.append)
    delivered = started(store)
    with scorer(address, 1) as other:
        assert other.commit(step(50))
    forward(address, encode(GOOD), encode(GOOD))
    store.horizon()
    store.poll()
    first, second = (one.row for one in delivered)
    assert store.commit(Progress(first, NOW, 0.0))
    forward(address, encode(GOOD))
    store.poll()  # the third does not put it off
    assert heard == [-math.inf]
    assert store.commit(Progress(second, NOW, 0.0))
    assert heard == [-math.inf, 50.0]
    store.close()


def test_the_time_of_the_others_is_unknown_while_more_turns_wait(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages, "MAX_ROWS", 2)
    heard: list[float] = []
    store, _ = opened(address, on_reached=heard.append)
    delivered = started(store)
    forward(address, *[encode(GOOD)] * 3)
    store.horizon()
    store.poll()
    assert store.commit(Progress(delivered[-1].row, NOW, 0.0))
    assert (len(delivered), heard) == (2, [-math.inf])
    store.poll()
    assert store.commit(Progress(delivered[-1].row, NOW, 0.0))
    assert (len(delivered), heard) == (3, [-math.inf, math.inf])
    store.close()


@pytest.mark.parametrize("heard", [True, False], ids=["heard before the commit", "by the commit"])
def test_what_was_gathered_about_a_purged_trace_is_not_committed(
    address: str, *, heard: bool
) -> None:
    unwanted, wanted = evaluation("a"), evaluation("b")
    later = evaluation("a", revision=1)
    outcomes = [later, *given(answer("a"), answer("b")), wanted]
    purged: list[Purge] = []
    dropped: list[int] = []
    store, _ = opened(address, on_purge=purged.append, on_feedback_dropped=dropped.append)
    assert store.commit(Progress(0, 0.0, WALL, [unwanted]))
    purge(address, Selection(trace_id=unwanted.key[1]), 0.0)
    if heard:
        store.poll()
    progress = Progress(0, 0.0, WALL, outcomes)
    assert store.commit(progress) == heard
    assert heard or store.commit(progress)
    assert [one.traces for one in purged] == [frozenset({unwanted.key[:2]})]
    found = [(wanted.key[1],)]
    assert rows(address, "SELECT trace_id FROM results") == found
    assert rows(address, "SELECT trace_id FROM feedback") == found
    assert rows(address, "SELECT trace_id FROM evidence") == found
    assert dropped == [1]
    store.close()


def test_the_next_owner_of_a_partition_does_not_keep_feedback_about_a_purged_trace(
    address: str,
) -> None:
    first, _ = opened(address)
    assert first.commit(Progress(0, 0.0, WALL, [evaluation("a")]))
    purge(address, Selection(trace_id=trace_id("a")), 0.0)
    dropped: list[int] = []
    later, _ = opened(address, on_feedback_dropped=dropped.append)
    assert later.commit(Progress(0, 0.0, WALL, given(answer("a"), answer("b"))))
    assert rows(address, "SELECT trace_id FROM feedback") == [(trace_id("b"),)]
    assert dropped == [1]
    first.close()
    later.close()


class Judges:
    """Keep which traces they are asked about."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def take(self, pending: PendingJudgment) -> None:
        self.asked.append(pending.key[1])

    def give_up(self, key: EvaluationKey) -> None:
        pass


def test_judges_are_not_asked_about_what_was_purged_before_it_was_committed(address: str) -> None:
    runs = request(run_of("purged"), run_of("kept"))
    judges = Judges()
    store, _ = opened(address, on_purge=lambda found: pipeline.discard(found.traces))
    pipeline = Pipeline(
        INSTALLED,
        Evaluator((JUDGED,)),
        ReferenceSet(),
        InternalTelemetry(),
        recall=store.recall,
        judging=lambda invocation, scenario: "later",
    )
    delivered = started(store)
    publisher = Publisher(pipeline, store, judges=judges)
    assert store.take(KafkaRecord("requests", 0, 100.0, runs, {}))
    [(row, at, batch)] = delivered
    publisher.gather(pipeline.feed(batch.spans, batch.logs, at, row))
    publisher.begin()
    publisher.publish(row, lambda: False)
    publisher.gather(pipeline.expire(at + 1000))
    purge(address, Selection(trace_id=trace_id("purged")), 0.0)
    publisher.publish(row, lambda: False)
    store.close()
    assert judges.asked == [trace_id("kept")]

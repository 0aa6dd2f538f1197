"""A partition as the store of a pipeline."""

from __future__ import annotations

from contextlib import closing

from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.pipeline_events import Changes, ForwardedTurn
from pathgauge.collector.core.sessions.session import KeptTurn, Session, session_id
from pathgauge.collector.core.sessions.stored_session import SessionChanges
from pathgauge.collector.receivers.kafka.records import KafkaRecord
from pathgauge.collector.service.cluster.partition_store import PartitionStore, Source
from pathgauge.collector.store import Delivery, Progress, Restored
from pathgauge.collector.store.forwarded_turns import encode
from pathgauge.collector.store.postgres.connection import connect
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.scorers.types import Invocation
from support.shared_database import NoRecords

GOOD = ForwardedTurn(("", "ab" * 16, "cd" * 8), void=True)


NOW = 1_800_000_000.0


class Unread(NoRecords):
    """A source whose end is not reached yet."""

    def at_end(self, now: float) -> bool:
        return False


def opened(address: str, source: Source | None = None) -> tuple[PartitionStore, Restored]:
    store = PartitionStore(
        PartitionDatabase(address, 0),
        source or NoRecords(),
        "one",
        on_lost=lambda: None,
        on_purge=lambda purge: None,
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
    batch = Batch(Origin("", "grpc", "traces", "protobuf"), b"", ())
    assert store.take(KafkaRecord("requests", 7, NOW - 60, batch, {}))
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

"""A partition as the store of a pipeline."""

from __future__ import annotations

from pathgauge.collector.core.pipeline_events import Changes, ForwardedTurn
from pathgauge.collector.core.sessions.session import KeptTurn, Session, session_id
from pathgauge.collector.core.sessions.stored_session import SessionChanges
from pathgauge.collector.service.cluster.partition_store import PartitionStore
from pathgauge.collector.store import Delivery, Progress, Restored
from pathgauge.collector.store.forwarded_turns import encode
from pathgauge.collector.store.postgres.connection import connect
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.scorers.types import Invocation
from support.shared_database import NoRecords

GOOD = ForwardedTurn(("", "ab" * 16, "cd" * 8), void=True)


def opened(address: str) -> tuple[PartitionStore, Restored]:
    store = PartitionStore(
        PartitionDatabase(address, 0),
        NoRecords(),
        "one",
        on_lost=lambda: None,
        on_purge=lambda purge: None,
    )
    return store, store.open()


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
    delivered: list[Delivery] = []
    store, _ = opened(address)

    def deliver(delivery: Delivery) -> bool:
        delivered.append(delivery)
        return True

    store.start(deliver, lambda: 0.0)
    others = connect(address)
    for body in (b"of another version", encode(GOOD)):
        others.execute(
            "INSERT INTO forwarded (target, source, body, tenant, trace_id)"
            " VALUES (0, 1, ?, '', '')",
            (body,),
        )

    store.poll()
    assert [one.batch.turn for one in delivered] == [GOOD]
    assert store.commit(Progress(delivered[-1].row, 0.0, 0.0))
    assert others.execute("SELECT count(*) FROM forwarded").fetchone() == (0,)
    others.close()
    store.close()

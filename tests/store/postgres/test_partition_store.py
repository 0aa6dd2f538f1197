"""A partition as the store of a pipeline."""

from __future__ import annotations

from pathgauge.collector.core.pipeline_events import ForwardedTurn
from pathgauge.collector.service.cluster.partition_store import PartitionStore
from pathgauge.collector.store import Delivery, Progress
from pathgauge.collector.store.forwarded_turns import encode
from pathgauge.collector.store.postgres.connection import connect
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from support.shared_database import NoRecords

GOOD = ForwardedTurn(("", "ab" * 16, "cd" * 8), void=True)


def test_a_forwarded_turn_that_cannot_be_read_does_not_hold_up_the_next(address: str) -> None:
    delivered: list[Delivery] = []
    store = PartitionStore(
        PartitionDatabase(address, 0),
        NoRecords(),
        "one",
        on_lost=lambda: None,
        on_purge=lambda purge: None,
    )

    def deliver(delivery: Delivery) -> bool:
        delivered.append(delivery)
        return True

    store.open()
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

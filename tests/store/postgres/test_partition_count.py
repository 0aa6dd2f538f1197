"""Another number of partitions is accepted only when nothing is open."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.pipeline_events import Changes, ForwardedTurn, StoredTrace
from pathgauge.collector.core.traces import TraceSnapshot
from pathgauge.collector.store import StoreError
from pathgauge.collector.store.postgres import schema
from pathgauge.collector.store.postgres.connection import connect
from pathgauge.collector.store.postgres.partition_count import Offsets, PartitionCount, settle
from support.evaluated import evaluation
from support.shared_database import head, rows, scorer, step

TOPICS = ("otlp_spans", "otlp_logs")
A = "a" * 32
TURN = replace(evaluation("turn").invocation, conversation_id="chat")
KEY = evaluation("turn").key
STORED = "SELECT partitions, topics FROM partition_count"


def start(address: str, partitions: int, *, now: float = 0.0, unread: int = 0) -> None:
    """The start of a scorer that keeps traces for late spans until `now`."""
    settle(address, PartitionCount(partitions, TOPICS), now, lambda before, offsets: unread)


def refusal(address: str, partitions: int, **options: float) -> str:
    with pytest.raises(StoreError) as caught:
        start(address, partitions, **options)  # type: ignore[arg-type]
    return str(caught.value)


def text(partitions: int, left: str) -> str:
    return (
        f"topics otlp_spans and otlp_logs: found {partitions} partitions, expected 4, with which"
        f" the stored state was made, because it has {left}: see 'Changing the number of"
        " partitions' in docs/scaling.md"
    )


def fill(address: str, changes: Changes, partition: int = 0) -> None:
    """Commit as a scorer of four partitions."""
    start(address, 4)
    with scorer(address, partition) as database:
        assert database.commit(step(1, changes=changes, heads=[head(1, A)]))


def trace(closed: float | None, forgotten: str | None = None) -> StoredTrace:
    snapshot = TraceSnapshot(("", A), (1,), 1.0, 1.0, closed, forgotten, completed=True)
    return StoredTrace(snapshot, {})


def test_the_first_start_notes_the_number(address: str) -> None:
    start(address, 4)
    assert rows(address, STORED) == [(4, list(TOPICS))]
    start(address, 4)
    start(address, 6)  # nothing is stored yet
    assert rows(address, STORED) == [(6, list(TOPICS))]


@pytest.mark.parametrize(
    ("changes", "left"),
    [
        (Changes(), "1 open trace"),
        (Changes(traces=(trace(closed=100.0),)), "1 open trace"),
        (
            Changes(
                released_rows=(1,),
                turns=(StoredTurn(TURN, 1.0),),
                judgments_begun=(PendingJudgment(KEY, 0, b"{}", None, "root_ended", True, False),),
                forwarded=(ForwardedTurn(KEY, TURN, target=1),),
            ),
            "1 turn, 1 awaited judgment, 1 forwarded turn",
        ),
    ],
)
@pytest.mark.parametrize("partitions", [2, 8])
def test_another_number_is_refused_while_anything_is_open(
    address: str, changes: Changes, left: str, partitions: int
) -> None:
    fill(address, changes)
    assert refusal(address, partitions, now=99.0) == text(partitions, left)
    start(address, 4)
    assert rows(address, STORED) == [(4, list(TOPICS))]


def test_requests_that_nobody_has_read_are_counted(address: str) -> None:
    fill(address, Changes(released_rows=(1,)), partition=3)
    asked: list[tuple[PartitionCount, Offsets]] = []

    def unread(before: PartitionCount, offsets: Offsets) -> int:
        asked.append((before, offsets))
        return 7

    with pytest.raises(StoreError) as caught:
        settle(address, PartitionCount(8, TOPICS), 0.0, unread)
    assert str(caught.value) == text(8, "7 unread records")
    assert asked == [(PartitionCount(4, list(TOPICS)), {3: {"otlp_spans": 102}})]


@pytest.mark.parametrize(
    "changes",
    [
        Changes(released_rows=(1,)),
        Changes(traces=(trace(closed=100.0),)),
        Changes(traces=(trace(closed=None, forgotten="late"),)),
    ],
)
def test_a_drained_state_takes_any_number(address: str, changes: Changes) -> None:
    fill(address, changes)
    start(address, 8, now=100.0)
    assert rows(address, STORED) == [(8, list(TOPICS))]


def test_with_fewer_partitions_those_that_are_no_more_are_forgotten(address: str) -> None:
    for partition in (1, 2):
        fill(address, Changes(released_rows=(1,)), partition)
    rows(address, "INSERT INTO publications (partition, body) VALUES (2, ''), (1, '')")
    assert refusal(address, 2) == text(2, "1 unread publication")
    rows(address, "DELETE FROM publications")
    start(address, 2)
    assert rows(address, "SELECT partition FROM partitions") == [(1,)]


def test_a_database_of_an_earlier_version_has_as_many_partitions_as_were_claimed(
    address: str,
) -> None:
    connection = connect(address)
    connection.raw.execute("CREATE TABLE pathgauge_schema (version integer PRIMARY KEY)")
    for number, statements in enumerate(schema.MIGRATIONS[:2], 1):
        connection.raw.execute(statements)
        connection.execute("INSERT INTO pathgauge_schema (version) VALUES (?)", (number,))
    connection.execute("INSERT INTO partitions (partition, generation, owner) VALUES (3, 1, '')")
    schema.migrate(connection)
    connection.close()
    assert rows(address, STORED) == [(4, [])]
    assert refusal(address, 8, unread=1) == text(8, "1 unread record")

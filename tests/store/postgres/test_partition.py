"""A scorer commits all or nothing, only while the partition is its own, and exactly once."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import permutations
from typing import Any

import psycopg
import pytest
from structlog.testing import capture_logs

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.pipeline_events import Changes, ForwardedTurn, StoredTrace
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.traces import TraceSnapshot
from pathgauge.collector.store import StoreError
from pathgauge.collector.store.forwarded_turns import decode
from pathgauge.collector.store.postgres import FencedError, messages, partition
from pathgauge.collector.store.postgres.claiming import Claimed
from pathgauge.collector.store.postgres.connection import PostgresConnection
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.collector.store.postgres.steps import Step
from support.evaluated import evaluation
from support.postgres import Server
from support.running import until
from support.shared_database import cut_connections, head, rows, scorer, step

A, B = "a" * 32, "b" * 32
WRITTEN = (
    "SELECT (SELECT count(*) FROM results), (SELECT count(*) FROM publications),"
    " (SELECT count(*) FROM requests), (SELECT count(*) FROM traces)"
)


def trace(name: str, *numbers: int, closed: float | None = None) -> StoredTrace:
    snapshot = TraceSnapshot(("", name), numbers, 0.0, 0.0, closed, completed=closed is not None)
    return StoredTrace(snapshot, {})


def test_a_partition_is_empty_at_first(address: str) -> None:
    database = PartitionDatabase(address, 3)
    claimed = database.claim("one")
    assert (claimed.generation, claimed.restored.row, claimed.offsets) == (1, 0, {})
    assert (claimed.restored.traces, claimed.heads, claimed.records) == ((), (), ())
    database.close()


def test_the_next_owner_continues_where_the_last_one_was(address: str) -> None:
    with scorer(address, 3) as first:
        changes = Changes(traces=(trace(A, 1, 2, closed=2.0),))
        assert first.commit(step(2, changes=changes, heads=[head(1, A), head(2, A, B)]))
        assert first.commit(step(3, changes=Changes(released_rows=(1,)), heads=[head(3, B)]))
    database = PartitionDatabase(address, 3)
    claimed = database.claim("two")
    assert (claimed.generation, claimed.restored.row, claimed.restored.at) == (2, 3, 3.0)
    assert claimed.offsets == {"otlp_spans": 104}
    assert [one.row for one in claimed.heads] == [2, 3]
    assert claimed.heads[0] == head(2, A, B)._replace(traces=[A, B])
    known = {one.snapshot.key[1]: one.snapshot for one in claimed.restored.traces}
    # A row of the first trace was released, so its records are not complete any more.
    assert known[A] == TraceSnapshot(("", A), (2,), 2.0, 2.0, 2.0, "late", completed=True)
    assert known[B] == TraceSnapshot(("", B), (2, 3), 2.0, 3.0)
    database.close()


def test_a_request_that_is_released_at_once_is_never_written(address: str) -> None:
    with scorer(address) as database:
        assert database.commit(step(1, changes=Changes(released_rows=(1,)), heads=[head(1, A)]))
    assert rows(address, "SELECT count(*) FROM requests") == [(0,)]


def test_an_owner_that_was_replaced_writes_nothing(address: str) -> None:
    full = step(
        1,
        [evaluation("a")],
        changes=Changes(traces=(trace(A, 1),)),
        heads=[head(1, A)],
        publication=b"published",
    )
    with scorer(address) as old, scorer(address) as new:
        with pytest.raises(FencedError):
            old.commit(full)
        assert rows(address, WRITTEN) == [(0, 0, 0, 0)]
        with pytest.raises(FencedError):
            old.commit(full)
        assert new.commit(full)
        assert rows(address, WRITTEN) == [(1, 1, 1, 1)]


def test_partitions_do_not_see_each_other(address: str) -> None:
    with scorer(address, 1) as one, scorer(address, 2) as two:
        assert one.commit(step(1, changes=Changes(traces=(trace(A, 1),)), heads=[head(1, A)]))
        assert two.commit(step(1, changes=Changes(traces=(trace(B, 1),)), heads=[head(1, B)]))
    for number, name in ((1, A), (2, B)):
        database = PartitionDatabase(address, number)
        restored = database.claim("later").restored
        assert [one.snapshot.key for one in restored.traces] == [("", name)]
        database.close()


def test_after_a_cut_connection_the_same_step_is_committed_once(address: str) -> None:
    with scorer(address) as database:
        assert cut_connections(address) == 1
        one = step(1, [evaluation("a")], publication=b"first")
        assert not database.commit(one)
        assert database.reason is not None
        assert [database.commit(one), database.reason] == [True, None]
    assert rows(address, WRITTEN) == [(1, 1, 0, 0)]


def test_an_outage_is_reported_once_with_its_reason_and_its_end(
    postgres: Server, address: str
) -> None:
    one = step(1, [evaluation("a")], publication=b"first")
    with capture_logs() as lines, scorer(address) as database:
        postgres.kill()
        for _ in range(3):
            assert not database.commit(one)
        assert (database.reason or "").startswith("PostgreSQL cannot be used: connection is bad: ")
        postgres.start()
        assert until(lambda: database.commit(one))
        assert database.reason is None
    assert [(line["event"], line["partition"]) for line in lines] == [
        ("PostgreSQL cannot be used; trying again", 0),
        ("PostgreSQL can be used again", 0),
    ]


@pytest.mark.parametrize("is_late", [False, True], ids=["before the commit", "after it"])
def test_a_commit_whose_answer_is_lost_is_neither_lost_nor_repeated(
    address: str, monkeypatch: pytest.MonkeyPatch, is_late: bool
) -> None:
    with scorer(address) as database:
        finish = PartitionDatabase._finish

        def cut(self: PartitionDatabase, connection: PostgresConnection, known: object) -> bool:
            if is_late:
                connection.raw.execute("COMMIT")
                connection.raw.execute("BEGIN")
            cut_connections(address)
            return finish(self, connection, known)  # type: ignore[arg-type]

        monkeypatch.setattr(PartitionDatabase, "_finish", cut)
        one = step(1, [evaluation("a")], publication=b"first")
        assert database.commit(one) is is_late
        monkeypatch.undo()
        if not is_late:
            assert database.commit(one)
        assert database.commit(step(2, [evaluation("b")], publication=b"second"))
    assert rows(address, "SELECT body FROM publications ORDER BY id") == [(b"first",), (b"second",)]
    assert rows(address, 'SELECT commits, "row" FROM partitions') == [(2, 2)]


def test_a_commit_of_unknown_outcome_gives_the_partition_up(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition, "SETTLE_S", 0.0)
    with scorer(address) as database:
        finish = PartitionDatabase._finish

        def cut(self: PartitionDatabase, connection: PostgresConnection, known: object) -> bool:
            cut_connections(address)
            return finish(self, connection, known)  # type: ignore[arg-type]

        monkeypatch.setattr(PartitionDatabase, "_finish", cut)
        with pytest.raises(FencedError, match="unknown"):
            database.commit(step(1, [evaluation("a")]))
        monkeypatch.undo()
        with pytest.raises(FencedError, match="not claimed"):
            database.commit(step(1, [evaluation("a")]))
        assert database.claim("again").restored.row == 0


@pytest.mark.slow
def test_a_killed_server_loses_no_commit(postgres: Server, address: str) -> None:
    with scorer(address) as database:
        assert database.commit(step(1, [evaluation("a")], publication=b"first"))
        postgres.restart()
        one = step(2, [evaluation("b")], publication=b"second")
        assert not database.commit(one)
        assert database.commit(one)
    assert rows(address, "SELECT body FROM publications ORDER BY id") == [(b"first",), (b"second",)]


def test_turns_are_forwarded_to_their_partition_or_to_all_others_exactly_once(
    address: str,
) -> None:
    keys = [("", A, "1" * 16), ("", A, "2" * 16)]
    with scorer(address, 0) as source, scorer(address, 1) as one, scorer(address, 2) as two:
        turns = ForwardedTurn(keys[0], target=1), ForwardedTurn(keys[1])
        assert source.commit(step(1, changes=Changes(forwarded=turns)))
        assert source.news().forwarded == []
        found = one.news().forwarded
        assert [decode(turn.body).key for turn in found] == keys
        assert [decode(turn.body).key for turn in two.news().forwarded] == keys[1:]
        assert one.news().forwarded == []
        assert one.commit(step(1, consumed=[found[0].id]))
    with scorer(address, 1) as one:  # what was not consumed comes again
        assert [decode(turn.body).key for turn in one.news().forwarded] == keys[1:]


def test_forwarded_turns_come_in_parts_that_fit_into_memory(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = tuple(ForwardedTurn(("", f"{n:032x}", "1" * 16), target=1) for n in range(5))
    with scorer(address, 0) as source, scorer(address, 1) as target:
        assert source.commit(step(1, changes=Changes(forwarded=turns)))
        monkeypatch.setattr(messages, "MAX_ROWS", 3)
        parts = [target.news().forwarded]
        monkeypatch.setattr(messages, "MAX_BYTES", 0)  # then one at a time
        parts += [target.news().forwarded for _ in range(3)]
    found = [[decode(turn.body).key for turn in part] for part in parts]
    keys = [turn.key for turn in turns]
    assert found == [keys[:3], keys[3:4], keys[4:], []]


def test_the_next_owner_waits_for_a_commit_that_has_begun(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with scorer(address) as old, ThreadPoolExecutor(1) as thread:
        finish = PartitionDatabase._finish
        claimed: list[Future[Claimed]] = []
        new = PartitionDatabase(address, 0)

        def claim_meanwhile(*arguments: Any) -> bool:
            claimed.append(thread.submit(new.claim, "new"))
            while not rows(address, "SELECT 1 FROM pg_locks WHERE NOT granted"):
                pass
            assert not claimed[0].done()
            return finish(*arguments)

        monkeypatch.setattr(PartitionDatabase, "_finish", claim_meanwhile)
        assert old.commit(step(1, [evaluation("a")]))
        assert claimed[0].result().restored.row == 1
        new.close()


def test_counts_belong_to_the_partition_and_records_to_all(address: str) -> None:
    def counted(count: float, *records: Row) -> Step:
        one = step(1)
        return Step(
            type(one.progress)(1, 1.0, 1.0, counts=[Row(["spent", "model"], [count])]),
            {},
            records=records,
        )

    name = ["agent_records", "", "support", "1"]
    with scorer(address, 0) as zero, scorer(address, 1) as one:
        assert zero.commit(counted(5.0, Row(name, [7.0, 1.0, 0.0])))
        assert one.commit(counted(6.0, Row(name, [6.0, 0.0, 1.0])))
        assert list(zero.records()) == [Row(name, [7.0, 1.0, 1.0])]
    database = PartitionDatabase(address, 1)
    claimed = database.claim("later")
    assert list(claimed.restored.counts) == [Row(["spent", "model"], [6.0])]
    assert list(claimed.records) == [Row(name, [7.0, 1.0, 1.0])]
    database.close()


def test_nothing_is_kept_of_a_transaction_that_fails(address: str) -> None:
    with scorer(address) as database:
        rows_of_nobody = step(1, [evaluation("a")], heads=[head(1, A), head(1, B)])
        assert not database.commit(rows_of_nobody)
        assert rows(address, WRITTEN) == [(0, 0, 0, 0)]
        assert database.commit(step(1, [evaluation("a")], heads=[head(1, A)]))


def test_a_database_that_cannot_be_reached_is_a_clear_error() -> None:
    database = PartitionDatabase("postgresql://user:s3cret@127.0.0.1:1/none", 0)
    with pytest.raises(StoreError, match="postgres") as caught:
        database.claim("one")
    assert "s3cret" not in str(caught.value)


def test_states_of_old_traces_are_dropped(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition, "KEPT_STATES", 2)
    names = [f"{number:032x}" for number in range(4)]
    states = tuple(trace(name, closed=1.0) for name in names)
    with scorer(address) as database:
        assert database.commit(step(1, changes=Changes(traces=states), heads=[head(5, A)]))
    assert rows(address, "SELECT trace_id FROM traces ORDER BY id") == [(names[2],), (names[3],)]


def test_many_processes_may_make_the_tables_at_once(
    address: str, at_once: Callable[..., None]
) -> None:
    at_once(lambda number: scorer(address, number).__enter__().close(), 6)
    assert rows(address, "SELECT count(*) FROM partitions") == [(6,)]


def test_a_later_schema_is_refused(address: str) -> None:
    with scorer(address):
        pass
    with psycopg.connect(address) as connection:
        connection.execute("INSERT INTO pathgauge_schema (version) VALUES (99)")
    with pytest.raises(StoreError, match="found schema version 99"), scorer(address):
        pass


@pytest.mark.parametrize("order", [*permutations((0, 1, 16))])
def test_the_newest_revision_of_several_scorers_is_kept(
    address: str, order: tuple[int, ...]
) -> None:
    with ExitStack() as stack:
        for partition_number, revision in enumerate(order):
            database = stack.enter_context(scorer(address, partition_number))
            events = [evaluation("one", revision=revision, agent=f"agent {revision}")]
            assert database.commit(step(1, events))
    found = rows(address, "SELECT revision, verdict, agent FROM results ORDER BY revision")
    assert found == [(0, "", "agent 0"), (16, "failed", "agent 16")]
    newest = "SELECT revision FROM results ORDER BY id DESC LIMIT 1"
    assert rows(address, newest) == [(16,)]


def turn(revision: int) -> Evaluation:
    one = evaluation("one", revision=revision)
    return replace(one, invocation=replace(one.invocation, conversation_id="chat"))


def test_the_newest_revision_is_kept_when_two_scorers_write_at_the_same_time(
    address: str, at_once: Callable[..., None]
) -> None:
    revisions = range(1, 21)
    with scorer(address, 0) as zero, scorer(address, 1) as one:

        def write(number: int) -> None:
            for revision in revisions[number::2]:
                assert (zero, one)[number].commit(step(revision, [turn(revision)]))

        at_once(write, 2)
    assert rows(address, "SELECT revision, verdict FROM results") == [(20, "failed")]

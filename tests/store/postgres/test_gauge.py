"""One process is the gauge. It reads each publication once and in order, whoever it is."""

from __future__ import annotations

import pytest

from pathgauge.collector.core.pipeline_events import Changes
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.store import Selection, StoreError
from pathgauge.collector.store.evidence.table import EvidencePolicy
from pathgauge.collector.store.postgres import LockLostError, sharing
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.collector.store.postgres.purge import purge
from pathgauge.collector.store.postgres.sharing import SharedCleaning
from pathgauge.collector.store.retention import Retention
from support.evaluated import WALL, evaluation
from support.shared_database import cut_connections, gauge, rows, scorer, step

NOW = 4_000_000_000.0


def publish(database: PartitionDatabase, row: int, *names: str) -> bytes:
    body = f"{row} {' '.join(names)}".encode()
    events = [evaluation(name) for name in names]
    assert database.commit(step(row, events, wall=NOW, publication=body))
    return body


def counted(number: float) -> list[Row]:
    return [Row(["spans"], [number])]


def ids(*names: str) -> list[str]:
    return [evaluation(name).invocation.trace_id for name in names]


def test_a_process_never_becomes_the_gauge_on_tables_of_a_later_version(address: str) -> None:
    with gauge(address) as first:
        assert first.try_acquire()
    rows(address, "INSERT INTO pathgauge_schema (version) VALUES (99)")
    with gauge(address) as reader:
        for _ in range(2):
            with pytest.raises(StoreError, match="a later version of pathgauge wrote it"):
                reader.try_acquire()


def test_publications_of_all_partitions_are_read_each_in_order(address: str) -> None:
    with scorer(address, 0) as zero, scorer(address, 1) as one, gauge(address) as reader:
        assert reader.try_acquire()
        bodies = [publish(zero, 1), publish(zero, 2)], [publish(one, 1)]
        found = reader.read().publications
        assert [(p.partition, p.body) for p in found] == [
            (0, bodies[0][0]),
            (0, bodies[0][1]),
            (1, bodies[1][0]),
        ]
        assert reader.read().publications == []
        third = publish(one, 2)
        assert [p.body for p in reader.read().publications] == [third]


def test_a_busy_partition_does_not_hold_up_the_others(address: str) -> None:
    with scorer(address, 0) as zero, scorer(address, 1) as one, gauge(address) as reader:
        assert reader.try_acquire()
        for row in range(1, 6):
            publish(zero, row)
        publish(one, 1)
        publish(one, 2)
        found = reader.read(max_publications=5, max_bytes=3 * len(b"1 ")).publications
        assert [(p.partition, p.body) for p in found] == [(0, b"1 "), (0, b"2 "), (1, b"1 ")]
        found = reader.read(max_publications=1).publications
        assert [(p.partition, p.body) for p in found] == [(0, b"3 "), (1, b"2 ")]
        found = reader.read(max_bytes=0).publications
        assert [p.body for p in found] == [b"4 "]  # a large one is read all the same


def test_the_next_gauge_continues_after_what_was_committed(address: str) -> None:
    with scorer(address) as database:
        for row in (1, 2, 3):
            publish(database, row, str(row))
    with gauge(address) as first:
        assert first.try_acquire()
        assert (list(first.restore().counts), first.restore().positions) == ([], {})
        found = first.read().publications
        assert len(found) == 3
        first.commit(counted(2.0), {0: found[1].id}, NOW)
    with gauge(address) as second:
        assert second.try_acquire()
        left = second.restore()
        assert (list(left.counts), left.positions) == (counted(2.0), {0: found[1].id})
        assert [one.key[1] for one in second.recent(lambda *names: True)] == ids("2", "1")
        assert [p.body for p in second.read().publications] == [b"3 3"]
    assert rows(address, "SELECT body FROM publications") == [(b"3 3",)]


def test_only_one_process_is_the_gauge(address: str) -> None:
    with gauge(address) as first, gauge(address) as second:
        assert first.try_acquire()
        assert first.try_acquire()
        assert not second.try_acquire()
        with pytest.raises(LockLostError):
            second.read()
        with pytest.raises(LockLostError):
            second.commit([], {}, NOW)
        first.close()
        assert second.try_acquire()
        assert not first.try_acquire()


def test_a_gauge_whose_connection_was_cut_commits_nothing_more(address: str) -> None:
    with scorer(address) as database, gauge(address) as first, gauge(address) as second:
        assert first.try_acquire()
        publish(database, 1)
        [found] = first.read().publications
        cut_connections(address)
        assert second.try_acquire()
        with pytest.raises(LockLostError):
            first.commit(counted(1.0), {0: found.id}, NOW)
        with pytest.raises(LockLostError):
            first.commit(counted(1.0), {0: found.id}, NOW)
        assert not first.try_acquire()
        assert list(second.restore().counts) == []
        assert [one.body for one in second.read().publications] == [found.body]


def test_a_gauge_without_a_database_says_so() -> None:
    with (
        gauge("postgresql://user:s3cret@127.0.0.1:1/none") as alone,
        pytest.raises(StoreError, match="postgres") as caught,
    ):
        alone.try_acquire()
    assert "s3cret" not in str(caught.value)


def test_a_purge_is_told_after_the_publications_before_it(address: str) -> None:
    with scorer(address) as database, gauge(address) as reader:
        assert reader.try_acquire()
        publish(database, 1, "a")
        publish(database, 2, "b")
        key = evaluation("a").key
        purged = purge(address, Selection(trace_id=key[1]), NOW - 3600)
        assert (purged.results, purged.evaluations) == (1, frozenset({key}))
        assert "2 publications" in (purged.unfinished or "")
        first = reader.read(max_publications=1)
        assert ([p.body for p in first.publications], first.purges) == ([b"1 a"], [])
        second = reader.read()
        assert [p.body for p in second.publications] == [b"2 b"]
        assert [one.evaluations for one in second.purges] == [{key}]
        assert reader.read().purges == []


def test_the_next_gauge_is_told_of_a_purge_whose_publications_nobody_has_read(address: str) -> None:
    names = "read", "a", "b"
    with scorer(address) as database, gauge(address) as first:
        publish(database, 1, "read")
        assert first.try_acquire()
        first.restore()
        found = first.read().publications
        first.commit([], {0: found[0].id}, NOW)
        for row, name in enumerate(names[1:], 2):
            publish(database, row, name)
        for name in names:
            purge(address, Selection(trace_id=evaluation(name).key[1]), NOW - 3600)
        first.read()  # and does not commit
        first.close()
        with gauge(address) as second:
            assert second.try_acquire()
            second.restore()
            assert list(second.recent(lambda *names: True)) == []
            one = second.read(max_publications=1)
            assert ([p.body for p in one.publications], one.purges) == ([b"2 a"], [])
            two = second.read()
            assert [p.body for p in two.publications] == [b"3 b"]
            told = frozenset().union(*(one.evaluations for one in two.purges))
            assert {evaluation(name).key for name in names[1:]} <= told
            assert second.read().purges == []


def test_old_results_and_evidence_are_removed(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "SteadyWall", lambda: lambda wall: wall)
    monkeypatch.setattr(sharing, "CLEAN_S", 0.0)
    cleaning = SharedCleaning(Retention(results_s=100.0), EvidencePolicy(retention_s=50.0))
    with scorer(address) as database, gauge(address, cleaning) as reader:
        for row, name in enumerate("ab"):
            assert database.commit(step(row, [evaluation(name)], wall=WALL + 60 * row))
        assert reader.try_acquire()
        kept = "SELECT (SELECT count(*) FROM results), (SELECT count(*) FROM evidence)"
        for wall, expected in [(0, (2, 2)), (51, (2, 1)), (101, (1, 1)), (161, (0, 0))]:
            reader.commit([], {}, WALL + wall)
            assert rows(address, kept) == [expected]
        assert reader.usage().results_removed == {"age": 2, "space": 0}


def test_when_there_is_too_much_the_oldest_evidence_goes_first_and_then_the_oldest_results(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "CLEAN_S", 0.0)
    cleaning = SharedCleaning(Retention(max_bytes=20_000))
    with scorer(address) as database, gauge(address, cleaning) as reader:
        for row in range(60):
            assert database.commit(step(row, [evaluation(str(row))], wall=NOW + row))
        rows_of_all = rows(address, "SELECT id FROM results ORDER BY id")
        assert reader.try_acquire()
        for _ in range(30):
            reader.commit([], {}, NOW)
            rows(address, "VACUUM ANALYZE results")  # so that its estimate is exact
        assert rows(address, "SELECT count(*) FROM evidence") == [(0,)]
        left = rows(address, "SELECT id FROM results ORDER BY id")
        assert 0 < len(left) < 60
        assert left == rows_of_all[-len(left) :]
        assert reader.usage().used < 20_000
        assert reader.usage().results_removed == {"age": 0, "space": 60 - len(left)}


def test_a_result_without_a_publication_is_recent(address: str) -> None:
    with scorer(address) as database, gauge(address) as reader:
        assert database.commit(step(1, [evaluation("a")], wall=NOW, changes=Changes()))
        assert reader.try_acquire()
        assert [one.key for one in reader.recent(lambda *names: True)] == [evaluation("a").key]

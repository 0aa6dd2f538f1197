"""Whatever connection breaks when, every commit of a scorer takes effect once, and in order."""

from __future__ import annotations

import time
from collections.abc import Callable
from random import Random
from threading import Event

import pytest
from structlog.testing import capture_logs

from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.store import StoreError
from pathgauge.collector.store.postgres import FencedError, LockLostError
from pathgauge.collector.store.postgres.gauge import GaugeDatabase
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.collector.store.postgres.sharing import SharedCleaning
from support.evaluated import evaluation
from support.shared_database import cut_connections, head, rows, scorer, step

STEPS = 60
PARTITIONS = 2
CUTS_S = 0.05


def score(address: str, partition: int, on_commit: Callable[[], None]) -> None:
    """Commit all steps, from where the database says the last one was."""
    database = PartitionDatabase(address, partition)
    row = None
    while row is None or row < STEPS:
        try:
            if row is None:
                row = database.claim("process").restored.row
                continue
            name = f"{partition} {row + 1}"
            one = step(
                row + 1,
                [evaluation(name)],
                heads=[head(row + 1, "a" * 32)],
                publication=name.encode(),
            )
            if database.commit(one):
                row += 1
                on_commit()
            else:  # a busy loop would keep the other threads from running between two cuts
                time.sleep(0.001)
        except FencedError:
            row = None
        except StoreError:  # the connection was cut while it claimed the partition
            time.sleep(0.01)
    database.close()


def publish(address: str, done: Event, on_commit: Callable[[], None]) -> None:
    """Be the gauge, whenever no other one is: count publications, and check their order."""
    database = GaugeDatabase(address, SharedCleaning())
    while not done.is_set():
        try:
            if not database.try_acquire():
                time.sleep(0.01)
                continue
            counts = {key[0]: int(state[0]) for key, state in database.restore().counts if state}
            while not done.is_set():
                before = sum(counts.values())
                count(database, counts)
                if sum(counts.values()) > before:  # a commit of nothing is no progress
                    on_commit()
                if sum(counts.values()) == STEPS * PARTITIONS:
                    done.set()
        except (LockLostError, StoreError):
            time.sleep(0.01)
    database.close()


def count(database: GaugeDatabase, counts: dict[str, int]) -> None:
    positions = {}
    for one in database.read(max_publications=3).publications:
        partition, number = one.body.decode().split()
        assert int(number) == counts.get(partition, 0) + 1
        counts[partition] = int(number)
        positions[one.partition] = one.id
    state = [Row([partition], [number]) for partition, number in counts.items()]
    database.commit(state, positions, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_cut_connections_neither_lose_nor_repeat_anything(
    address: str, at_once: Callable[..., None], seed: int
) -> None:
    random, done, commits_since_cut = Random(seed), Event(), Event()
    with scorer(address, 0):
        pass

    def cut() -> None:
        pause = CUTS_S
        while not done.wait(random.uniform(0, pause)):
            # A busy machine may need longer than that for a commit.
            pause = CUTS_S if commits_since_cut.is_set() else 2 * pause
            commits_since_cut.clear()
            cut_connections(address, random.random())

    def work(number: int) -> None:
        try:
            if number == 0:
                cut()
            elif number <= PARTITIONS:
                score(address, number, commits_since_cut.set)
            else:
                publish(address, done, commits_since_cut.set)
        except BaseException:
            done.set()
            raise

    with capture_logs():
        at_once(work, 1 + PARTITIONS + 2)
    names = [f"{partition} {row}" for partition in (1, 2) for row in range(1, STEPS + 1)]
    found = rows(address, "SELECT trace_id FROM results")
    assert sorted(found) == sorted((evaluation(name).invocation.trace_id,) for name in names)
    assert rows(address, "SELECT count(*) FROM publications") == [(0,)]
    assert rows(address, "SELECT count(*) FROM requests") == [(STEPS * PARTITIONS,)]
    commits = 'SELECT commits, "row" FROM partitions WHERE partition > 0'
    assert rows(address, commits) == [(STEPS, STEPS)] * PARTITIONS

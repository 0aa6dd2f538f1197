"""What a purge costs in a small store and in one of four times its size, and how long senders wait
meanwhile. `make bench` stores a million results in the larger one, or `BENCH_RESULTS`.
"""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.store import Selection
from pathgauge.collector.store.evidence.table import EvidencePolicy
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import span
from support.evaluated import commit, evaluation, opened

pytestmark = pytest.mark.slow

RESULTS = int(os.environ.get("BENCH_RESULTS", "40000"))
COMMIT = 2_000
SCENARIOS = 20
ROUNDS = 5
MAX_RATIO = 3.0
"""Of the CPU time for a trace. If the whole store were read, it would be four."""
MAX_WAIT_SHARE = 0.5
"""The longest wait of a sender, as a share of the purge of a scenario."""


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SqliteStore, SqliteStore]]:
    folder = tmp_path_factory.mktemp("stores")
    with (
        opened(folder / "small", EvidencePolicy(), 20 << 30) as small,
        opened(folder / "large", EvidencePolicy(), 20 << 30) as large,
    ):
        fill(small, RESULTS // 4)
        fill(large, RESULTS)
        yield small, large


def trace_of(number: int) -> str:
    return f"{random.Random(number).getrandbits(128):032x}"


def fill(store: SqliteStore, results: int) -> None:
    made = [evaluation("", scenario=f"scenario-{number}") for number in range(SCENARIOS)]
    for start in range(0, results, COMMIT):
        runs = []
        for number in range(start, min(start + COMMIT, results)):
            one = made[number % SCENARIOS]
            run = replace(one.invocation, trace_id=trace_of(number), span_id=f"{number:016x}")
            runs.append(replace(one, invocation=run))
        commit(store, runs, time.time())


def cpu_of_a_trace(store: SqliteStore, number: int) -> float:
    began = time.process_time()
    assert store.purge(Selection(trace_id=trace_of(number))).results == 1
    return time.process_time() - began


def test_a_trace_costs_the_same_in_a_store_of_four_times_the_size(
    stores: tuple[SqliteStore, SqliteStore],
) -> None:
    measured: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS):
        for store, times in zip(stores, measured, strict=True):
            times.append(cpu_of_a_trace(store, 100 * number + 50))
    small, large = map(statistics.median, measured)
    print(f"\na trace of {RESULTS:,} results: {large * 1000:.1f} ms of CPU, {large / small:.1f} x")
    assert large <= MAX_RATIO * small


async def test_senders_wait_for_a_step_of_a_purge_and_not_for_its_end(
    stores: tuple[SqliteStore, SqliteStore],
) -> None:
    _, store = stores
    one = span("waiting", "waiting", trace="waiting")
    batch = Batch(Origin("", "grpc", "traces", "protobuf"), bytes(2_000), (one,))
    began, waits = time.monotonic(), []
    purging = asyncio.create_task(asyncio.to_thread(store.purge, Selection(scenario="scenario-3")))
    while not purging.done():
        sent = time.monotonic()
        assert await store.append(batch)
        waits.append(time.monotonic() - sent)
        await asyncio.sleep(0.005)
    took, purged = time.monotonic() - began, await purging
    print(f"\n{purged.results:,} results in {took:.1f} s; longest wait {max(waits):.2f} s")
    assert purged.unfinished is None
    assert max(waits) <= MAX_WAIT_SHARE * took

"""The disk is full or fails: nothing is acknowledged that is not stored, and the collector
continues when there is space again.
"""

from __future__ import annotations

import json
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from pathgauge.collector.store import StoreError
from pathgauge.collector.store.resharding import reshard
from pathgauge.collector.store.sqlite.store import SqliteStore
from support.running import PATIENCE_S, Collector, until
from support.turns import otlp, script, trace_id, turn

from .disks import ext4, make_read_only, require_mounts, tmpfs
from .restarted import RestartedCollector
from .sender import Sender
from .sizes import times
from .traffic import Traffic
from .verdict import decreases, judge

pytestmark = pytest.mark.slow

DISK_BYTES = 32 << 20
RECOVERS_S = 5.0


@contextmanager
def full(collector: RestartedCollector, random: Random) -> Iterator[None]:
    """Fill the disk except for a few bytes, and again whenever space is freed."""
    filler, stopping = collector.store.parent / "filler", threading.Event()
    step = random.choice((1 << 20, 65_536, 4096))

    def fill() -> None:
        with filler.open("wb", buffering=0) as file:
            while not stopping.wait(0.02):
                with suppress(OSError):
                    while file.write(bytes(step)) == step:
                        pass

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()
        filler.unlink()


@contextmanager
def unwritable(collector: RestartedCollector, _: Random) -> Iterator[None]:
    """Every write to a file fails, but not with ENOSPC."""
    hard = resource.prlimit(collector.process.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(collector.process.pid, resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.prlimit(collector.process.pid, resource.RLIMIT_FSIZE, (hard, hard))


Trouble = Callable[[RestartedCollector, Random], AbstractContextManager[None]]


def troubled(
    folder: Path,
    seed: int,
    trouble: Trouble,
    number: int,
    *mistakes: str,
    patience: float = PATIENCE_S,
) -> list[str]:
    """Every broken guarantee while the disk fails so many times."""
    require_mounts()
    random = Random(seed)
    breaches: list[str] = []
    with tmpfs(folder / "disk", DISK_BYTES) as disk:
        collector = RestartedCollector(folder, store=disk / "store")
        collector.start(*mistakes)
        sender = Sender(Traffic(seed), collector.ports["grpc"], collector.ports["http"])
        sender.start()
        try:
            for one in range(number):
                time.sleep(random.uniform(0.2, 0.6))
                before = collector.counts()
                breaches += [
                    f"{trouble.__name__} {one}: {breach}"
                    for breach in _one(collector, sender, trouble(collector, random), patience)
                ]
                breaches += decreases(before, collector.counts())
            sender.finish()
            breaches += judge(collector, sender.record, patience)
        finally:
            sender.break_off()
            collector.stop()
    if None in sender.record.refusals:
        breaches.append(f"{sender.record.refusals.count(None)} refusals do not say when to retry")
    return breaches


def _one(
    collector: RestartedCollector,
    sender: Sender,
    trouble: AbstractContextManager[None],
    patience: float,
) -> Iterator[str]:
    with trouble:
        if not until(lambda: collector.get("/readyz")[0] == 503, patience):
            yield f"/readyz says {collector.get('/readyz')}"
        acked = sender.acknowledged()
        refused = len(sender.record.refusals)
        if not until(lambda: len(sender.record.refusals) > refused + 8, patience):
            yield f"nothing is refused, {sender.acknowledged() - acked} requests were acknowledged"
        if collector.get("/metrics")[0] != 200 or collector.process.poll() is not None:
            yield "the process does not answer"
    acked, began = sender.acknowledged(), time.monotonic()
    until(lambda: sender.acknowledged() > acked, patience)
    if time.monotonic() > began + RECOVERS_S:
        yield (
            f"nothing was acknowledged for {time.monotonic() - began:.1f} s after there was room"
            " again"
        )
    if not until(lambda: collector.get("/readyz")[0] == 200, patience):
        yield f"/readyz says {collector.get('/readyz')}"


def test_a_full_disk_refuses_and_recovers(tmp_path: Path, seed: int) -> None:
    assert troubled(tmp_path, seed, full, times(1, 50)) == []


def test_a_disk_that_cannot_be_written_refuses_and_recovers(tmp_path: Path, seed: int) -> None:
    assert troubled(tmp_path, seed, unwritable, times(1, 5)) == []


def test_a_disk_that_becomes_read_only_loses_nothing_and_the_stop_is_orderly(
    tmp_path: Path,
) -> None:
    require_mounts()
    disk, image = tmp_path / "disk", tmp_path / "image"
    acknowledged = set()

    def send(collector: Collector) -> int:
        agent = list(turn(script("refund", "lookup")))
        status, _ = collector.post("/v1/traces", otlp(agent))
        if status == 200:
            acknowledged.add(trace_id(agent))
        return status

    settings: dict[str, Any] = {"criteria": {"failure": 0.5}, "store": {"path": "disk/data"}}
    with ext4(disk, image):
        with Collector(tmp_path, **settings) as collector:
            assert [send(collector) for _ in range(3)] == [200] * 3
            make_read_only(disk)
            assert [send(collector) for _ in range(3)] == [429] * 3
            assert until(lambda: collector.get("/readyz")[0] == 503)
            assert "its disk fails, and the log says how" in collector.get("/readyz")[1]
            assert collector.get("/healthz")[0] == 200
            assert collector.value("pathgauge_store_state", state="failed") == 1
            reopened = "the store could not be reopened"
            assert until(lambda: send(collector) == 429 and collector.events(reopened))
        assert collector.process.returncode == 0
        assert [
            (line["event"], line["error"]) for line in collector.log() if line["level"] == "error"
        ] == [
            ("the store cannot be written to; senders are told to retry", "disk I/O error"),
            (reopened, "attempt to write a readonly database"),
        ]
        assert collector.log()[-1]["event"] == "stopped"
    with ext4(disk, image), Collector(tmp_path, **settings) as collector:

        def found() -> set[str]:
            results = json.loads(collector.get("/api/v1/results")[1])["results"]
            return {one["trace_id"] for one in results}

        assert until(lambda: found() == acknowledged), found() ^ acknowledged


def test_a_start_on_a_full_disk_uses_the_reserve_and_without_it_says_that_the_disk_is_full(
    tmp_path: Path,
) -> None:
    require_mounts()
    with tmpfs(tmp_path / "disk", DISK_BYTES) as disk:
        folder = disk / "data"
        opened_and_closed(folder)
        assert (folder / "reserve").exists()
        fill(disk / "filler")
        opened_and_closed(folder)
        assert not (folder / "reserve").exists()
        fill(disk / "another filler")
        with pytest.raises(StoreError) as caught:
            opened_and_closed(folder)
    assert str(caught.value) == (
        f"{folder}/pathgauge.db: cannot be opened: disk I/O error; found 0 bytes free"
    )


def opened_and_closed(folder: Path) -> None:
    """What a start and a stop do to the store."""
    reshard(folder, 0)
    store = SqliteStore(folder)
    store.open()
    store.start(lambda delivery: False, time.monotonic)
    store.close()


def fill(file: Path) -> None:
    """Use up the disk."""
    with suppress(OSError), file.open("wb", buffering=0) as filler:
        while filler.write(bytes(4096)):
            pass


@pytest.mark.long
@pytest.mark.parametrize("trouble", [full, unwritable])
def test_a_disk_in_trouble_brings_to_light_that_what_failed_is_acknowledged(
    tmp_path: Path, seed: int, trouble: Trouble
) -> None:
    assert troubled(tmp_path, seed, trouble, 1, "acknowledge_on_a_full_disk", patience=2.0) != []

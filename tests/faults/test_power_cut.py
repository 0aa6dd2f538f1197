"""The power fails: only data on the disk survives, and all acknowledged spans are there."""

from __future__ import annotations

import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from support.running import until

from .core import Core
from .disks import ext4, require_mounts
from .restarted import RestartedCollector
from .sender import Sender
from .sizes import times
from .traffic import Request, Traffic
from .truth import seen, truth

pytestmark = pytest.mark.slow

QUICK_S = 0.02
REQUESTS = 5
"""That are acknowledged between two cuts, at least."""


def cut(collector: RestartedCollector, sender: Sender, image: Path, copy: Path) -> list[Request]:
    """Copy the disk at one moment; returns the spans that were acknowledged by then."""
    collector.process.send_signal(signal.SIGSTOP)
    try:
        until(lambda: "\nState:\tT" in Path(f"/proc/{collector.process.pid}/status").read_text())
        acked = sender.acked()
        shutil.copyfile(image, copy)
    finally:
        collector.process.send_signal(signal.SIGCONT)
    return acked


def breaches_of(
    collector: RestartedCollector, traffic: Traffic, acked: list[Request], copy: Path, folder: Path
) -> Iterator[str]:
    """The acknowledged spans that a collector on the copy does not know."""
    whole = {trace for trace, missing in traffic.missing(acked).items() if not missing}
    right = truth(
        (span for request in acked for span in request.spans() if span.trace_id in whole),
        collector.setup,
    )
    with ext4(folder, copy):
        core = Core(folder / "store", collector.setup, QUICK_S)
        core.start()
        until(core.reads_nothing)
        core.stop()
        found = seen(folder / "store")
    lost = {
        key: (said, found.said.get(key))
        for key, said in right.said.items()
        if found.said.get(key) != said
    }
    if lost:
        yield (
            f"{len(lost)} of {len(right.said)} results are missing or wrong:"
            f" {dict(list(lost.items())[:2])}"
        )
    spans = len({(span.trace_id, span.span_id) for request in acked for span in request.spans()})
    if core.telemetry.spans_assembled.total() < spans:
        yield f"{spans} spans were acknowledged, {core.telemetry.spans_assembled.total()} are there"
    if found.damaged or found.quarantined:
        yield f"{found.damaged} damaged results, {found.quarantined} rows in quarantine"


def cuts(folder: Path, seed: int, number: int, *mistakes: str) -> list[str]:
    """Every broken guarantee in so many power cuts under load."""
    require_mounts()
    random, traffic = Random(seed), Traffic(seed)
    image, copy = folder / "disk", folder / "copy"
    breaches: list[str] = []
    with ext4(folder / "mounted", image):
        collector = RestartedCollector(folder, store=folder / "mounted" / "store")
        collector.start(*mistakes)
        sender = Sender(traffic, collector.ports["grpc"], collector.ports["http"])
        sender.start()
        try:
            for one in range(number):
                enough = sender.acknowledged() + REQUESTS
                until(lambda: sender.acknowledged() >= enough)  # noqa: B023
                time.sleep(random.uniform(0, 0.5))
                acked = cut(collector, sender, image, copy)
                with sender.at_rest():
                    breaches += [
                        f"cut {one}: {breach}"
                        for breach in breaches_of(
                            collector, traffic, acked, copy, folder / "recovered"
                        )
                    ]
        finally:
            sender.break_off()
            collector.stop()
    breaches += sender.record.wrong
    return breaches


@pytest.mark.parametrize("session", range(times(1, 10)))
def test_a_power_cut_loses_nothing_that_was_acknowledged(
    tmp_path: Path, seed: int, session: int
) -> None:
    assert cuts(tmp_path, seed + session, times(3, 20)) == []


def test_a_power_cut_brings_to_light_that_commits_are_not_synced(tmp_path: Path, seed: int) -> None:
    assert cuts(tmp_path, seed, 2, "do_not_sync") != []

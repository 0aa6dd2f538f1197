"""SIGKILL at any moment: no acknowledged span is lost, nothing is counted twice, no count
decreases.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from support.running import PATIENCE_S, until

from .restarted import RestartedCollector
from .sender import Sender
from .sizes import times
from .traffic import Traffic
from .verdict import decreases, judge

pytestmark = pytest.mark.slow

LOAD_S = 0.8
"""The longest time of load before a kill."""
REQUESTS = 5
"""That are acknowledged between two kills, at least."""
RECOVERY_S = 0.25
DRAIN_S = 0.6
"""About as long as an orderly stop takes."""


def under_load(collector: RestartedCollector, random: Random) -> None:
    """While requests arrive and traces are scored."""
    time.sleep(random.uniform(0, LOAD_S))
    collector.kill()


def in_recovery(collector: RestartedCollector, random: Random) -> None:
    """While the store is opened after an earlier kill, and its journal is read."""
    time.sleep(random.uniform(0, LOAD_S))
    collector.kill()
    collector.launch()
    until(collector.has_opened_the_store)
    time.sleep(random.uniform(0, RECOVERY_S))
    collector.kill()


def in_drain(collector: RestartedCollector, random: Random) -> None:
    """During an orderly stop."""
    time.sleep(random.uniform(0, LOAD_S))
    collector.process.terminate()
    time.sleep(random.uniform(0, DRAIN_S))
    collector.kill()


def at_a_checkpoint(collector: RestartedCollector, random: Random) -> None:
    """During a checkpoint."""
    database = collector.store / "pathgauge.db"
    before, deadline = database.stat().st_mtime_ns, time.monotonic() + 3 * LOAD_S
    while database.stat().st_mtime_ns == before and time.monotonic() < deadline:
        time.sleep(0.0002)
    time.sleep(random.uniform(0, 0.003))
    collector.kill()


Kill = Callable[[RestartedCollector, Random], None]
KILLS: list[tuple[Kill, int, int]] = [
    (under_load, 1, 14),
    (in_recovery, 1, 2),
    (in_drain, 1, 2),
    (at_a_checkpoint, 1, 2),
]
"""With the number of kills in the short form, and in each session of the long form."""


def killed(
    folder: Path, seed: int, kills: list[Kill], *patches: str, patience: float = PATIENCE_S
) -> list[str]:
    """Every broken guarantee of a collector that is killed in these ways, one after the other."""
    folder.mkdir(exist_ok=True)
    random = Random(seed)
    collector = RestartedCollector(folder)
    collector.start(*patches)
    sender = Sender(Traffic(seed), collector.ports["grpc"], collector.ports["http"])
    sender.start()
    breaches: list[str] = []
    try:
        for number, kill in enumerate(kills):
            enough = sender.acknowledged() + REQUESTS
            until(lambda: sender.acknowledged() >= enough)  # noqa: B023
            before = collector.counts()
            kill(collector, random)
            collector.start(*patches)
            breaches += [
                f"after kill {number} {kill.__name__}: {breach}"
                for breach in decreases(before, collector.counts())
            ]
        sender.finish()
        return breaches + judge(collector, sender.record, patience)
    finally:
        sender.break_off()
        collector.stop()


@pytest.mark.parametrize("session", range(times(1, 10)))
def test_what_was_acknowledged_is_scored_once_whenever_the_process_dies(
    tmp_path: Path, seed: int, session: int
) -> None:
    kills = [kill for kill, short, long in KILLS for _ in range(times(short, long))]
    Random(seed + session).shuffle(kills)
    assert killed(tmp_path, seed + session, kills, "checkpoint_often") == []


SESSIONS_UNTIL_FOUND = 4
"""A kill shows a mistake only if it comes between two steps, so one session may miss it."""
MISTAKES = [
    "forget_what_was_said",
    "do_not_store_counts",
    "store_counts_late",
    "release_rows_early",
    "read_everything_again",
]


def test_a_kill_brings_to_light_that_requests_are_acknowledged_too_early(
    tmp_path: Path, seed: int
) -> None:
    assert any(
        killed(
            tmp_path / str(session),
            seed + session,
            [under_load] * 2,
            "acknowledge_before_the_commit",
            patience=2.0,
        )
        for session in range(SESSIONS_UNTIL_FOUND)
    )


@pytest.mark.long
@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_kill_brings_to_light(tmp_path: Path, seed: int, mistake: str) -> None:
    assert killed(tmp_path, seed, [under_load] * 4, mistake, patience=3.0) != []

"""The wall clock jumps by hours and by years: no trace is read early or stays unread, and windows
continue.
"""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

import pytest

from support.running import PATIENCE_S, until

from .restarted import RestartedCollector
from .sender import Sender
from .sizes import times
from .traffic import Traffic
from .verdict import judge

pytestmark = pytest.mark.slow

HOUR, DAY = 3600.0, 86_400.0
JUMPS = (HOUR, -HOUR, 400 * DAY, -400 * DAY)
RETENTION = "1000d"
"""Results are kept for this time, measured with the wall clock."""
CLOCK = "clock"
"""A file beside the configuration with the seconds to add to the wall clock."""


def jumped(
    folder: Path, seed: int, jumps: list[float], *mistakes: str, patience: float = PATIENCE_S
) -> list[str]:
    """Every broken guarantee when the wall clock jumps so often, with a restart after every second
    jump.
    """
    random = Random(seed)
    (folder / CLOCK).write_text("0")
    collector = RestartedCollector(folder, retention=RETENTION)
    collector.start("take_the_clock_from_a_file", *mistakes)
    sender = Sender(Traffic(seed), collector.ports["grpc"], collector.ports["http"])
    sender.start()
    breaches = []
    try:
        for number, jump in enumerate(jumps):
            time.sleep(random.uniform(0.2, 0.5))
            (folder / CLOCK).write_text(f"{jump}")
            if number % 2:
                collector.kill()
                collector.start("take_the_clock_from_a_file", *mistakes)
        sender.finish()
        scored = until(
            lambda: collector.value("pathgauge_score_window_samples", metric="failure"), patience
        )
        if not scored:
            breaches.append("the windows are empty")
        reasons = collector.series("pathgauge_traces_completed_total", "reason")
        early = {
            reason: count
            for reason, count in reasons.items()
            if count and reason != ("root_ended",)
        }
        if early:
            breaches.append(f"traces were read because time seemed to have passed: {early}")
        breaches += judge(collector, sender.record, patience, retired=True)
    finally:
        sender.break_off()
        collector.stop()
    return breaches


def test_the_wall_clock_decides_nothing(tmp_path: Path, seed: int) -> None:
    assert jumped(tmp_path, seed, list(JUMPS) * times(1, 3)) == []


@pytest.mark.long
def test_a_jump_brings_to_light_that_ages_are_measured_by_the_wall_clock(
    tmp_path: Path, seed: int
) -> None:
    assert (
        jumped(tmp_path, seed, [HOUR, 2 * HOUR], "measure_ages_by_the_wall_clock", patience=3.0)
        != []
    )

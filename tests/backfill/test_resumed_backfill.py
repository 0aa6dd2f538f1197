"""A backfill that is killed goes on where it was: the folder holds the same as without the kill."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.backfilled import arguments, command, configured, evidence, rows
from support.past import archive
from support.running import PATHGAUGE, PATIENCE_S, until
from support.trace_servers import Server, jaeger, trace_server

pytestmark = pytest.mark.slow

SECONDS = 7200
PAST = archive(900, SECONDS)
KILLS = 4
COUNTS = "SELECT name, state FROM counts WHERE name <> '[\"backfill\"]' ORDER BY name"


@pytest.mark.parametrize("seed", [1, 2])
def test_after_kills_nothing_is_missing_and_nothing_is_there_twice(
    seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    configured(tmp_path, evidence={"keep": "all"})
    with trace_server(jaeger(PAST)) as server:
        address = f"jaeger://127.0.0.1:{server.port}"
        assert command(tmp_path, address, SECONDS, "--output", whole).returncode == 0
        words = arguments(tmp_path, address, SECONDS, "--output", killed)
        kills = sum(kill(words, server, chance) for _ in range(KILLS))
        done = command(tmp_path, address, SECONDS, "--output", killed)
        again = command(tmp_path, address, SECONDS, "--output", killed)
    assert kills > 1
    assert (done.returncode, done.stderr) == (0, "")
    assert "resumed: " in done.stdout
    assert "in all: 900 traces" in done.stdout
    assert "resumed: 0 traces" in again.stdout
    assert rows(killed) == rows(whole)
    assert evidence(killed) == evidence(whole)
    assert rows(killed, COUNTS) == rows(whole, COUNTS)
    killed_series, whole_series = map(lines, (killed, whole))
    assert killed_series[-1] == whole_series[-1] == b"# EOF"
    assert sorted(killed_series) == sorted(whole_series)


def lines(folder: Path) -> list[bytes]:
    """Of the file of series. Each process has another order of series."""
    return (folder / "openmetrics.txt").read_bytes().splitlines()


def kill(words: list[str], server: Server, chance: random.Random) -> bool:
    """Kill a backfill at some moment; returns whether it still ran."""
    wanted = len(server.asked) + chance.randint(6, 12)
    process = subprocess.Popen(
        [str(PATHGAUGE), *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    until(lambda: len(server.asked) >= wanted or process.poll() is not None)
    time.sleep(chance.random() / 2)
    process.send_signal(signal.SIGKILL)
    return process.wait(PATIENCE_S) == -signal.SIGKILL

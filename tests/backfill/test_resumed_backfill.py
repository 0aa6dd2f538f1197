"""A backfill that is killed goes on where it was: the folder holds the same as without the kill."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.backfilled import arguments, command, configured, evidence, rows
from support.past import CRITERIA, archive
from support.running import PATHGAUGE, PATIENCE_S, until
from support.trace_servers import Server, jaeger, trace_server

pytestmark = pytest.mark.slow

SECONDS = 7200
PAST = archive(900, SECONDS)
KILLS = 4
WITH_SESSIONS = {
    "criteria": {**CRITERIA, "session_turns": 2, "session_tokens": None},
    "sessions": {"idle": "20m", "settle": "5s", "reopen": "25m", "max_age": "50m"},
}
"""Sessions last longer than slices, and some are opened again."""
COUNTS = "SELECT name, state FROM counts WHERE name <> '[\"backfill\"]' ORDER BY name"


@pytest.mark.parametrize("seed", [1, 2])
def test_after_kills_nothing_is_missing_and_nothing_is_there_twice(
    seed: int, tmp_path: Path
) -> None:
    configured(tmp_path, evidence={"keep": "all"})
    killed, whole = backfilled_twice(seed, tmp_path)
    assert sorted(lines(killed)) == sorted(lines(whole))


def test_sessions_go_on_after_kills(tmp_path: Path) -> None:
    configured(tmp_path, evidence={"keep": "all"}, **WITH_SESSIONS)
    killed, whole = backfilled_twice(3, tmp_path)
    results = [json.loads(body) for (body,) in rows(whole, "SELECT body FROM results")]
    assert sum("session" in body for body in results) > 800
    # A process that goes on starts the series of sessions at 0 before the first one ends.
    assert nonzero(killed) == nonzero(whole)


def backfilled_twice(seed: int, tmp_path: Path) -> tuple[Path, Path]:
    """Backfill with kills and without, and compare the stores; returns both folders."""
    chance = random.Random(seed)
    killed, whole = tmp_path / "killed", tmp_path / "whole"
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
    assert lines(killed)[-1] == lines(whole)[-1] == b"# EOF"
    return killed, whole


def nonzero(folder: Path) -> list[bytes]:
    """The samples in the file of series that are not 0, in order."""
    return sorted(line for line in lines(folder) if b" 0.0 " not in line)


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

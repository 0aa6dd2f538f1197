"""A bit flips, or the end of a file is gone: the store opens, no score is wrong, and what was lost
is reported.
"""

from __future__ import annotations

import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest
import zstandard
from structlog.testing import capture_logs

from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.store import files
from support.running import until

from . import patched
from .core import Core
from .sizes import times
from .traffic import Request, Traffic
from .truth import Key, Said, seen, setup, truth

SLOW_S = 1.0
QUICK_S = 0.02
INCOMPLETE = {"dropped_spans", "missing_root"}
"""Flags that say that something is missing."""
UNNOTICED = "pathgauge.db-wal cut"
"""What nobody can notice: a log that ends early looks like one to which less was written."""
START_S = 5.0
"""A start must not take longer."""
MAX_TRIES = 20
"""Until a mistake has come to light: what is cut off may hold nothing that is missed."""


@dataclass(frozen=True, slots=True)
class Crashed:
    """A folder as a crash leaves it, with results, traces that were read, and traces that wait."""

    folder: Path
    setup: ActiveConfig
    requests: list[Request]
    before: dict[Key, Said]
    """What was said before the crash."""

    def truth(self, requests: int) -> dict[Key, Said]:
        """What is right where only so many requests are known, the first ones."""
        return truth(
            (span for request in self.requests[:requests] for span in request.spans()), self.setup
        ).said


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Crashed:
    folder = tmp_path_factory.mktemp("crashed")
    scoring, traffic = setup(folder), Traffic(7)
    core = Core(folder / "live", scoring, SLOW_S)
    requests: list[Request] = []
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(files, "_WRITE_AHEAD_PAGES", 100)
        core.start()
        for _ in range(80):
            requests += take(core, traffic.next())
        assert until(core.reads_nothing)
        while last := traffic.last():
            requests += take(core, last)
    shutil.copytree(folder / "live", folder / "crashed")
    core.stop()
    return Crashed(folder / "crashed", scoring, requests, seen(folder / "crashed").said)


def take(core: Core, requests: list[Request]) -> list[Request]:
    core.take(requests)
    return requests


def flip(path: Path, random: Random) -> str:
    """Turn one bit over."""
    place, bit = random.randrange(path.stat().st_size), random.randrange(8)
    with path.open("r+b") as file:
        file.seek(place)
        [byte] = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))
    return f"bit {bit} of byte {place} of {path.name} flipped"


def flip_in_the_first_page(path: Path, random: Random) -> str:
    """Turn one bit over of what the database says of itself and of its tables, whatever `path` is."""
    database = path.with_name("pathgauge.db")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")  # a page in the log would hide it
    raw = bytearray(database.read_bytes())
    place, bit = (
        random.choice([place for place in range(files.PAGE_BYTES) if raw[place]]),
        random.randrange(8),
    )
    raw[place] ^= 1 << bit
    database.write_bytes(raw)
    return f"bit {bit} of byte {place} of {database.name} flipped"


def truncate(path: Path, random: Random) -> str:
    """Lose the end."""
    size = random.randrange(path.stat().st_size)
    with path.open("r+b") as file:
        file.truncate(size)
    return f"{path.name} cut to {size} bytes"


Damage = Callable[[Path, Random], str]


def truncate_the_database(path: Path, random: Random) -> str:
    """Lose the end of the database itself, whatever `path` is."""
    return truncate(path.with_name("pathgauge.db"), random)


def change_every_request(path: Path, _: Random) -> str:
    """Change what neither SQLite nor the decompressor misses; `path` is that of the database or its
    log.
    """
    with closing(sqlite3.connect(path.with_name("pathgauge.db"))) as connection, connection:
        for row, body in connection.execute("SELECT id, body FROM journal").fetchall():
            changed = zstandard.decompress(body).replace(b"execute_tool", b"execute_uool")
            connection.execute(
                "UPDATE journal SET body = ? WHERE id = ?", (zstandard.compress(changed), row)
            )
    return "the name of an operation changed in every request"


def damaged(crashed: Crashed, folder: Path, random: Random, damage: Damage) -> tuple[str, Path]:
    """A copy of the folder with one thing wrong."""
    copy = folder / "damaged"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(crashed.folder, copy)
    return damage(copy / random.choice(("pathgauge.db", "pathgauge.db-wal")), random), copy


def breaches_of(crashed: Crashed, what: str, folder: Path) -> Iterator[str]:
    """What a collector that is started on a damaged folder does wrong."""
    core = Core(folder, crashed.setup, QUICK_S)
    began = time.monotonic()
    with capture_logs() as logs:
        core.start()
        took = time.monotonic() - began
        until(core.reads_nothing, patience=3.0)
        core.stop()
    if took > START_S:
        yield f"{what}: the start took {took:.1f} s"
    found = seen(folder)
    known = crashed.truth(found.requests)
    for key, said in found.said.items():
        if said not in (known.get(key), crashed.before.get(key)) and not INCOMPLETE & set(
            said.flags
        ):
            yield f"{what}: {key} has {said}, expected {known.get(key)}"
    lost = {
        key
        for key, said in crashed.truth(len(crashed.requests)).items()
        if found.said.get(key) != said
    }
    if (
        lost
        and not any(line["log_level"] == "error" for line in logs)
        and not what.startswith(UNNOTICED)
    ):
        yield f"{what}: {len(lost)} results were lost, and nothing says so"
    failures = [line for line in logs if line["event"] == "pipeline step failed"]
    if failures:
        yield f"{what}: {failures[0]}"


def all_breaches(
    crashed: Crashed, folder: Path, random: Random, number: int, damage: Damage
) -> Iterator[str]:
    """Of so many damaged copies."""
    for _ in range(number):
        what, copy = damaged(crashed, folder, random, damage)
        try:
            yield from breaches_of(crashed, what, copy)
        except Exception as error:  # a start that fails is the worst breach
            yield f"{what}: {error!r}"


@pytest.mark.parametrize(
    ("damage", "number"),
    [
        (flip, times(10, 1000)),
        (flip_in_the_first_page, times(4, 200)),
        (change_every_request, 1),
        (truncate, times(4, 100)),
    ],
)
def test_a_damaged_store_opens_says_nothing_wrong_and_reports_what_it_lost(
    crashed: Crashed, tmp_path: Path, seed: int, damage: Damage, number: int
) -> None:
    assert list(all_breaches(crashed, tmp_path, Random(seed), number, damage)) == []


MISTAKES: dict[str, Damage] = {
    "trust_what_is_left_of_a_damaged_store": truncate_the_database,
    "take_damaged_requests_for_sound": change_every_request,
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_damage_brings_to_light(
    crashed: Crashed, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    patched.PATCHES[mistake](monkeypatch.setattr)
    assert any(all_breaches(crashed, tmp_path, Random(seed), MAX_TRIES, MISTAKES[mistake]))

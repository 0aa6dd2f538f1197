"""A bit flips, or the end of a file is lost: the store opens, no score is wrong, and losses are
reported.
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
from pathgauge.collector.store.sqlite import files
from support.running import until

from . import patched
from .core import Core
from .sizes import times
from .traffic import Request, Traffic
from .truth import Key, Said, seen, setup, truth

pytestmark = pytest.mark.slow

SLOW_S = 1.0
QUICK_S = 0.02
INCOMPLETE = {"dropped_spans", "missing_root"}
"""Flags of incomplete invocations."""
UNNOTICED = "pathgauge.db-wal cut"
"""The one damage that cannot be noticed: a truncated log looks like a shorter one."""
START_S = 5.0
"""Time limit of a start."""
MAX_TRIES = 60
"""How often a fault is repeated until a mistake is detected: about one truncation in four loses
part of an open trace.
"""


@dataclass(frozen=True, slots=True)
class Crashed:
    """A folder after a crash, with results, traces that were read, and open traces."""

    folder: Path
    setup: ActiveConfig
    requests: list[Request]
    before: dict[Key, Said]
    """The results before the crash."""

    def truth(self, requests: int) -> dict[Key, Said]:
        """The correct results if only the first requests are known."""
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
        monkeypatch.setattr(files, "WAL_PAGES", 100)
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
    """Flip one bit."""
    place, bit = random.randrange(path.stat().st_size), random.randrange(8)
    with path.open("r+b") as file:
        file.seek(place)
        [byte] = file.read(1)
        file.seek(place)
        file.write(bytes([byte ^ 1 << bit]))
    return f"bit {bit} of byte {place} of {path.name} flipped"


def checkpointed(path: Path) -> Path:
    """The database next to `path`, with every page of its log: a page in the log hides damage."""
    database = path.with_name("pathgauge.db")
    with closing(sqlite3.connect(database)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return database


def flip_in_the_first_page(path: Path, random: Random) -> str:
    """Flip a bit in the first page of the database, whatever `path` is."""
    database = checkpointed(path)
    raw = bytearray(database.read_bytes())
    place, bit = (
        random.choice([place for place in range(files.PAGE_BYTES) if raw[place]]),
        random.randrange(8),
    )
    raw[place] ^= 1 << bit
    database.write_bytes(raw)
    return f"bit {bit} of byte {place} of {database.name} flipped"


def truncate(path: Path, random: Random) -> str:
    """Truncate the file."""
    size = random.randrange(path.stat().st_size)
    with path.open("r+b") as file:
        file.truncate(size)
    return f"{path.name} cut to {size} bytes"


Damage = Callable[[Path, Random], str]


def truncate_the_database(path: Path, random: Random) -> str:
    """Truncate the database, whatever `path` is."""
    return truncate(checkpointed(path), random)


def change_every_request(path: Path, _: Random) -> str:
    """Change the content of every request so that neither SQLite nor the decompressor notices.
    `path` is the database or its log.
    """
    with closing(sqlite3.connect(path.with_name("pathgauge.db"))) as connection, connection:
        for row, body in connection.execute("SELECT id, body FROM journal").fetchall():
            changed = zstandard.decompress(body).replace(b"execute_tool", b"execute_uool")
            connection.execute(
                "UPDATE journal SET body = ? WHERE id = ?", (zstandard.compress(changed), row)
            )
    return "the name of an operation changed in every request"


def damaged(crashed: Crashed, folder: Path, random: Random, damage: Damage) -> tuple[str, Path]:
    """A copy of the folder with one damage."""
    copy = folder / "damaged"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(crashed.folder, copy)
    return damage(copy / random.choice(("pathgauge.db", "pathgauge.db-wal")), random), copy


def breaches_of(crashed: Crashed, what: str, folder: Path) -> Iterator[str]:
    """Every broken guarantee of a collector that starts on a damaged folder."""
    core = Core(folder, crashed.setup, QUICK_S)
    began = time.monotonic()
    with capture_logs() as logs:
        core.start()
        took = time.monotonic() - began
        until(core.reads_nothing)
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
    """The broken guarantees of so many damaged copies."""
    for _ in range(number):
        what, copy = damaged(crashed, folder, random, damage)
        try:
            yield from breaches_of(crashed, what, copy)
        except Exception as error:  # a start that fails is the worst breach
            yield f"{what}: {error!r}"


@pytest.mark.parametrize(
    ("damage", "number"),
    [
        (flip, times(5, 1000)),
        (flip_in_the_first_page, times(2, 200)),
        (change_every_request, 1),
        (truncate, times(3, 100)),
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

"""What a file says of its own tables may be damaged, too: the store opens, and a file of a later version is still left alone."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest
from structlog.testing import capture_logs

from collector.intake import Batch, Origin
from collector.store import StoreError, files, journal
from collector.store.files import DATABASE
from collector.store.journal import Packer
from collector.store.schema import MIGRATIONS
from collector.store.sqlite import SqliteStore

ROWS = 100
SAVED = "the store was damaged; what could be read of it was saved"
VERSION = range(60, 64)
"""Where a file has its `user_version`: https://www.sqlite.org/fileformat2.html#the_database_header."""


class Opened(NamedTuple):
    """What a start found, and what it did."""

    requests: int
    suspect: int
    events: set[str]
    set_aside: int
    """Whole files."""


SOUND = Opened(ROWS, 0, set(), 0)
SALVAGED = Opened(ROWS, ROWS, {SAVED}, 1)


def opened(folder: Path) -> Opened:
    """A start, and the end that follows."""
    store = SqliteStore(folder)
    with capture_logs() as logs:
        restored = store.open()
        suspect = store.usage().suspect
        store.close()
    return Opened(restored.requests, suspect, {entry["event"] for entry in logs}, len(list(folder.glob(f"{DATABASE}.damaged-*"))))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """That of a store with requests, which was closed in order."""
    folder, packer = tmp_path / "data", Packer()
    os.close(files.lock(folder))
    with closing(files.connect(folder)) as connection:
        sent = (Batch(Origin("", "grpc", "traces", "protobuf"), os.urandom(1000)) for _ in range(ROWS))
        journal.append(connection, [packer.pack(row, float(row), 0.0, batch) for row, batch in enumerate(sent, 1)])
    return folder


def change(folder: Path, place: int, bit: int) -> None:
    """Turn one bit of the database over."""
    raw = bytearray((folder / DATABASE).read_bytes())
    raw[place] ^= 1 << bit
    (folder / DATABASE).write_bytes(raw)


def place_of(folder: Path, text: bytes) -> int:
    """Where the database says it."""
    return (folder / DATABASE).read_bytes().index(text)


@pytest.mark.parametrize("place", VERSION)
@pytest.mark.parametrize("bit", range(8))
def test_a_store_whose_version_number_is_damaged_is_not_taken_for_one_of_another_version(folder: Path, place: int, bit: int) -> None:
    change(folder, place, bit)
    assert opened(folder) == SALVAGED
    assert opened(folder) == SALVAGED._replace(events=set())


@pytest.mark.parametrize("text", [b"at)", b"_time", b"INDEX", b"wall REAL", b"journal", b"DEFAULT 0", b"NOT NULL, crc", b"tableawaited"])
@pytest.mark.parametrize("bit", [0, 7], ids=["another letter", "no letter"])
def test_a_store_whose_tables_are_described_wrong_opens(folder: Path, text: bytes, bit: int) -> None:
    change(folder, place_of(folder, text), bit)
    found = opened(folder)
    assert (found.suspect, found.events, found.set_aside) == (found.requests, {SAVED}, 1)
    assert opened(folder) == found._replace(events=set())


@pytest.mark.parametrize(
    "statement",
    ["CREATE TABLE later (id INTEGER PRIMARY KEY)", "ALTER TABLE results ADD COLUMN later", "DROP TABLE turns"],
    ids=["a table more", "a column more", "a table less"],
)
@pytest.mark.parametrize("readable", [True, False], ids=["sound", "damaged"])
def test_a_store_of_a_later_version_is_refused_and_left_alone(folder: Path, statement: str, readable: bool) -> None:
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.executescript(f"{statement}; PRAGMA user_version = {len(MIGRATIONS) + 1}")
    if not readable:
        change(folder, place_of(folder, b"INDEX"), 7)
    before = (folder / DATABASE).read_bytes()
    with pytest.raises(StoreError, match=f"found schema version {len(MIGRATIONS) + 1}, expected at most {len(MIGRATIONS)}"):
        opened(folder)
    assert (folder / DATABASE).read_bytes() == before
    assert {path.name for path in folder.iterdir()} == {DATABASE, "lock"}


def test_what_operators_added_to_a_store_is_no_damage(folder: Path) -> None:
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.executescript("CREATE INDEX own ON journal (tenant); ANALYZE")
    assert opened(folder) == SOUND


@pytest.mark.parametrize("version", range(len(MIGRATIONS) + 1))
def test_the_tables_tell_every_version_of_a_store(tmp_path: Path, version: int) -> None:
    folder = tmp_path / "data"
    folder.mkdir(mode=0o700)
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.executescript("".join(MIGRATIONS[:version]) + f"PRAGMA user_version = {version}")
    assert opened(folder) == Opened(0, 0, set(), 0)

"""Damage in the first page, which describes the tables: the store still opens. A file of a later
version is not changed.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest
from structlog.testing import capture_logs

from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.store import StoreError, journal
from pathgauge.collector.store.journal import Packer
from pathgauge.collector.store.schema import MIGRATIONS
from pathgauge.collector.store.sqlite import files, recovery
from pathgauge.collector.store.sqlite.files import DATABASE
from pathgauge.collector.store.sqlite.store import SqliteStore
from support.thinning import thinned

ROWS = 100
EVENT = "the store was damaged; all readable rows were recovered"
VERSION = range(60, 64)
"""The bytes of `user_version`: https://www.sqlite.org/fileformat2.html#the_database_header."""


class Opened(NamedTuple):
    """The result of a start."""

    requests: int
    suspect: int
    events: set[str]
    set_aside: int
    """The number of database files that were kept as damaged."""


SOUND = Opened(ROWS, 0, set(), 0)
RECOVERED = Opened(ROWS, ROWS, {EVENT}, 1)


def opened(folder: Path) -> Opened:
    """Open the store and close it."""
    store = SqliteStore(folder)
    with capture_logs() as logs:
        restored = store.open()
        suspect = store.usage().suspect
        store.close()
    return Opened(
        restored.requests,
        suspect,
        {entry["event"] for entry in logs},
        len(list(folder.glob(f"{DATABASE}.damaged-*"))),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a store that was closed in order. Its requests need more pages than a one-byte
    number can count.
    """
    folder, packer = tmp_path / "data", Packer()
    os.close(files.lock(folder))
    with closing(files.connect(folder)) as connection:
        sent = (
            Batch(Origin("", "grpc", "traces", "protobuf"), os.urandom(7000)) for _ in range(ROWS)
        )
        journal.append(
            connection,
            [packer.pack(row, float(row), 0.0, batch) for row, batch in enumerate(sent, 1)],
        )
    return folder


def change(folder: Path, place: int, bit: int) -> None:
    """Flip one bit of the database."""
    raw = bytearray((folder / DATABASE).read_bytes())
    raw[place] ^= 1 << bit
    (folder / DATABASE).write_bytes(raw)


def requests(folder: Path) -> list[tuple[Any, ...]]:
    """All rows of the journal."""
    with closing(files.connect_reader(folder)) as connection:
        return journal.read(connection, 0, sys.maxsize)


def place_of(folder: Path, text: bytes) -> int:
    """The position of a text in the database."""
    return (folder / DATABASE).read_bytes().index(text)


@pytest.mark.parametrize("place", VERSION)
@pytest.mark.parametrize("bit", thinned(range(8), keep=2))
def test_a_store_whose_version_number_is_damaged_is_not_taken_for_one_of_another_version(
    folder: Path, place: int, bit: int
) -> None:
    change(folder, place, bit)
    assert opened(folder) == RECOVERED
    assert opened(folder) == RECOVERED._replace(events=set())


@pytest.mark.parametrize(
    "text",
    [
        b"at)",
        b"_time",
        b"INDEX",
        b"wall REAL",
        b"journal",
        b"DEFAULT 0",
        b"NOT NULL, crc",
        b"tableawaited",
    ],
)
@pytest.mark.parametrize("bit", [0, 7], ids=["another letter", "no letter"])
def test_a_store_whose_tables_are_described_wrong_opens(
    folder: Path, text: bytes, bit: int
) -> None:
    change(folder, place_of(folder, text), bit)
    assert opened(folder) == RECOVERED
    assert opened(folder) == RECOVERED._replace(events=set())


@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE later (id INTEGER PRIMARY KEY)",
        "ALTER TABLE results ADD COLUMN later",
        "DROP TABLE turns",
    ],
    ids=["a table more", "a column more", "a table less"],
)
@pytest.mark.parametrize("readable", [True, False], ids=["sound", "damaged"])
def test_a_store_of_a_later_version_is_refused_and_left_alone(
    folder: Path, statement: str, readable: bool
) -> None:
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.executescript(f"{statement}; PRAGMA user_version = {len(MIGRATIONS) + 1}")
    if not readable:
        change(folder, place_of(folder, b"INDEX"), 7)
    before = (folder / DATABASE).read_bytes()
    with pytest.raises(
        StoreError,
        match=f"found schema version {len(MIGRATIONS) + 1}, expected at most {len(MIGRATIONS)}",
    ):
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


def as_it_was_created(folder: Path) -> None:
    """A database as it was created."""


def compacted(folder: Path) -> None:
    """A database after VACUUM, as a purge leaves it."""
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.execute("VACUUM")


def of_the_first_version(folder: Path) -> None:
    """A database of the first version."""
    rows = requests(folder)
    (folder / DATABASE).unlink()
    with closing(sqlite3.connect(folder / DATABASE, isolation_level=None)) as connection:
        connection.executescript(
            f"PRAGMA page_size = {files.PAGE_BYTES}; PRAGMA journal_mode = WAL; {MIGRATIONS[0]};"
            " PRAGMA user_version = 1"
        )
        journal.append(connection, rows)


def with_a_log(folder: Path) -> None:
    """A database after a crash, with rows that are only in the log."""
    crashed = folder.with_name("crashed")
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.executescript("UPDATE journal SET wall = id")
        shutil.copytree(folder, crashed)
    shutil.rmtree(folder)
    crashed.rename(folder)


@pytest.mark.parametrize(
    "history", [as_it_was_created, compacted, of_the_first_version, with_a_log]
)
@pytest.mark.parametrize("seed", thinned(range(20), keep=3))
def test_no_row_is_lost_with_the_page_that_says_where_they_are(
    folder: Path, history: Callable[[Path], None], seed: int
) -> None:
    history(folder)
    before, random = requests(folder), Random(seed)
    page = (folder / DATABASE).read_bytes()[: files.PAGE_BYTES]
    change(
        folder,
        random.choice([place for place, byte in enumerate(page) if byte]),
        random.randrange(8),
    )
    found = opened(folder)
    assert found in (RECOVERED, SOUND)  # some numbers of the header are not looked at
    assert requests(folder) == before


@pytest.mark.slow
@pytest.mark.long_table
@pytest.mark.parametrize("place", range(100))
def test_a_store_with_a_damaged_header_opens_and_loses_nothing(folder: Path, place: int) -> None:
    before = requests(folder)
    change(folder, place, place % 8)
    assert opened(folder) in (RECOVERED, SOUND)
    assert requests(folder) == before


@pytest.mark.parametrize("history", [as_it_was_created, compacted, of_the_first_version])
@pytest.mark.parametrize("lost", [1, 3], ids=["the first page", "the first pages"])
def test_requests_outlive_the_whole_pages_before_them(
    folder: Path, history: Callable[[Path], None], lost: int
) -> None:
    history(folder)
    before = requests(folder)
    with (folder / DATABASE).open("r+b") as file:
        file.write(bytes(lost * files.PAGE_BYTES))
    assert opened(folder) == RECOVERED
    assert requests(folder) == before


def trees(folder: Path) -> dict[str, int]:
    """The root page of each table and index."""
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        return dict(connection.execute("SELECT name, rootpage FROM sqlite_schema"))


@pytest.mark.parametrize("history", [as_it_was_created, compacted])
@pytest.mark.parametrize("bit", thinned(range(8), keep=2))
def test_a_table_that_is_said_to_begin_elsewhere_loses_no_row(
    folder: Path, history: Callable[[Path], None], bit: int
) -> None:
    history(folder)
    before = requests(folder)
    place = place_of(folder, b"journaljournal") + len("journaljournal")
    assert (folder / DATABASE).read_bytes()[place] == trees(folder)["journal"]
    change(folder, place, bit)
    assert opened(folder) == RECOVERED
    assert requests(folder) == before


def test_tables_that_a_migration_added_are_found_where_the_file_says(folder: Path) -> None:
    of_the_first_version(folder)
    with closing(files.connect(folder)) as connection:
        connection.execute(
            "INSERT INTO awaited (tenant, trace_id, span_id, at, known, body, crc) VALUES ('', 'a',"
            " 'b', 1, '', '', 0)"
        )
    recovery.recover(folder)
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        assert connection.execute("SELECT trace_id FROM awaited").fetchall() == [("a",)]


def test_what_was_set_aside_is_as_it_was_found(folder: Path) -> None:
    change(folder, place_of(folder, b"INDEX"), 7)
    before = (folder / DATABASE).read_bytes()
    opened(folder)
    assert [path.read_bytes() for path in folder.glob("*.damaged-*")] == [before]


def test_a_file_of_unknown_tables_is_read_as_it_stands(folder: Path) -> None:
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.executescript("PRAGMA journal_mode = DELETE; PRAGMA page_size = 4096; VACUUM")
    before = requests(folder)
    change(folder, place_of(folder, b"DEFAULT 0") + len("DEFAULT "), 0)
    assert opened(folder) == RECOVERED
    assert requests(folder) == before

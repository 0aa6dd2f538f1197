"""All readable rows of a damaged store are there after the next start, whatever happens during the
recovery.
"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from structlog.testing import capture_logs

from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.store import Progress, Selection, StoreError
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import insert
from pathgauge.collector.store.sqlite import database, files, reader, recovery, store as sqlite
from pathgauge.collector.store.sqlite.files import DATABASE
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import span

ROWS = 3000
LOST = 100
"""More bytes than a page holds."""
GONE = (
    "the folder of the store was removed or replaced: senders are told to retry until the collector"
    " is restarted"
)
SAVED = "the store was damaged; all readable rows were recovered"


def batch(size: int = 1) -> Batch:
    one = span("a", "one", {"n": os.urandom(size)})
    request = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[one.proto])])]
    )
    return Batch(
        Origin("", "grpc", "traces", "protobuf"), request.SerializeToString(), spans=(one,)
    )


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a database that has an empty page in the middle, and a log with rows that are
    not in the database yet.
    """
    folder = tmp_path_factory.mktemp("damaged") / "data"
    columns = "id, at, wall, tenant, form, traces, head_crc, body_crc, body"
    origin = "", "grpc traces protobuf"
    crcs = [checksum(n, float(n), *origin, bytes(16).hex()) for n in range(1, ROWS + 1)]
    rows = [
        (n, float(n), 0.0, *origin, bytes(16), crc, 1, os.urandom(1000))
        for n, crc in enumerate(crcs, 1)
    ]
    os.close(files.lock(folder))
    with closing(files.connect(folder)) as connection:
        insert(connection, f"INSERT INTO journal ({columns})", rows[:-1])
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        insert(connection, f"INSERT INTO journal ({columns})", rows[-1:])
        shutil.copytree(folder, live := folder.with_name("live"))
    database = live / DATABASE
    middle = database.stat().st_size // files.PAGE_BYTES // 2 * files.PAGE_BYTES
    with database.open("r+b") as file:
        file.seek(middle)
        file.write(b"\xff" * files.PAGE_BYTES)
    return live


@pytest.fixture
def folder(damaged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(damaged, tmp_path / "data"))


def opened(folder: Path) -> None:
    """Open the store and close it."""
    store = SqliteStore(folder)
    try:
        store.open()
    finally:
        store.close()


def journal(folder: Path) -> set[int]:
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        return {row for (row,) in connection.execute("SELECT id FROM journal")}


def assert_saved(folder: Path) -> None:
    """All readable rows are there, waiting traces are suspect, and the folder has no other files
    than the damaged ones.
    """
    rows = journal(folder)
    assert {1, ROWS} <= rows
    assert ROWS - LOST < len(rows) < ROWS
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        assert recovery.suspected(connection) == ROWS
    names = {path.name.replace(DATABASE, "db").partition("-")[0] for path in folder.iterdir()}
    assert names - {"db"} == {"lock", "db.damaged"}


class Crash(BaseException):
    """The simulated end of the process."""


def crash_before(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow only so many steps that rename files or sync the folder."""
    steps = count()

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            if next(steps) >= number:
                raise Crash
            return real(*arguments, **options)

        return step

    for owner, name in ((os, "rename"), (Path, "rename"), (Path, "unlink"), (os, "fsync")):
        monkeypatch.setattr(owner, name, counted(getattr(owner, name)))


@pytest.mark.slow
def test_a_crash_before_any_step_of_a_recovery_loses_nothing(damaged: Path, tmp_path: Path) -> None:
    crash_at, finished = 0, False
    while not finished:
        folder = Path(shutil.copytree(damaged, tmp_path / str(crash_at)))
        with capture_logs() as logs:
            with pytest.MonkeyPatch.context() as monkeypatch, suppress(Crash):
                crash_before(crash_at, monkeypatch)
                recovery.recover(folder)
                finished = True
            opened(folder)
        assert {entry["event"] for entry in logs} == {SAVED}
        assert_saved(folder)
        crash_at += 1
    assert crash_at > 8


def test_a_damaged_file_of_the_first_version_is_saved_as_one_of_this(folder: Path) -> None:
    with closing(files.connect(folder)) as connection:
        connection.executescript("DROP TABLE awaited; PRAGMA user_version = 1")
    recovery.recover(folder)
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        assert connection.execute("SELECT count(*) FROM awaited").fetchone() == (0,)
    assert_saved(folder)


@pytest.mark.slow
def test_a_recovery_that_was_killed_while_it_copied_is_done_again(folder: Path) -> None:
    killed = """if True:
        import os, pathlib, signal, sys
        from pathgauge.collector.store.sqlite import recovery
        real = recovery.copy_table
        kill = lambda: os.kill(os.getpid(), signal.SIGKILL)
        recovery.copy_table = lambda *arguments: (real(*arguments), kill())
        recovery.recover(pathlib.Path(sys.argv[1]))
    """
    process = subprocess.run([sys.executable, "-c", killed, folder], check=False)
    assert process.returncode == -signal.SIGKILL
    assert (folder / f"{DATABASE}.new").exists()
    opened(folder)
    assert_saved(folder)


def test_damage_that_only_work_brought_to_light_is_remembered_until_it_is_mended(
    folder: Path,
) -> None:
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    (folder / f"{DATABASE}.new").touch()
    with capture_logs() as logs:
        assert recovery.is_unfinished(folder)
        opened(folder)
    assert [entry["event"] for entry in logs] == [SAVED]
    assert_saved(folder)


def test_a_recovery_without_room_stops_the_start_and_leaves_the_damaged_files_where_they_are(
    folder: Path,
) -> None:
    files.make_reserve(folder)
    before = journal_bytes(folder)
    with (
        file_size_limit(1 << 20),
        pytest.raises(
            StoreError, match=r"pathgauge.db: damaged, .*; found \d+ bytes free, expected \d{7}$"
        ),
    ):
        recovery.recover(folder)
    assert journal_bytes(folder) == before
    assert not list(folder.glob("*.damaged-*"))
    assert (folder / f"{DATABASE}.new").stat().st_size == 0
    assert not (folder / "reserve").exists()
    opened(folder)
    assert_saved(folder)


async def test_a_running_store_refuses_until_there_is_room_for_what_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        files, "MAX_CHECKED_BYTES", 0
    )  # as if it were too large to be looked at when it is opened
    folder = tmp_path / "data"
    for owner, name in (
        (sqlite, "RECOVERY_INTERVAL_S"),
        (database, "RECOVERY_INTERVAL_S"),
        (database, "RETRY_S"),
        (reader, "_RETRY_S"),
    ):
        monkeypatch.setattr(owner, name, 0.0)
    async with running(folder) as store:
        assert all([await store.append(batch(60_000)) for _ in range(30)])
    break_a_chain(folder / DATABASE)
    async with running(folder) as store:
        with capture_logs(), file_size_limit(1 << 20):
            with pytest.raises(StoreError):
                await asyncio.to_thread(read_all, store)
            assert not await store.append(batch())
            assert (store.usage().state, list(folder.glob("*.damaged-*"))) == ("failed", [])
        with capture_logs() as logs:
            assert [await store.append(batch()) for _ in range(3)] == [
                False,
                True,
                True,
            ]  # the first one finds the room
        assert [entry["event"] for entry in logs] == [SAVED, "the store accepts requests again"]
        assert (store.usage().state, store.usage().suspect) == ("ok", 30)
    assert len(journal(folder)) == 31


async def test_a_recovery_that_failed_is_not_tried_again_with_every_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        files, "MAX_CHECKED_BYTES", 0
    )  # as if it were too large to be looked at when it is opened
    folder = tmp_path / "data"
    for owner, name in ((database, "RETRY_S"), (reader, "_RETRY_S")):
        monkeypatch.setattr(owner, name, 0.0)
    async with running(folder) as store:
        assert all([await store.append(batch(60_000)) for _ in range(30)])
    break_a_chain(folder / DATABASE)
    async with running(folder) as store:
        with capture_logs(), file_size_limit(1 << 20), pytest.raises(StoreError):
            await asyncio.to_thread(read_all, store)
        assert [await store.append(batch()) for _ in range(3)] == [False] * 3
        assert recovery.is_unfinished(folder)
    opened(folder)
    assert len(journal(folder)) == 29


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_whose_pages_stand_in_the_wrong_places_is_left(
    damaged: Path, tmp_path: Path, seed: int
) -> None:
    folder = Path(shutil.copytree(damaged, tmp_path / "data"))
    raw = (folder / DATABASE).read_bytes()
    pages = [raw[at : at + files.PAGE_BYTES] for at in range(0, len(raw), files.PAGE_BYTES)]
    leaves = pages[len(pages) // 2 :]
    Random(seed).shuffle(leaves)
    (folder / DATABASE).write_bytes(b"".join(pages[: len(pages) // 2] + leaves))
    recovery.recover(folder)
    assert 1 in journal(folder)


@asynccontextmanager
async def running(folder: Path) -> AsyncIterator[SqliteStore]:
    """A running store."""
    store = SqliteStore(folder)
    restored = store.open()
    store.start(lambda _: True, lambda: restored.at)
    try:
        yield store
    finally:
        store.close()


def read_all(store: SqliteStore) -> None:
    """Read all requests."""
    row = 0
    while found := list(store.read(row)):
        row = found[-1].row


def break_a_chain(database: Path) -> None:
    """Break a page in the middle of a large row. Only reading that row shows the damage."""
    raw = bytearray(database.read_bytes())
    pages = len(raw) // files.PAGE_BYTES
    chained = [
        at
        for at in range(0, len(raw), files.PAGE_BYTES)
        if raw[at] == 0 and 0 < int.from_bytes(raw[at : at + 4]) < pages
    ]
    raw[chained[len(chained) // 2]] = 0x7F
    database.write_bytes(raw)


def journal_bytes(folder: Path) -> bytes:
    return (folder / DATABASE).read_bytes()


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """Limit the size of files, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_text_that_is_none_any_more_costs_no_other_row(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    os.close(files.lock(folder))
    with closing(files.connect(folder)) as connection:
        insert(
            connection,
            "INSERT INTO quarantine (at, source, reason)",
            [(float(n), f"journal {n}", "checksum") for n in range(9)],
        )
        connection.execute("UPDATE quarantine SET source = CAST(x'ff' AS TEXT) WHERE at IN (2, 6)")
    recovery.recover(folder)
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        assert [
            at for (at,) in connection.execute("SELECT at FROM quarantine ORDER BY id")
        ] == list(range(9))


@pytest.mark.parametrize("again", [False, True], ids=["removed", "replaced"])
async def test_a_store_that_lost_its_folder_refuses_until_a_restart(
    tmp_path: Path, again: bool
) -> None:
    folder = tmp_path / "data"
    async with running(folder) as store:
        assert await store.append(batch())
        shutil.rmtree(folder)
        if again:
            opened(folder)
        with capture_logs() as logs:
            assert [await store.append(batch()) for _ in range(3)] == [False] * 3
            assert not await asyncio.to_thread(store.commit, Progress(1, 1.0, 1.0))
            with pytest.raises(StoreError, match="nothing was removed"):
                await asyncio.to_thread(store.purge, Selection(before=1.0))
        assert [(entry["event"], entry["folder"]) for entry in logs] == [(GONE, str(folder))]
        assert (store.usage().state, store.usage().reason) == ("failed", GONE)
    assert folder.exists() is again
    opened(folder)
    assert journal(folder) == set()


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o777])
def test_a_folder_that_others_can_look_into_is_closed_to_them(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    folder.chmod(mode)
    os.close(files.lock(folder))
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_cannot_be_closed_to_others_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    tmp_path.chmod(0o750)
    monkeypatch.setattr(Path, "chmod", refuse)
    with capture_logs() as logs:
        os.close(files.lock(tmp_path))
    assert [(entry["event"], entry["mode"]) for entry in logs] == [
        ("other users can read the folder of the store", "750")
    ]

"""Damage, a full disk and mistakes of operators cost no more than they must when the state of
scorers is moved.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from pathgauge.collector.store import Selection, StoreError, StoreInUseError
from pathgauge.collector.store.resharding import reshard
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.files import DATABASE
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import trace_id
from support.scorer_state import view
from support.scorers import SOME_STATE, Scorers, agent_span, folders, request, run


def test_a_store_in_use_is_not_moved(running: Scorers) -> None:
    [_, scorer] = reshard(running.main, 2)
    for folder in (running.main, scorer):
        held = files.lock(folder)
        try:
            with pytest.raises(StoreInUseError, match="in use"):
                reshard(running.main, 0)
        finally:
            os.close(held)
    assert reshard(running.main, 2)[1] == scorer


def test_a_purge_after_the_move_removes_a_trace_from_every_store(running: Scorers) -> None:
    selection = Selection(trace_id=trace_id("trace 3"))
    for folder in reshard(running.main, 3):
        store = SqliteStore(folder)
        store.open()
        store.start(lambda delivery: True, lambda: 0.0)
        store.purge(selection)
        store.close()
        raw = b"".join(path.read_bytes() for path in folder.iterdir())
        assert bytes.fromhex(trace_id("trace 3")) not in raw
    assert ("", trace_id("trace 3")) not in view(running.main, 3).traces


def test_a_damaged_page_of_a_source_costs_only_its_rows(running: Scorers) -> None:
    before = view(running.main, 2)
    [folder, _] = reshard(running.main, 2)
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        [[page]] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'turns'")
    with (folder / DATABASE).open("r+b") as file:
        file.seek((page - 1) * files.PAGE_BYTES)
        file.write(b"\xff" * files.PAGE_BYTES)
    with capture_logs() as logs:
        after = view(running.main, 0)
    assert "the store was damaged; all readable rows were recovered" in [
        entry["event"] for entry in logs
    ]
    assert (after.unprocessed, after.pending) == (before.unprocessed, before.pending)
    assert after.traces.keys() == before.traces.keys()
    assert list(running.main.glob(f"{DATABASE}.damaged-*"))


def test_a_damaged_request_costs_only_itself_and_its_traces_are_read_as_truncated(
    running: Scorers,
) -> None:
    before = view(running.main, 2)
    [folder, _] = reshard(running.main, 2)
    with closing(sqlite3.connect(folder / DATABASE)) as connection, connection:
        [[head]] = connection.execute("SELECT max(id) FROM journal WHERE form NOT LIKE 'turn'")
        connection.execute("UPDATE journal SET head_crc = head_crc + 1 WHERE id = ?", (head,))
        [[body]] = connection.execute("SELECT max(id) FROM journal WHERE id < ?", (head,))
        connection.execute("UPDATE journal SET body = x'00' WHERE id = ?", (body,))
    [first, *_] = reshard(running.main, 4)
    with closing(sqlite3.connect(running.main / DATABASE)) as connection:
        found = connection.execute("SELECT source, reason FROM quarantine").fetchall()
    name = "/".join(folder.parts[-2:])
    assert found == [(f"{name} journal {head}", "checksum")]
    store = SqliteStore(first)
    store.open()
    assert store.usage().suspect > 0
    store.close()
    after = view(running.main, 4)
    assert after.unprocessed < before.unprocessed
    assert after.traces.keys() == before.traces.keys()


def test_what_an_earlier_version_has_damaged_is_left_out(running: Scorers) -> None:
    before = view(running.main, 2)
    for folder in reshard(running.main, 2):
        with closing(sqlite3.connect(folder / DATABASE)) as connection, connection:
            connection.execute("UPDATE turns SET crc = crc + 1")
            connection.execute("UPDATE awaited SET crc = crc + 1")
    after = view(running.main, 0)
    assert (after.turns, after.pending) == ({}, {})
    assert after.unprocessed == before.unprocessed


def test_a_folder_that_cannot_be_written_to_leaves_the_old_state() -> None:
    nobody = 65534
    if os.geteuid() != 0:
        pytest.skip("needs the rights to become another user")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        main = Path(folder) / "data"
        running = Scorers(main)
        running.start(0)
        run(running, SOME_STATE)
        running.stop()
        for path in (main, *main.iterdir()):
            os.chown(path, nobody, nobody)
        main.chmod(0o500)
        os.seteuid(nobody)
        try:
            with pytest.raises(StoreError, match=str(main)):
                reshard(main, 2)
        finally:
            os.seteuid(0)
        main.chmod(0o700)
        assert view(main, 0).traces


def test_a_full_disk_leaves_the_old_state_and_no_new_folder(running: Scorers) -> None:
    running.start(2)
    running.send(request(agent_span("large 0", trace="large", text=os.urandom(100_000).hex())))
    running.stop()
    before = view(running.main, 2)
    with pytest.MonkeyPatch.context() as patch:
        limited = _limited(files.Connection.execute)
        patch.setattr(files.Connection, "execute", limited)
        with pytest.raises(StoreError, match=r"full.*bytes free"):
            reshard(running.main, 4)
    assert folders(running.main) == 1
    assert view(running.main, 2) == before


def _limited(execute: Callable[..., Any]) -> Callable[..., Any]:
    """New databases may have as many pages as the tables need, and no more."""

    def run(connection: sqlite3.Connection, statement: str, *values: Any) -> Any:
        if statement.startswith("INSERT INTO journal"):
            execute(connection, "PRAGMA max_page_count = 1")
        return execute(connection, statement, *values)

    return run


def test_unknown_scorers_are_never_removed(running: Scorers) -> None:
    [folder, _] = reshard(running.main, 2)
    with closing(sqlite3.connect(running.main / DATABASE)) as connection, connection:
        connection.execute("DELETE FROM meta WHERE name = 'scorers'")
    for workers in (0, 2):
        with pytest.raises(StoreError, match="does not know"):
            reshard(running.main, workers)
    assert (folder / DATABASE).exists()


def test_a_scorer_without_its_folder_is_an_error_that_tells_what_to_do(running: Scorers) -> None:
    [folder, other] = reshard(running.main, 2)
    shutil.rmtree(folder)
    for workers in (0, 2):
        with pytest.raises(StoreError, match=f"{folder}: found nothing, expected"):
            reshard(running.main, workers)
    folder.mkdir()
    assert reshard(running.main, 2) == [folder, other]
    assert reshard(running.main, 0) == []


def test_a_damaged_shape_is_an_error(running: Scorers) -> None:
    with closing(sqlite3.connect(running.main / DATABASE)) as connection, connection:
        connection.execute("UPDATE meta SET value = 'x 2' WHERE name = 'scorers'")
    with pytest.raises(StoreError, match="found 'x 2' in row 'scorers'"):
        reshard(running.main, 2)

"""The numbers of what a scorer has committed for others, after its file was lost or recovered."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pathgauge.collector.core.pipeline_events import Changes, ForwardedTurn
from pathgauge.collector.store import Progress
from pathgauge.collector.store.forwarded_turns import decode
from pathgauge.collector.store.outbox import Acknowledged, OutboxReader
from pathgauge.collector.store.sqlite import recovery
from pathgauge.collector.store.sqlite.files import DATABASE
from pathgauge.collector.store.sqlite.store import SqliteStore


def published(folder: Path, *bodies: bytes, acknowledged: int = 0) -> list[int]:
    """Commit these publications; returns the numbers of all that wait."""
    store = SqliteStore(folder, part="scorer")
    store.open()
    store.start(lambda delivery: False, lambda: 0.0)
    store.acknowledge(Acknowledged(acknowledged))
    for body in bodies:
        assert store.commit(Progress(0, 0.0, 0.0, publication=body))
    store.close()
    return [row.id for row in OutboxReader(folder).publications(0, 1 << 20)]


def test_a_file_in_the_place_of_a_lost_one_repeats_no_number(tmp_path: Path) -> None:
    *_, last = published(tmp_path, b"one", b"two")
    for path in tmp_path.iterdir():
        path.unlink()
    [first] = published(tmp_path, b"three")
    assert first > last


def test_a_recovered_file_repeats_no_number_of_rows_that_were_acknowledged(tmp_path: Path) -> None:
    *_, last = published(tmp_path, b"one", b"two")
    assert published(tmp_path, b"three", acknowledged=last) == [last + 1]
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
        connection.execute("DELETE FROM publications")
        connection.commit()
    recovery.recover(tmp_path)
    [first] = published(tmp_path, b"four")
    assert first > last + 1


def test_the_last_row_is_one_that_waits(tmp_path: Path) -> None:
    assert published(tmp_path) == []
    assert OutboxReader(tmp_path).last() == Acknowledged(0, 0)
    assert OutboxReader(tmp_path).last().publication == 0
    [row] = published(tmp_path, b"one")
    assert OutboxReader(tmp_path).last() == Acknowledged(row, 0)


def test_a_turn_for_another_scorer_of_the_machine_has_no_time(tmp_path: Path) -> None:
    """The running time of its scorer says nothing to the other."""
    turn = ForwardedTurn(("", "ab" * 16, "cd" * 8), void=True, target=1, at=7.0)
    store = SqliteStore(tmp_path, part="scorer")
    store.open()
    store.start(lambda delivery: False, lambda: 0.0)
    assert store.commit(Progress(0, 0.0, 0.0, changes=Changes(forwarded=(turn,))))
    store.close()
    [row] = OutboxReader(tmp_path).forwarded(0, 1 << 20)
    assert decode(row.body) == replace(turn, target=None, at=None)

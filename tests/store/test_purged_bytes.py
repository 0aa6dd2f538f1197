"""After a purge no file of the store has a byte of what was removed, whatever happened to its pages
before: rows in random order, revisions, retention, restarts, and processes that were killed.
"""

from __future__ import annotations

import multiprocessing
import random
import re
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import zstandard
from hypothesis import given, settings, strategies as st

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.store import Progress, Selection
from pathgauge.collector.store.evidence.table import EvidencePolicy
from pathgauge.collector.store.purge import choosing, rows
from pathgauge.collector.store.retention import Retention
from pathgauge.collector.store.schema import MIGRATIONS, OVERWRITTEN
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.database import Database
from pathgauge.collector.store.sqlite.store import SqliteStore
from support.evaluated import evaluation
from support.examples import examples
from support.running import until

PIECE = 4096
MARKER = re.compile(rb"<[0-9a-f]{24}>")


def content(folder: Path) -> bytes:
    raw = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    frames = re.finditer(re.escape(zstandard.FRAME_HEADER), raw)
    return raw + b"".join(_decompressed(memoryview(raw)[frame.start() :]) for frame in frames)


def _decompressed(rest: memoryview) -> bytes:
    """The frame at the beginning. It is read in pieces: zstandard copies what follows a frame."""
    frame, parts = zstandard.ZstdDecompressor().decompressobj(), []
    try:
        while rest and not frame.eof:
            parts.append(frame.decompress(rest[:PIECE]))
            rest = rest[PIECE:]
    except zstandard.ZstdError:
        return b""
    return b"".join(parts)


def found(folder: Path) -> set[bytes]:
    return set(MARKER.findall(content(folder)))


class Traffic:
    """Results with a unique marker in their trace id, agent, scenario and content."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self.live: dict[bytes, Evaluation] = {}
        self.store = self.open()

    def open(self) -> SqliteStore:
        store = SqliteStore(self.folder, Retention(1 << 30), evidence=EvidencePolicy(keep="all"))
        restored = store.open()
        store.start(lambda _: False, time.monotonic)
        assert not restored.is_purging
        return store

    def commit(self, *events: Evaluation) -> None:
        assert self.store.commit(Progress(0, 0.0, time.time(), events))

    def add(self, count: int, scenario: str = "other") -> None:
        new = []
        for _ in range(count):
            marker = f"<{self.random.getrandbits(96):024x}>"
            one = evaluation(marker, agent=marker, scenario=scenario)
            text = marker * self.random.choice((1, 3, 40, 900))
            run = replace(one.invocation, trace_id=marker, user_input=text)
            one = replace(one, invocation=run)
            self.live[marker.encode()] = one
            new.append(one)
        self.commit(*new)

    def revise(self, count: int) -> None:
        chosen = self.random.sample(sorted(self.live), min(count, len(self.live)))
        self.commit(*(replace(self.live[one], revision=1) for one in chosen))

    def purge_some(self, count: int) -> None:
        for one in self.random.sample(sorted(self.live), min(count, len(self.live))):
            assert self.store.purge(Selection(trace_id=one.decode())).unfinished is None
            del self.live[one]

    def purge_scenario(self, scenario: str) -> None:
        assert self.store.purge(Selection(scenario=scenario)).unfinished is None
        self.live = {
            key: one for key, one in self.live.items() if one.invocation.scenario_id != scenario
        }

    def restart(self) -> None:
        self.store.close()
        self.store = self.open()


STEPS = st.one_of(
    st.tuples(st.just("add"), st.integers(1, 60), st.sampled_from(["other", "sales"])),
    st.tuples(st.just("revise"), st.integers(1, 20)),
    st.tuples(st.just("purge_some"), st.integers(1, 3)),
    st.tuples(st.just("purge_scenario"), st.sampled_from(["sales", "other"])),
    st.tuples(st.just("restart")),
)


@pytest.mark.slow
@settings(max_examples=examples(10), deadline=None)
@given(steps=st.lists(STEPS, min_size=3, max_size=12), seed=st.integers(0, 1 << 20))
def test_whatever_happened_before_only_what_was_not_purged_is_left(
    steps: list[tuple[str, ...]], seed: int
) -> None:
    with TemporaryDirectory() as name:
        traffic = Traffic(Path(name) / "data", seed)
        traffic.add(50)
        for step, *arguments in steps:
            getattr(traffic, step)(*arguments)
            assert found(traffic.folder) == set(traffic.live)
        traffic.store.close()


@pytest.mark.parametrize("seed", range(3))
def test_no_page_keeps_what_was_deleted_from_it(seed: int, tmp_path: Path) -> None:
    """The copies that SQLite leaves when it balances a tree are rare: this takes many rows."""
    database = Database(tmp_path, lambda kind, seconds: None, lambda: None)
    database.open(lambda connection: None)
    chosen, live = random.Random(seed), []

    def change(connection: sqlite3.Connection, added: int, deleted: int) -> None:
        for _ in range(added):
            live.append(f"<{chosen.getrandbits(96):024x}>")
            connection.execute(
                "INSERT INTO results (tenant, trace_id, span_id, revision, at, agent, scenario,"
                " body, crc) VALUES ('', :text, :text, 0, :at, :text, :text, :text, 0)",
                {"text": live[-1], "at": chosen.random()},
            )
        for _ in range(deleted):
            place = chosen.randrange(len(live))
            live[place], live[-1] = live[-1], live[place]
            connection.execute("DELETE FROM results WHERE trace_id = ?", (live.pop(),))

    for added, deleted in [(3000, 0), *[(150, 150)] * 40, (0, 1500)]:
        assert database.transact("results", partial(change, added=added, deleted=deleted))
    assert database.checkpoints.empty()
    assert found(tmp_path) == {one.encode() for one in live}
    database.close()


def _purge(folder: Path) -> None:
    store = SqliteStore(folder, Retention(1 << 30))
    store.open()
    store.start(lambda _: False, time.monotonic)
    store.purge(Selection(scenario="sales"))


@pytest.mark.slow
@pytest.mark.parametrize("share", [1.0, 0.5, 0.0], ids=["begun", "half", "deleted"])
def test_the_next_start_finishes_the_purge_of_a_process_that_was_killed(
    share: float, tmp_path: Path
) -> None:
    traffic = Traffic(tmp_path / "data", 1)
    for _ in range(20):
        traffic.add(100, "sales")
        traffic.add(20)
    traffic.store.close()
    process = multiprocessing.get_context("spawn").Process(target=_purge, args=(traffic.folder,))
    most = 0

    def is_due() -> bool:
        nonlocal most
        [left] = reader.execute("SELECT count(*) FROM purging").fetchone()
        begun = reader.execute("SELECT 1 FROM meta WHERE name = 'purge'").fetchone()
        most = max(most, left)
        return begun is not None and left <= share * most

    with (
        closing(files.connect_reader(traffic.folder)) as reader,
        closing(files.connect_reader(traffic.folder)) as earlier,
    ):
        # A purge does not end while somebody reads an earlier state, so no state is missed.
        earlier.execute("BEGIN")
        earlier.execute("SELECT count(*) FROM purging").fetchone()
        process.start()
        assert until(is_due)
        process.kill()
        process.join()
    store = SqliteStore(traffic.folder, Retention(1 << 30))
    assert store.open().is_purging
    store.start(lambda _: False, time.monotonic)
    assert store.finish_purge().unfinished is None
    store.close()
    kept = {key for key, one in traffic.live.items() if one.invocation.scenario_id == "other"}
    assert found(traffic.folder) == kept
    store = SqliteStore(traffic.folder)
    assert not store.open().is_purging
    store.close()


def test_a_file_in_which_an_earlier_version_deleted_rows_is_rewritten_once(
    tmp_path: Path,
) -> None:
    traffic = Traffic(tmp_path / "data", 1)
    traffic.add(200)
    traffic.store.close()
    with closing(sqlite3.connect(traffic.folder / files.DATABASE, isolation_level=None)) as one:
        one.execute("PRAGMA secure_delete = OFF")
        gone = sorted(traffic.live)[::2]
        for table in ("results", "evidence"):
            one.executemany(
                f"DELETE FROM {table} WHERE trace_id = ?", [(name.decode(),) for name in gone]
            )
        one.execute("DROP TABLE purging")
        one.execute("DELETE FROM meta WHERE name = ?", (OVERWRITTEN,))
        one.execute(f"PRAGMA user_version = {len(MIGRATIONS) - 1}")
    assert found(traffic.folder) & set(gone)
    traffic.store = traffic.open()
    for name in gone:
        del traffic.live[name]
    traffic.purge_some(1)
    assert found(traffic.folder) == set(traffic.live)
    traffic.store.close()


def test_a_log_that_another_program_has_moved_leaves_nothing_either(tmp_path: Path) -> None:
    traffic = Traffic(tmp_path / "data", 1)
    traffic.add(200)
    traffic.store.close()
    (traffic.folder / "lock").write_text("open")  # as of a process that was killed
    page = bytearray((traffic.folder / files.DATABASE).read_bytes())
    place = _gap_of_a_leaf(page)
    page[place : place + 26] = b"<" + b"0" * 24 + b">"
    (traffic.folder / files.DATABASE).write_bytes(page)
    traffic.store = traffic.open()
    traffic.purge_some(1)
    assert found(traffic.folder) == set(traffic.live)
    traffic.store.close()


def _gap_of_a_leaf(raw: bytearray) -> int:
    """A place between the cell pointers and the cells of some page of a table."""
    for at in range(files.PAGE_BYTES, len(raw), files.PAGE_BYTES):
        cells = int.from_bytes(raw[at + 3 : at + 5])
        end = int.from_bytes(raw[at + 5 : at + 7])
        begin = 8 + 2 * cells
        if raw[at] == 0x0D and end - begin > 40:
            return at + begin + 4
    raise AssertionError("found no page with a gap")


def _statements() -> Iterator[tuple[str, tuple[object, ...]]]:
    for table in ("results", "turns", "traces", "awaited", "evidence"):
        yield choosing.of_trace(table), ("",)
        yield rows.of_traces(table), (0,)
    yield choosing.TENANTS, ()
    yield choosing.OF_SCENARIO, ("", "", "")
    yield rows.OLD_RESULTS, (0.0, 1)


def test_every_statement_finds_rows_by_an_index(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "data")
    store.open()
    with closing(files.connect_reader(tmp_path / "data")) as reader:
        for statement, values in _statements():
            plan = reader.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
            others = [step for *_, step in plan if step.startswith("SEARCH t ")]
            assert all("(trace_id=?" in step for step in others), (statement, plan)
            scans = [step for *_, step in plan if step.startswith("SCAN")]
            assert all(step.split()[1] in ("o", "tenants", "(subquery-1)") for step in scans), (
                statement,
                plan,
            )
    store.close()

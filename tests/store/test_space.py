"""What takes space in the store: requests, and everything that is kept of them. The store is full
when it says so, and only requests can fill it for long.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from structlog.testing import capture_logs

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.pipeline_events import Changes, StoredTrace, Withdrawn
from pathgauge.collector.core.references import Match
from pathgauge.collector.core.traces import TraceSnapshot
from pathgauge.collector.store import Delivery, Progress, Selection, journal, removal, retention
from pathgauge.collector.store.journal import Packer
from pathgauge.collector.store.recent_results import WindowBounds
from pathgauge.collector.store.retention import Retention
from pathgauge.collector.store.sqlite import files, space
from pathgauge.collector.store.sqlite.journal_space import row_space
from pathgauge.collector.store.sqlite.space import FULL
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.types import Invocation
from support.examples import examples

MIB = 1 << 20
CAPACITY = 4 * MIB
HALF = CAPACITY // 2
ORIGIN = Origin("", "grpc", "traces", "protobuf")
FAT = Evaluator((Criterion("x" * 10_000, Failure(), None),))
"""Each result of it takes 10 kB, for which SQLite needs two pages."""


def evaluation(name: str, revision: int = 0) -> Evaluation:
    invocation = Invocation(trace_id=trace_id(name), span_id=name, dialect="genai")
    return FAT.evaluate(invocation, Match(unmatched="no_scenario_id"), revision=revision)


def request(name: str, size: int = 0) -> Batch:
    one = span(name, name, trace=name)
    return Batch(ORIGIN, random.Random(name).randbytes(size), (one,))


class Life:
    """A store that is open."""

    def __init__(self, folder: Path, max_bytes: int, windows: WindowBounds) -> None:
        self.folder = folder
        self.store = SqliteStore(folder, Retention(max_bytes), windows)
        self.store.open()
        self.delivered: list[Delivery] = []
        self.store.start(self._deliver, lambda: 0.0)

    def commit(
        self, *evaluations: Evaluation | Withdrawn, ago: float = 0.0, **changes: object
    ) -> None:
        """Store evaluations that were made so many seconds ago."""
        progress = Progress(0, 0.0, time.time() - ago, evaluations, Changes(**changes))  # type: ignore[arg-type]
        assert self.store.commit(progress)

    def send(self, *batches: Batch) -> list[bool]:
        async def send() -> list[bool]:
            return await asyncio.gather(*(self.store.append(batch) for batch in batches))

        return asyncio.run(send())

    def results(self) -> list[tuple[str, int, int]]:
        """Span id, revision and whether it was withdrawn, of all results in the store."""
        with closing(sqlite3.connect(self.folder / files.DATABASE)) as connection:
            select = "SELECT span_id, revision, withdrawn FROM results ORDER BY id"
            return connection.execute(select).fetchall()

    def _deliver(self, delivery: Delivery) -> bool:
        self.delivered.append(delivery)
        return True


Live = Callable[..., Life]


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    """Opens the store, after closing it. Its write-ahead log is small, and is always measured."""
    monkeypatch.setattr(files, "WAL_PAGES", 20)
    monkeypatch.setattr(space, "MEASURE_S", 0.0)
    lives: list[Life] = []

    def live(max_bytes: int = CAPACITY, windows: WindowBounds | None = None) -> Life:
        end()
        lives.append(Life(tmp_path / "data", max_bytes, windows or WindowBounds()))
        return lives[-1]

    def end() -> None:
        for one in lives:
            one.store.close()

    yield live
    end()


def many(count: int, begin: int = 0) -> list[Evaluation]:
    return [evaluation(str(number)) for number in range(begin, begin + count)]


def test_results_that_windows_need_are_given_back_when_they_alone_fill_the_store(
    live: Live,
) -> None:
    life = live()
    life.commit(*many(400))
    usage = life.store.usage()
    assert (usage.state, usage.reason, usage.excess > HALF) == ("full", FULL, True)
    assert life.send(request("refused")) == [False]
    for _ in range(3):
        life.commit()
    usage = life.store.usage()
    assert (usage.state, usage.reason, usage.excess) == ("ok", None, 0)
    assert HALF - CAPACITY // 8 < usage.kept <= HALF
    assert life.send(request("accepted")) == [True]
    left = [name for name, _, _ in life.results()]
    assert left == [str(number) for number in range(400 - len(left), 400)]
    assert usage.results_removed == {"age": 0, "space": 400 - len(left)}
    for number in range(12):  # some more fit in
        life.commit(evaluation(f"more {number}"))
    assert life.store.usage().results_removed == usage.results_removed


def test_a_store_that_was_full_of_results_accepts_requests_soon_after_a_restart(
    live: Live,
) -> None:
    live(max_bytes=64 * MIB).commit(*many(400))
    life = live()
    assert life.store.usage().state == "full"
    assert life.send(request("refused")) == [False]
    life.commit()
    assert life.send(request("accepted")) == [True]
    assert life.store.usage().state == "ok"
    assert live().send(request("accepted at once")) == [True]


def test_results_never_take_more_than_their_half(live: Live) -> None:
    life = live()
    for begin in range(0, 1000, 10):
        life.commit(*many(10, begin))
        usage = life.store.usage()
        assert (usage.state, usage.kept < HALF + CAPACITY // 16) == ("ok", True)
    assert life.send(*(request(str(number), MIB // 8) for number in range(12))) == [True] * 12


def test_requests_do_not_push_out_results_that_have_space(live: Live) -> None:
    life = live()
    life.commit(*many(50))
    sent = 0
    while life.send(request(str(sent), 10_000)) == [True]:
        sent += 1
    assert 200 < sent < 400
    life.commit()
    while life.send(request(str(sent), 10_000)) == [True]:  # the log may be shorter now
        sent += 1
    assert sent < 400
    usage = life.store.usage()
    assert (usage.state, usage.excess, len(life.results())) == ("full", 0, 50)


def test_results_that_no_window_needs_go_first(live: Live) -> None:
    windows = WindowBounds(max_age_s=600.0)
    live(windows=windows).commit(*many(100), ago=500.0)
    live(windows=windows).commit(*many(10, 100), ago=700.0)
    life = live(windows=windows)
    life.commit(*many(150, 110))
    life.commit()
    assert [name for name, _, _ in life.results()] == [*map(str, [*range(100), *range(110, 260)])]
    assert life.store.usage().results_removed == {"age": 0, "space": 10}
    life.commit()
    assert life.results()[0][0] != "0"


def test_what_is_removed_is_counted_by_reason_and_only_if_it_was(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = live()
    life.commit(*many(3), ago=8 * 86_400.0)
    monkeypatch.setattr(retention, "CLEAN_S", 0.0)
    life = live()

    class Full(sqlite3.OperationalError):
        sqlite_errorcode = sqlite3.SQLITE_FULL

    def fail(*_: object) -> None:
        raise Full

    with monkeypatch.context() as patched:
        patched.setattr(files, "give_up_reserve", lambda _: False)
        patched.setattr(removal, "drop_trace_states", fail)
        assert not life.store.commit(Progress(0, 0.0, time.time()))
    assert life.store.usage().results_removed == {"age": 0, "space": 0}
    life.commit()
    assert life.store.usage().results_removed == {"age": 3, "space": 0}


def test_a_full_disk_is_not_called_writable_when_results_are_stored_in_the_reserve(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = live()
    monkeypatch.setattr(retention, "CLEAN_S", 0.0)
    drop = removal.drop_trace_states

    class Full(sqlite3.OperationalError):
        sqlite_errorcode = sqlite3.SQLITE_FULL

    def fail_while_there_is_a_reserve(connection: sqlite3.Connection, *limits: int) -> int:
        if (life.folder / "reserve").exists():
            raise Full("database or disk is full")
        return drop(connection, *limits)

    monkeypatch.setattr(removal, "drop_trace_states", fail_while_there_is_a_reserve)
    monkeypatch.setattr(files, "free_bytes", lambda _: 0)
    with capture_logs() as logs:
        life.commit(evaluation("in the reserve"))
    full = life.store.usage()
    assert (full.state, "its disk is full" in (full.reason or "")) == ("full", True)
    assert [line["event"] for line in logs] == [
        "the store cannot be written to; senders are told to retry"
    ]
    with capture_logs() as logs:
        life.commit()
    assert life.store.usage().state == "ok"
    assert [line["event"] for line in logs] == ["the store accepts requests again"]


def test_superseded_revisions_of_an_earlier_version_go_before_anything_else(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "_MAX_ROWS", 100)
    life = live(max_bytes=64 * MIB)
    life.commit(*many(20))
    with monkeypatch.context() as patched:
        patched.setattr("pathgauge.collector.store.results._delete_revisions", lambda *_: None)
        for revision in range(1, 30):
            life.commit(*(evaluation(str(number), revision) for number in range(20)))
    assert len(life.results()) == 600
    life = live(max_bytes=2 * MIB)  # empty tables and indexes take a third of it
    assert life.store.usage().state == "full"
    for _ in range(10):
        life.commit()
    usage = life.store.usage()
    assert (usage.state, usage.excess, usage.results_removed) == ("ok", 0, {"age": 0, "space": 0})
    needed = {(str(number), revision, 0) for revision in (0, 29) for number in range(20)}
    assert needed <= set(life.results())
    assert len(life.results()) < 100


def test_of_a_result_the_first_and_the_newest_revision_are_kept(live: Live) -> None:
    life = live()
    life.commit(evaluation("a"), evaluation("b"), evaluation("a", 1), evaluation("a", 2))
    assert sorted(life.results()) == [("a", 0, 0), ("a", 2, 0), ("b", 0, 0)]
    life.commit(evaluation("b", 1), evaluation("a", 3))
    life.commit(evaluation("a", 4))
    assert sorted(life.results()) == [("a", 0, 0), ("a", 4, 0), ("b", 0, 0), ("b", 1, 0)]


def test_a_withdrawn_result_that_is_published_again_is_as_new(live: Live) -> None:
    life = live()
    life.commit(evaluation("a"), evaluation("a", 1))
    life.commit(Withdrawn(evaluation("a").key))
    assert life.results() == [("a", 0, 1), ("a", 1, 1)]
    life.commit(evaluation("a"), Withdrawn(evaluation("a").key), evaluation("a"))
    assert life.results() == [("a", 0, 0)]
    life.commit(evaluation("a", 1), Withdrawn(evaluation("a").key))
    assert life.results() == [("a", 0, 1), ("a", 1, 1)]


def test_states_of_traces_take_no_more_than_an_eighth(live: Live) -> None:
    life = live()
    life.commit(*many(20))
    fingerprints = {f"{number:016x}": ("f" * 24, 0) for number in range(1000)}
    for number in range(100):
        snapshot = TraceSnapshot(("", trace_id(str(number))), (), 0.0, 0.0, closed_at=1.0)
        life.commit(traces=(StoredTrace(snapshot, fingerprints),))
    for _ in range(3):
        life.commit()
    usage = life.store.usage()
    assert (usage.state, usage.excess) == ("ok", 0)
    assert len(life.results()) == 20
    with closing(sqlite3.connect(life.folder / files.DATABASE)) as connection:
        [left, newest, size] = connection.execute(
            "SELECT count(*), max(id), sum(length(known)) FROM traces"
        ).fetchone()
    assert newest == 100
    assert 5 < left < 35
    assert size <= usage.kept <= HALF


def test_the_newest_states_of_traces_are_kept(live: Live) -> None:
    life = live(max_bytes=64 * MIB)
    fingerprints = {f"{number:016x}": ("f" * 24, 0) for number in range(1000)}
    snapshots = [
        TraceSnapshot(("", str(number)), (), 0.0, 0.0, closed_at=1.0) for number in range(10)
    ]
    life.commit(traces=tuple(StoredTrace(snapshot, fingerprints) for snapshot in snapshots))
    with closing(sqlite3.connect(life.folder / files.DATABASE, isolation_level=None)) as connection:
        [size] = connection.execute("SELECT length(known) FROM traces LIMIT 1").fetchone()
        dropped = [
            removal.drop_large_trace_states(connection, max_bytes, max_rows=3)
            for max_bytes in (20 * size, int(6.5 * size), int(6.5 * size), 4 * size)
        ]
        left = [trace for (trace,) in connection.execute("SELECT trace_id FROM traces ORDER BY id")]
    assert dropped == [0, 3, 1, 3]
    assert left == ["7", "8", "9"]


def test_a_request_that_does_not_fit_makes_the_store_full_until_another_fits(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = live()
    assert life.send(request("large", CAPACITY)) == [False]
    assert (life.store.usage().state, life.store.usage().reason) == ("full", FULL)
    assert life.store.usage().needs_commit
    assert life.send(request("small")) == [True]
    assert life.store.usage().state == "ok"
    assert life.send(request("large", CAPACITY)) == [False]
    monkeypatch.setattr(space, "REFUSED_S", 0.0)  # nothing is sent for so long
    assert life.store.usage().state == "ok"


def test_requests_count_before_they_are_measured(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    life = live()
    life.send(request("measured"))
    life.commit()
    monkeypatch.setattr(space, "MEASURE_S", 3600.0)
    before = life.store.usage().used
    assert life.send(*(request(str(number), 10_000) for number in range(20))) == [True] * 20
    assert life.store.usage().used >= before + 200_000


def test_space_that_is_freed_is_measured_at_once(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    live(max_bytes=64 * MIB).commit(*many(200))
    monkeypatch.setattr(space, "MEASURE_S", 3600.0)
    life = live()
    before = life.store.usage().excess
    life.commit()
    assert before > life.store.usage().excess == 0


def test_what_cannot_be_removed_is_not_searched_all_the_time(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches = []
    real = removal.drop_large_trace_states

    def search(connection: sqlite3.Connection, max_bytes: int, max_rows: int) -> int:
        searches.append(max_bytes)
        return real(connection, max_bytes, max_rows)

    monkeypatch.setattr(removal, "drop_large_trace_states", search)
    life = live(max_bytes=8 * MIB)
    invocation = Invocation(
        "trace", "s", "test", conversation_id="c", scenario_id="s", user_input="x" * 5 * MIB
    )
    life.commit(turns=(StoredTurn(invocation, 0.0),))
    for _ in range(5):
        life.commit()
    assert life.store.usage().excess > 0
    assert searches == [MIB]
    assert life.send(request("accepted")) == [True]


def test_a_full_store_is_logged_when_it_becomes_full_and_when_it_has_space_again(
    live: Live,
) -> None:
    with capture_logs() as logs:
        life = live()
        life.commit(*many(400))
        life.commit()
        life.commit(*many(400, 400))  # within a minute
        life.commit()
    events = [entry["event"] for entry in logs]
    assert events == [FULL, "the store has space again"]


def test_a_log_that_was_large_once_does_not_count_for_ever(live: Live) -> None:
    life = live(max_bytes=64 * MIB)
    life.commit(*many(400))
    usage = life.store.usage()
    assert usage.kept > 3 * MIB
    assert usage.write_ahead <= 2 * 20 * files.PAGE_BYTES
    life.commit(evaluation("more"))
    usage = life.store.usage()
    assert usage.used >= usage.write_ahead + usage.kept
    log = life.folder / f"{files.DATABASE}-wal"
    assert 0 < log.stat().st_size == usage.write_ahead


def test_requests_count_as_requests_and_nothing_else_does(live: Live) -> None:
    life = live(max_bytes=64 * MIB)
    empty = life.store.usage().kept
    life.send(*(request(str(number), 5_000 * number) for number in range(30)))
    life.commit()
    usage = life.store.usage()
    assert usage.used - usage.write_ahead > 2 * MIB
    assert usage.kept <= empty + 4 * files.PAGE_BYTES
    life.commit(*many(100))
    kept = life.store.usage().kept
    assert 100 * 10_000 < kept < 100 * 20_000
    life = live(max_bytes=64 * MIB)
    assert abs(life.store.usage().kept - kept) <= 4 * files.PAGE_BYTES
    life.commit(released_rows=tuple(range(1, 31)))
    usage = life.store.usage()
    assert abs(usage.kept - kept) <= 8 * files.PAGE_BYTES
    assert usage.requests == 0


def taken(sizes: Sequence[int]) -> tuple[int, int]:
    """The calculated and the real space of rows with bodies of these sizes."""
    packer = Packer()
    noise = random.Random(1)
    rows = [
        packer.pack(row, 12.34, 1.7e9 + row / 7, Batch(ORIGIN, noise.randbytes(size)))
        for row, size in enumerate(sizes, 1)
    ]
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute(f"PRAGMA page_size = {files.PAGE_BYTES}")
        connection.executescript("CREATE TABLE other (x)")
        connection.executescript(
            "CREATE TABLE journal (id INTEGER PRIMARY KEY, at REAL, wall REAL, tenant TEXT,"
            " form TEXT, traces BLOB, head_crc INTEGER, body_crc INTEGER, body BLOB)"
        )
        before = connection.execute("PRAGMA page_count").fetchone()[0]
        journal.append(connection, rows)
        after = connection.execute("PRAGMA page_count").fetchone()[0]
        calculated = sum(row_space(journal.row_size(row)) for row in rows)
        assert journal.count(connection) == (len(rows), calculated)
        return calculated, (after - before) * files.PAGE_BYTES


@pytest.mark.parametrize(
    "size", [0, 300, 2_600, 2_800, 4_000, 4_200, 8_000, 8_060, 8_100, 9_000, 16_400, 30_000, 10**6]
)
def test_the_space_of_equal_requests_is_known(size: int) -> None:
    calculated, real = taken([size] * max(40, 400_000 // (size + 100)))
    assert calculated == pytest.approx(real, rel=0.1)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.integers(1000, 40_000), min_size=50, max_size=80))
def test_the_space_of_different_requests_is_known_roughly(
    sizes: list[int],
) -> None:
    calculated, real = taken(sizes)
    assert 0.9 * real - 2 * files.PAGE_BYTES <= calculated <= 1.4 * real


def test_rows_that_are_lost_with_a_damaged_file_count_no_more(live: Live) -> None:
    life = live()
    life.send(*(request(str(number), 20_000) for number in range(20)))
    life.commit()  # after the writing thread has measured
    before = life.store.usage()
    assert before.requests == 20
    database = life.store._database
    with closing(sqlite3.connect(life.folder / files.DATABASE)) as connection:
        connection.execute("DELETE FROM journal WHERE id > 5")
        connection.commit()
    database.handle(sqlite3.OperationalError("as if the file had been replaced"))
    life.commit()
    life.commit()
    usage = life.store.usage()
    assert (usage.state, usage.requests) == ("ok", 5)
    assert abs(usage.kept - before.kept) <= 4 * files.PAGE_BYTES


def test_usage_says_by_how_much_too_much_is_kept(live: Live) -> None:
    usage = replace(live().store.usage(), kept=HALF + 5)
    assert (usage.excess, usage.needs_commit) == (5, True)
    assert replace(usage, kept=HALF).needs_commit is False


def test_the_write_ahead_log_stays_as_short_after_a_purge_as_before(live: Live) -> None:
    """Purges let it grow, and its size counts as used."""
    life = live()

    def longest(begin: int) -> int:
        lengths = []
        for number in range(begin, begin + 50):
            life.commit(evaluation(str(number)))
            lengths.append(life.store.usage().write_ahead)
        return max(lengths)

    before = longest(0)
    assert life.store.purge(Selection(trace_id=trace_id("0"))).unfinished is None
    assert longest(50) <= before

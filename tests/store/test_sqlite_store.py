"""The store on disk: acknowledged requests and committed results are there after a restart, also
from a damaged file.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import count
from pathlib import Path
from random import randbytes
from shutil import rmtree
from tempfile import TemporaryDirectory

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans
from structlog.testing import capture_logs

from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Result
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.pipeline_events import Changes, Judged, StoredTrace
from pathgauge.collector.core.references import Match
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.traces import Recalled, TraceSnapshot
from pathgauge.collector.store import Delivery, Progress, Restored, StoreError
from pathgauge.collector.store.resharding import reshard
from pathgauge.collector.store.retention import Retention
from pathgauge.collector.store.schema import MIGRATIONS, checksum
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.cost.latency_and_failure import Failure
from pathgauge.scorers.types import Invocation, Score

PAGE_BYTES = 8192
ORIGIN = Origin("", "grpc", "traces", "protobuf")


def batch(*spans: Span, tenant: str = "") -> Batch:
    scope = ScopeSpans(spans=[span.proto for span in spans])
    request = ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[scope])])
    return Batch(ORIGIN._replace(tenant=tenant), request.SerializeToString(), spans=spans)


class Life:
    """A running store. Every reading of its clock adds a second."""

    def __init__(self, folder: Path, retention: Retention | None = None) -> None:
        self.store = SqliteStore(folder, retention)
        self.restored: Restored = self.store.open()
        self.recent = list(self.store.recent(lambda *names: True))
        self.delivered: list[Delivery] = []
        clock = count(int(self.restored.at) + 1)
        self.store.start(self._deliver, lambda: float(next(clock)))

    def _deliver(self, delivery: Delivery) -> bool:
        self.delivered.append(delivery)
        return True

    async def append(self, *batches: Batch) -> list[bool]:
        return await asyncio.gather(*(self.store.append(one) for one in batches))


@pytest.fixture
def live(tmp_path: Path) -> Iterator[Callable[..., Life]]:
    """Starts a store, after stopping the last one."""
    lives: list[Life] = []

    def live(retention: Retention | None = None) -> Life:
        end()
        lives.append(Life(tmp_path / "data", retention))
        return lives[-1]

    def end() -> None:
        for one in lives:
            one.store.close()

    yield live
    end()


Live = Callable[..., Life]


async def test_what_was_acknowledged_is_delivered_in_order_and_read_again_by_the_next_process(
    live: Live,
) -> None:
    life = live()
    sent = [
        batch(span("a", "one", {"n": n}, trace=str(n), tenant=f"t{n % 2}"), tenant=f"t{n % 2}")
        for n in range(100)
    ]
    assert await life.append(*sent) == [True] * 100
    assert [(delivery.row, delivery.batch) for delivery in life.delivered] == list(
        enumerate(sent, 1)
    )
    life = live()
    assert (life.restored.row, life.restored.last_row, life.restored.requests) == (0, 100, 100)
    again = life.store.read(0)
    assert [(delivery.row, delivery.batch) for delivery in again] == list(enumerate(sent, 1))
    assert [[delivery.row for delivery in life.store.read(after)] for after in (98, 100)] == [
        [99, 100],
        [],
    ]


async def test_of_what_is_read_again_one_request_at_a_time_is_decoded(live: Live) -> None:
    compressible = batch(span("a", "one", {"text": "x" * 1_000_000}))
    assert all(await live().append(*(compressible for _ in range(50))))
    store = live().store
    tracemalloc.start()
    try:
        assert sum(1 for _ in store.read(0)) == 50
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


async def test_a_body_that_is_not_as_it_was_sent_is_read_whole_and_counted_as_it_was_sent(
    live: Live,
) -> None:
    large = replace(batch(span("a", "one", {"text": "x" * 5_000_000})), sent_as="json")
    assert await live().append(large) == [True]
    [again] = live().store.read(0)
    assert again.batch == large


async def test_a_trace_is_recalled_from_its_rows_for_its_tenant_alone(live: Live) -> None:
    life = live()
    own, other, foreign = (
        span("a", "own"),
        span("b", "other", trace="other"),
        span("c", "foreign", tenant="x"),
    )
    await life.append(batch(own, other), batch(foreign, tenant="x"))
    arrived = life.delivered[0].at
    key = ("", trace_id("trace"))
    assert list(life.store.recall(key, (1, 2))) == [Recalled(arrived, [own], [])]


async def test_progress_is_restored_as_it_was_committed(live: Live) -> None:
    life = live()
    await life.append(
        batch(span("a", "one", trace="kept")),
        batch(span("b", "two", trace="gone")),
        batch(span("c", "new", trace="new")),
    )
    arrived = life.delivered[0].at
    key = ("", trace_id("kept"))
    kept = StoredTrace(
        TraceSnapshot(key, (1,), arrived, arrived, closed_at=50.0, completed=True),
        {"a": ("digest", 2)},
    )
    progress = Progress(
        2,
        60.0,
        1e9,
        (),
        Changes((kept,), (2,)),
        (Row(("counter", "x"), (3,)), Row(("gone",), (1.5,))),
    )
    assert life.store.commit(progress)
    assert life.store.commit(Progress(2, 61.0, 1e9, counts=(Row(("gone",), None),)))
    restored = live().restored
    counts = (Row(["counter", "x"], [3]),)
    size = restored.request_bytes
    assert restored == Restored(2, 3, 2, 61.0, (kept,), counts=counts, request_bytes=size)
    assert 0 < size < 1000


def test_a_second_collector_on_one_store_is_refused(live: Live, tmp_path: Path) -> None:
    live()
    with pytest.raises(
        StoreError, match="data in use, expected a separate folder for every collector"
    ):
        SqliteStore(tmp_path / "data").open()


def test_a_store_of_the_first_version_is_brought_to_this_one_and_keeps_its_rows(
    live: Live, tmp_path: Path
) -> None:
    live().store.close()
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE)) as connection, connection:
        connection.executescript("DROP TABLE awaited; PRAGMA user_version = 1")
        connection.execute(
            "INSERT INTO quarantine (at, source, reason) VALUES (1, 'somewhere', 'kept')"
        )
    live()
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE)) as connection, connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (len(MIGRATIONS),)
        assert connection.execute("SELECT count(*) FROM awaited").fetchone() == (0,)
        assert connection.execute("SELECT reason FROM quarantine").fetchall() == [("kept",)]


@pytest.fixture
def ordinary_user() -> Iterator[int]:
    """The id of a user who is not root, which this process is for the time of the test."""
    before = os.geteuid()
    os.seteuid(before or 65_534)
    yield os.geteuid()
    os.seteuid(before)


@pytest.mark.parametrize("name", ["lock", files.DATABASE])
def test_a_file_that_another_user_left_is_named_with_its_owner(
    name: str, ordinary_user: int
) -> None:
    with TemporaryDirectory() as folder:  # that of pytest is closed to other users
        life = SqliteStore(Path(folder))
        life.open()
        life.close()
        left = Path(folder) / name
        left.chmod(0)
        with pytest.raises(StoreError) as caught:
            reshard(Path(folder), 0)
    assert str(caught.value) == (
        f"store.path: found {left} of user {ordinary_user}, expected a file that user"
        f" {ordinary_user} can read and write"
    )


def test_a_store_whose_folder_was_removed_can_be_closed(live: Live, tmp_path: Path) -> None:
    store = live().store
    rmtree(tmp_path / "data")
    store.close()


def test_only_this_user_can_read_the_files(live: Live, tmp_path: Path) -> None:
    live()
    folder = tmp_path / "data"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert {path.name: oct(path.stat().st_mode & 0o777) for path in folder.iterdir()} == {
        name: "0o600"
        for name in (
            "lock",
            "reserve",
            files.DATABASE,
            f"{files.DATABASE}-wal",
            f"{files.DATABASE}-shm",
        )
    }


def test_a_backup_that_others_could_read_is_closed_to_them(live: Live, tmp_path: Path) -> None:
    live().store.close()
    folder = tmp_path / "data"
    backup = (folder / files.DATABASE).read_bytes()
    rmtree(folder)
    folder.mkdir()
    for name in (files.DATABASE, f"{files.DATABASE}.damaged-1"):
        (folder / name).write_bytes(backup)
        (folder / name).chmod(0o644)
    live()
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in folder.glob("pathgauge.db*")}
    assert modes == {
        f"{files.DATABASE}{suffix}": "0o600" for suffix in ("", "-wal", "-shm", ".damaged-1")
    }


@pytest.mark.parametrize(
    "column",
    ["body = x'00'", "tenant = 'other'", "traces = x''", "at = 0", "form = 'grpc logs protobuf'"],
)
async def test_a_row_that_was_changed_is_set_aside_and_its_neighbours_are_read(
    live: Live, tmp_path: Path, column: str
) -> None:
    life = live()
    await life.append(*(batch(span("a", "one", trace=str(number))) for number in range(3)))
    life.store.commit(Progress(1, 10.0, 0.0))
    life.store.close()
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE)) as connection, connection:
        connection.execute(f"UPDATE journal SET {column} WHERE id = 2")
    with capture_logs() as logs:
        life = live()
        assert [delivery.row for delivery in life.store.read(0)] == [1, 3]
    assert [(entry["event"], entry["row"]) for entry in logs if "row" in entry] == [
        ("damaged row of the store quarantined", 2)
    ]
    assert life.store.usage().quarantined == 1


@pytest.mark.parametrize(
    ("table", "change"),
    [
        ("counts", "state = '[4]'"),
        ("results", "agent = 'other'"),
        ("traces", "known = replace(known, 'true', 'false')"),
    ],
)
def test_what_was_changed_of_progress_is_set_aside_and_told(
    live: Live, tmp_path: Path, table: str, change: str
) -> None:
    life, now = live(), time.time()
    known = tuple(
        StoredTrace(
            TraceSnapshot(("", trace_id(name)), (), 1.0, 1.0, closed_at=2.0, completed=True), {}
        )
        for name in "ab"
    )
    evaluations = [
        Evaluation(Invocation(trace_id(name), name, "genai"), Match(), (), "idle") for name in "ab"
    ]
    counts = [Row(("counter", name), (3,)) for name in "ab"]
    assert life.store.commit(Progress(0, 10.0, now, evaluations, Changes(known, ()), counts))
    life.store.close()
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE)) as connection, connection:
        connection.execute(f"UPDATE {table} SET {change} WHERE id = 1")
    with capture_logs() as logs:
        life = live()
    restored = life.restored
    left = {
        "counts": len(restored.counts),
        "results": len(life.recent),
        "traces": len(restored.traces),
    }
    assert left == {"counts": 2, "results": 2, "traces": 2} | {table: 1}
    assert [(entry["table"], entry["row"]) for entry in logs if "row" in entry] == [(table, 1)]
    assert life.store.usage().quarantined == 1
    assert live().store.usage().quarantined == 0


@pytest.mark.parametrize("value", ["0", "1000000", "'text'"])
async def test_a_place_in_the_journal_that_was_changed_counts_nothing_twice(
    live: Live, tmp_path: Path, value: str
) -> None:
    life = live()
    await life.append(*(batch(span("a", "one", trace=str(number))) for number in range(3)))
    life.store.commit(Progress(2, 10.0, 0.0))
    life.store.close()
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE)) as connection, connection:
        connection.execute(f"UPDATE meta SET value = {value} WHERE name = 'row'")
    with capture_logs() as logs:
        assert live().restored.row == 3
    assert [entry["log_level"] for entry in logs] == ["error"]


ABSURD = 1.8550765783485829e307


async def arrivals(life: Life) -> list[float]:
    """Send three requests one after the other; returns their arrival times."""
    for number in range(3):
        await life.append(batch(span("a", "one", trace=str(number))))
    return [delivery.at for delivery in life.delivered]


@pytest.mark.parametrize("taken_in", [0, 3])
@pytest.mark.parametrize("damaged", [2, 3])
@pytest.mark.parametrize("place", ["sound", "damaged"])
async def test_a_time_that_was_changed_in_the_journal_is_not_reached(
    live: Live, tmp_path: Path, taken_in: int, damaged: int, place: str
) -> None:
    life = live()
    times = await arrivals(life)
    life.store.commit(Progress(taken_in, times[0], 0.0))
    life.store.close()
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE)) as connection, connection:
        connection.execute(f"UPDATE journal SET at = {ABSURD} WHERE id = {damaged}")
        if place == "damaged":
            connection.execute("UPDATE meta SET value = 1e9 WHERE name = 'at'")
    with capture_logs():
        life = live()
        assert life.restored.at == max(at for row, at in enumerate(times, 1) if row != damaged)
        assert [delivery.row for delivery in life.store.read(0)] == [
            row for row in (1, 2, 3) if row != damaged
        ]
    assert life.store.usage().quarantined == 1


@pytest.mark.parametrize("absurd", [ABSURD, float("inf"), -1.0])
async def test_an_absurd_time_that_has_its_checksum_is_damage(
    live: Live, tmp_path: Path, absurd: float
) -> None:
    life = live()
    times = await arrivals(life)
    life.store.commit(Progress(2, times[0], 0.0))
    life.store.close()
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE)) as connection, connection:
        connection.executemany(
            "UPDATE meta SET value = ? WHERE name = ?",
            [(absurd, "at"), (checksum(2, absurd), "crc")],
        )
        tenant, form, traces = connection.execute(
            "SELECT tenant, form, traces FROM journal WHERE id = 3"
        ).fetchone()
        crc = checksum(3, absurd, tenant, form, traces.hex())
        connection.execute("UPDATE journal SET at = ?, head_crc = ? WHERE id = 3", (absurd, crc))
    with capture_logs() as logs:
        life = live()
    assert (life.restored.row, life.restored.at) == (2, times[1])
    assert [(entry["log_level"], entry.get("row"), entry.get("at")) for entry in logs] == [
        ("error", 3, None),
        ("error", None, absurd),
    ]


async def test_a_number_that_was_changed_in_the_journal_leaves_room_for_others(
    live: Live, tmp_path: Path
) -> None:
    life = live()
    await arrivals(life)
    life.store.commit(Progress(1, 10.0, 0.0))
    life.store.close()
    with closing(sqlite3.connect(tmp_path / "data" / files.DATABASE)) as connection, connection:
        connection.execute(f"UPDATE journal SET id = {2**63 - 1} WHERE id = 3")
    with capture_logs():
        life = live()
    assert (life.restored.row, life.restored.last_row) == (1, 2)
    assert await life.append(batch(span("b", "two"))) == [True]
    assert [delivery.row for delivery in live().store.read(0)] == [1, 2, 3]


async def test_what_can_be_read_of_a_damaged_file_is_saved_and_work_goes_on(
    live: Live, tmp_path: Path
) -> None:
    life = live()
    sent = [
        batch(span("a", "one", {"n": bytes(20_000)}, trace=str(number))) for number in range(200)
    ]
    await life.append(*sent)
    life.store.close()
    database = tmp_path / "data" / files.DATABASE
    raw = bytearray(database.read_bytes())
    raw[: len(raw) // 20] = bytes(len(raw) // 20)
    database.write_bytes(raw)
    with capture_logs() as logs:
        life = live()
    assert [entry["event"] for entry in logs] == [
        "the store was damaged; all readable rows were recovered"
    ]
    assert await life.append(batch(span("b", "two"))) == [True]
    assert len(list((tmp_path / "data").glob("*.damaged-*"))) >= 1


async def test_a_page_that_cannot_be_read_costs_its_own_request_and_not_those_behind_it(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        files, "MAX_CHECKED_BYTES", 0
    )  # as if it were too large to be looked at when it is opened
    life = live()
    await life.append(
        *(
            batch(span("a", "one", {"n": randbytes(20_000)}, trace=str(number)))
            for number in range(20)
        )
    )
    life.store.close()
    database = tmp_path / "data" / files.DATABASE
    raw = bytearray(database.read_bytes())
    pages = len(raw) // PAGE_BYTES
    # The pages behind the first one of a large row begin with the number of the next.
    chained = [
        at
        for at in range(0, len(raw), PAGE_BYTES)
        if raw[at] == 0 and 0 < int.from_bytes(raw[at : at + 4]) < pages
    ]
    raw[chained[len(chained) // 2]] = 0x7F
    database.write_bytes(raw)
    life = live()
    with capture_logs():
        assert (
            len({delivery.row for delivery in await asyncio.to_thread(list, life.store.read(0))})
            == 19
        )


async def test_an_evaluation_that_cannot_be_stored_keeps_no_other_from_it(live: Live) -> None:
    life = live()
    bad, good = (
        Evaluation(Invocation(name, "a", dialect), Match(), (), "idle")
        for name, dialect in (("bad", "\ud800"), ("good", "genai"))
    )
    with capture_logs() as logs:
        assert life.store.commit(Progress(0, 1.0, time.time(), (bad, good)))
    assert [(entry["event"], entry["trace_id"]) for entry in logs] == [
        ("an evaluation cannot be stored", "bad")
    ]
    assert [recent.key for recent in live().recent] == [("", "good", "a")]


def test_windows_are_told_what_is_recent_the_last_recorded_first(live: Live) -> None:
    life, now = live(), time.time()
    for number, (name, ago) in enumerate(
        [("old", 7200), ("first", 1800), ("second", 1200), ("third", 600)]
    ):
        evaluation = Evaluation(Invocation(name, "a", "genai"), Match(), (), "idle")
        assert life.store.commit(Progress(0, float(number), now - ago, (evaluation,)))
    revised = Evaluation(
        Invocation("first", "a", "genai", agent="planner"), Match(), (), "idle", revision=1
    )
    assert life.store.commit(Progress(0, 9.0, now, (revised,)))
    expected = [
        ("third", "", now - 600),
        ("second", "", now - 1200),
        ("first", "planner", now - 1800),
    ]
    assert [(recent.key[1], recent.agent, recent.at) for recent in live().recent] == expected


async def test_what_a_judge_said_that_cannot_be_stored_keeps_nothing_else_from_it(
    live: Live,
) -> None:
    class Unwritten(float):
        """A number type of another library that is also a float."""

    life = live()
    first, second = (
        Evaluation(Invocation(name, "a", "genai"), Match(), (), "idle")
        for name in ("first", "second")
    )
    assert life.store.commit(Progress(0, 1.0, time.time(), (first,)))
    judged = replace(
        first,
        results=(
            Result(Criterion("judged", Failure(), judge="m@t"), Score(Unwritten(0.5)), "passed"),
        ),
    )
    with capture_logs() as logs:
        assert life.store.commit(
            Progress(0, 1.0, time.time(), (Judged(judged, first=True), second))
        )
    assert [(entry["event"], entry["trace_id"]) for entry in logs] == [
        ("an evaluation cannot be stored", "first")
    ]
    assert sorted(recent.key[1] for recent in live().recent) == ["first", "second"]


async def test_windows_are_told_which_judge_a_score_came_from(live: Live) -> None:
    life = live()
    criteria = [
        Criterion(name, Failure(), judge=judge)
        for name, judge in (("plain", ""), ("judged", "m@t"), ("silent", "m@t"))
    ]
    values = (Score(1.0), Score(0.5), Score.not_evaluated("judge_timeout"))
    results = tuple(
        Result(criterion, score, "passed")
        for criterion, score in zip(criteria, values, strict=True)
    )
    evaluation = Evaluation(Invocation("t", "a", "genai"), Match(), results, "idle")
    assert life.store.commit(Progress(0, 1.0, time.time(), (evaluation,)))
    assert [(recent.scores, recent.judges) for recent in live().recent] == [
        ({"plain": 1.0, "judged": 0.5}, {"judged": "m@t"})
    ]


async def test_a_store_that_is_full_refuses_from_the_start(live: Live) -> None:
    life = live(Retention(max_bytes=1))
    assert await life.append(batch(span("a", "one"))) == [False]


async def test_what_comes_after_the_end_is_refused(live: Live) -> None:
    life = live()
    life.store.close()
    assert await life.append(batch(span("a", "one"))) == [False]

"""The state of scorers moves to any other number of scorers. Nothing is lost, and nothing happens
twice, wherever a crash interrupts it.
"""

from __future__ import annotations

import gc
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.store import Progress, Selection, outbox
from pathgauge.collector.store.outbox import Acknowledged
from pathgauge.collector.store.resharding import (
    left_publications,
    reshard,
)
from pathgauge.collector.store.sqlite import files
from pathgauge.collector.store.sqlite.files import DATABASE
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.collector.testing import trace_id
from support.examples import examples
from support.scorer_state import view
from support.scorers import (
    SOME_STATE,
    TRACES,
    Scorers,
    agent_span,
    folders,
    is_turn,
    logs_request,
    request,
    run,
)
from support.thinning import thinned

CONVERSATIONS = ["", "", "one", "two", "three"]
TENANTS = ["", "a"]
SHAPES = [0, 1, 2, 4]


class Crash(BaseException):
    """The simulated end of the process."""


@contextmanager
def crash_before(step: int) -> Iterator[Callable[[], bool]]:
    """Allow only so many steps that change files. Yields whether there were more."""
    steps = count()
    crashed = False

    def counted(real: Callable[..., Any], counts: Callable[..., bool]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            nonlocal crashed
            if counts(*arguments) and next(steps) >= step:
                crashed = True
                raise Crash
            return real(*arguments, **options)

        return run

    def ends_or_begins(_: object, statement: str, *rest: object) -> bool:
        return statement.startswith(("BEGIN", "COMMIT", "VACUUM"))

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in (
            (os, "rename"),
            (os, "fsync"),
            (os, "unlink"),
            (os, "rmdir"),
            (Path, "mkdir"),
        ):
            patch.setattr(owner, name, counted(getattr(owner, name), lambda *_: True))
        execute = counted(files.Connection.execute, ends_or_begins)
        patch.setattr(files.Connection, "execute", execute)
        yield lambda: crashed


@contextmanager
def scorers() -> Iterator[Scorers]:
    with tempfile.TemporaryDirectory() as folder:
        running = Scorers(Path(folder) / "data")
        try:
            yield running
        finally:
            running.stop()


# What happens to a collector, except changes of its number of scorers.

_spans = st.builds(
    lambda trace, name, conversation, changed, parent: agent_span(
        f"{trace} {name}",
        trace=trace,
        conversation=conversation,
        start=name,
        text="changed" if changed else "",
        parent=f"{trace} {parent}" if parent < name else None,
    ),
    st.sampled_from(TRACES),
    st.integers(0, 2),
    st.sampled_from(CONVERSATIONS),
    st.booleans(),
    st.integers(0, 3),
)
_requests = st.one_of(
    st.builds(
        lambda spans, tenant, as_json: request(*spans, tenant=tenant, as_json=as_json),
        st.lists(_spans, min_size=1, max_size=8),
        st.sampled_from(TENANTS),
        st.booleans(),
    ),
    st.builds(
        lambda traces, without, own: logs_request(*traces, without_trace=without, own_events=own),
        st.lists(st.sampled_from(TRACES), max_size=5),
        st.integers(0, 3),
        st.integers(0, 2),
    ),
)
_steps = st.one_of(
    st.tuples(st.just("send"), _requests),
    st.tuples(st.just("send"), _requests),
    st.tuples(st.just("pass_time"), st.sampled_from([1.0, 7.0, 31.0])),
    st.tuples(st.just("work"), st.integers(0, 5)),
    st.tuples(st.just("relay"), st.integers(0, 3)),
    st.tuples(st.just("publish"), st.integers(0, 2)),
)


LAWS = settings(
    max_examples=examples(15),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)


@pytest.mark.slow
@LAWS
@given(
    st.lists(
        st.tuples(st.sampled_from(SHAPES), st.lists(_steps, max_size=8)), min_size=1, max_size=4
    ),
    st.sampled_from(SHAPES),
)
def test_the_next_processes_continue_with_the_same_state_however_many_they_are(
    lives: list[tuple[int, list[tuple[str, Any]]]], workers: int
) -> None:
    with scorers() as running:
        for last, steps in lives:
            running.start(last)
            run(running, steps)
            while running.relay():
                running.work()
            running.stop()
        before = view(running.main, last)
        assert view(running.main, workers) == before
        assert view(running.main, last) == before


@pytest.mark.slow
@LAWS
@given(
    st.lists(
        st.tuples(st.sampled_from(SHAPES), st.lists(_steps, max_size=6)), min_size=1, max_size=4
    )
)
def test_every_invocation_is_scored_as_if_the_number_of_scorers_had_never_changed(
    lives: list[tuple[int, list[tuple[str, Any]]]],
) -> None:
    with scorers() as expected, scorers() as running:
        expected.start(0)
        for workers, steps in lives:
            running.start(workers)
            run(running, steps)
            running.stop()
            run(expected, steps)
        running.start(workers)
        for one in (running, expected):
            one.finish()
        assert _outcome(running) == _outcome(expected)
        assert sorted(running.read_publications) == sorted(running.sent_publications)


def _outcome(done: Scorers) -> tuple[Any, ...]:
    telemetry = done.telemetry
    newest = {key: known for key, known in done.newest.items() if key not in done.withdrawn}
    counters = telemetry.accepted, telemetry.accepted_logs, telemetry.spans_assembled
    counts = [sorted(counter.items()) for counter in counters]
    return newest, done.conversations, counts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("last", "workers"),
    [(0, 2), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((2, 4), (2, 0)))],
)
# What crashes closes nothing, and Python 3.13 warns of that.
@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
def test_a_crash_at_any_step_leaves_either_the_old_or_the_new_state(
    tmp_path: Path, last: int, workers: int
) -> None:
    running = Scorers(tmp_path / "state")
    running.start(last)
    run(running, SOME_STATE)
    sent, read = running.sent_publications, running.read_publications
    running.stop()
    before = view(copied(running.main, tmp_path / "viewed"), last)
    assert all((before.traces, before.turns, before.pending, before.unprocessed))
    steps = 0
    while True:
        main = copied(running.main, tmp_path / f"crashed {steps}")
        with crash_before(steps) as crashed, suppress(Crash):
            reshard(main, workers, is_turn=is_turn)
        again = workers if steps % 3 else last  # the operator may also go back
        assert view(main, again) == before
        left = [int(body) for _, body, _ in left_publications(main, 0, 1 << 20)]
        if again == workers or left:
            assert sorted(left + read) == sent
        assert folders(main) <= 1
        if not crashed():
            break
        shutil.rmtree(main)
        steps += 1
    assert steps > 10
    gc.collect()


def copied(folder: Path, to: Path) -> Path:
    return Path(shutil.copytree(folder, to))


def test_without_a_change_nothing_is_opened_for_writing(running: Scorers) -> None:
    found = {path: path.stat() for path in running.main.rglob("*") if path.is_file()}
    first = reshard(running.main, 2)
    assert [folder.name for folder in first] == ["0", "1"]
    assert reshard(running.main, 2) == first
    assert {path: path.stat().st_mtime_ns for path in found} == {
        path: status.st_mtime_ns for path, status in found.items()
    }


def test_a_new_folder_is_for_one_process_from_the_start(tmp_path: Path) -> None:
    assert reshard(tmp_path / "new", 0) == []
    assert not (tmp_path / "new" / DATABASE).exists()
    made = reshard(tmp_path / "other", 3)
    assert [(folder / DATABASE).stat().st_mode & 0o777 for folder in made] == [0o600] * 3
    assert {folder.stat().st_mode & 0o777 for folder in made} == {0o700}


def test_results_stay_where_they_are_and_the_folders_vanish(running: Scorers) -> None:
    running.start(0)
    running.pass_time(7.0)
    running.work()
    running.stop()
    with closing(sqlite3.connect(running.main / DATABASE)) as connection:
        results = connection.execute("SELECT * FROM results ORDER BY id").fetchall()
    assert results
    [folder, _] = reshard(running.main, 2)
    with closing(sqlite3.connect(running.main / DATABASE)) as connection:
        assert connection.execute("SELECT * FROM results ORDER BY id").fetchall() == results
        for table in ("journal", "traces", "turns", "awaited"):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    reshard(running.main, 0)
    assert not folder.parent.exists()


def test_publications_that_were_left_are_read_once(running: Scorers) -> None:
    reshard(running.main, 0)
    left = left_publications(running.main, 0, 1)
    assert len(left) == 1
    with closing(sqlite3.connect(running.main / DATABASE)) as connection, connection:
        outbox.delete(connection, Acknowledged(publication=left[0].id))
    reshard(running.main, 3)
    others = left_publications(running.main, 0, 1 << 20)
    published = [int(body) for _, body, _ in (*left, *others)] + running.read_publications
    assert sorted(published) == running.sent_publications


@pytest.mark.parametrize(("first", "then"), [(0, 2), (2, 3), (2, 0)])
def test_a_purge_that_was_interrupted_is_finished_before_the_state_moves(
    first: int, then: int, tmp_path: Path
) -> None:
    with scorers() as running:
        running.start(first)
        running.send(request(*(agent_span(trace, trace=trace) for trace in TRACES[:4])))
        running.stop()
        stores = reshard(running.main, first) or [running.main]
        for folder in stores:
            _purge_in_vain(folder, trace_id(TRACES[0]))
        stores = reshard(running.main, then) or [running.main]
        held = frozenset().union(*map(_held, stores))
    assert held == {("", trace_id(trace)) for trace in TRACES[1:4]}


def _purge_in_vain(folder: Path, trace: str) -> None:
    """The purge is recorded, and then ends as if the process did."""
    store = SqliteStore(folder)
    store.open()
    store.start(lambda delivery: False, lambda: 0.0)
    with closing(sqlite3.connect(folder / DATABASE)) as connection, connection:
        for change in ("INSERT", "UPDATE", "DELETE"):
            connection.execute(
                f"CREATE TRIGGER broken_{change} BEFORE {change} ON journal"
                " BEGIN SELECT RAISE(ABORT, 'the end'); END"
            )
    store.purge(Selection(trace_id=trace), frozenset({("", trace)}))
    store.close()
    with closing(sqlite3.connect(folder / DATABASE)) as connection, connection:
        for change in ("INSERT", "UPDATE", "DELETE"):
            connection.execute(f"DROP TRIGGER broken_{change}")


def _held(folder: Path) -> set[tuple[str, str]]:
    store = SqliteStore(folder)
    store.open()
    store.start(lambda delivery: False, lambda: 0.0)
    held = store.held()
    store.close()
    return held


def _turns(conversation: str, text: str = "") -> tuple[str, Batch]:
    turns = (
        agent_span(f"{trace} 1", trace=trace, conversation=conversation, start=n, text=text)
        for n, trace in enumerate(TRACES[:6])
    )
    return "send", request(*turns)


MOVED: Sequence[tuple[str, Any]] = [_turns("two", "it moved to another conversation")]
ENCLOSED: Sequence[tuple[str, Any]] = [
    (
        "send",
        request(
            agent_span(f"{trace} 0", trace=trace),
            agent_span(f"{trace} 1", trace=trace, parent=f"{trace} 0", text="it is enclosed now"),
        ),
    )
    for trace in TRACES[:6]
]


@pytest.mark.slow
@pytest.mark.parametrize("late", [MOVED, ENCLOSED])
@pytest.mark.parametrize(("early", "relayed"), [(0, 0), (0, 2), (0, 99), (99, 0), (99, 2)])
@pytest.mark.parametrize("workers", thinned([2, 0, 5], 1))
def test_turns_on_their_way_to_another_scorer_arrive(
    late: Sequence[tuple[str, Any]], early: int, relayed: int, workers: int
) -> None:
    steps = [_turns("one"), ("pass_time", 31.0), ("work", 99), ("relay", early), ("work", early)]
    steps += [*late, ("pass_time", 31.0), ("work", 99), ("relay", relayed)]
    with scorers() as expected, scorers() as running:
        for one, first, last in ((expected, 0, 0), (running, 4, workers)):
            one.start(first)
            run(one, steps)
            one.stop()
            one.start(last)
            one.finish()
        assert _outcome(running) == _outcome(expected)


def spent(folder: Path, **windows: list[float]) -> None:
    """Have the scorer in this folder have spent so much; the number of the window comes first."""
    store = SqliteStore(folder, part="scorer")
    store.open()
    store.start(lambda delivery: False, lambda: 0.0)
    counts = [Row(("judge_spent", window), amounts) for window, amounts in windows.items()]
    assert store.commit(Progress(0, 0.0, 0.0, counts=counts))
    store.close()


def known_spent(folder: Path) -> dict[str, list[float]]:
    """What the process in this folder believes to have spent."""
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        rows = connection.execute("SELECT name, state FROM counts").fetchall()
    named = {tuple(json.loads(name)): json.loads(state) for name, state in rows}
    return {key[1]: state for key, state in named.items() if key[0] == "judge_spent"}


def test_what_judges_have_spent_is_added_up_and_divided_anew(tmp_path: Path) -> None:
    """An older window does not count, and nothing counts twice."""
    main = tmp_path / "data"
    store = SqliteStore(main)
    store.open()
    store.close()
    one, two = reshard(main, 2)
    spent(one, hour=[10.0, 1.0, 100.0, 0.5], day=[3.0, 6.0, 700.0, 2.0])
    spent(two, hour=[9.0, 5.0, 50.0, 0.1], day=[3.0, 2.0, 100.0, 0.4])
    for folder in reshard(main, 4):
        assert known_spent(folder) == {
            "hour": [10.0, 0.25, 25.0, 0.125],
            "day": [3.0, 2.0, 200.0, 0.6],
        }
    reshard(main, 0)
    assert known_spent(main) == {"hour": [10.0, 1.0, 100.0, 0.5], "day": [3.0, 8.0, 800.0, 2.4]}
    [*folders] = reshard(main, 2)
    assert [known_spent(one)["day"] for one in folders] == [[3.0, 4.0, 400.0, 1.2]] * 2
    reshard(main, 0)
    assert known_spent(main)["day"] == [3.0, 8.0, 800.0, 2.4]

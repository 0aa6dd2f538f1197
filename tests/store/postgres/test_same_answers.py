"""SQLite and PostgreSQL answer every query in the same way, and restore the same state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pydantic import TypeAdapter
from structlog.testing import capture_logs

from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.pipeline_events import (
    Changes,
    Judged,
    PublishedEvent,
    StoredTrace,
    Withdrawn,
)
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.traces import TraceSnapshot
from pathgauge.collector.store import Progress
from pathgauge.collector.store.evidence import table as evidence
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.collector.store.postgres.reading import PostgresReading
from pathgauge.collector.store.queries import results
from pathgauge.collector.store.queries.clusters import clusters
from pathgauge.collector.store.queries.counts import counts_named
from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.queries.reading import reading
from pathgauge.collector.store.queries.rows import tenants
from pathgauge.collector.store.queries.runs import last_runs
from pathgauge.collector.store.queries.traces import trace
from pathgauge.collector.store.queries.two_versions import ReleaseResults
from pathgauge.collector.store.queries.unmatched import unmatched_scenarios
from pathgauge.collector.store.queries.versions import by_version
from pathgauge.collector.store.recent_results import evaluations_since
from pathgauge.collector.store.sql import Connection
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.scorers.types import Invocation
from support.evaluated import WALL, evaluation, opened
from support.postgres import Server
from support.shared_database import gauge, scorer, step
from support.thinning import thinned

TENANTS, AGENTS = ("", "north", "Süd"), ("support", "billing")
SCENARIOS, OUTCOMES = ("parcel", "other", "ünïcode"), ("passed", "failed", "stopped")
HOSTILE = ("a\0b", "\ud800", "x" * 100_000, "%s ? :name '")
COUNTS = [
    Row([name, value], [number])
    for number, name in enumerate(("drift", "drift_of", "Drift", "drïft", 'drift"]'))
    for value in ("drift", "Süd", "%_[1]")
]
_INVOCATION = TypeAdapter(Invocation)


def random_events(random: Random, number: int) -> list[PublishedEvent]:
    """The events of one commit; some change results of earlier ones."""
    found: list[PublishedEvent] = []
    for _ in range(random.randrange(1, 8)):
        name = str(random.randrange(40))
        tenant = TENANTS[int(name) % 3]
        one = evaluation(
            name,
            random.choice(OUTCOMES),
            tenant=tenant,
            scenario=random.choice([*SCENARIOS, random.choice(HOSTILE)]),
            agent=random.choice([*AGENTS, random.choice(HOSTILE)]),
            version=random.choice("12"),
            revision=random.choice([0, 0, number]),
            matched=random.random() < 0.8,
        )
        kind = random.random()
        if kind < 0.1:
            found.append(Withdrawn(one.key))
        elif kind < 0.2:
            found.append(Judged(one, first=True))
        else:
            found.append(one)
    return found


def random_changes(random: Random, number: int) -> Changes:
    def turn(name: str) -> StoredTurn:
        invocation = evaluation(name).invocation
        conversation = random.choice(["c", *HOSTILE])
        return StoredTurn(
            replace(invocation, conversation_id=conversation),
            float(number),
            random.choice([None, 1]),
            number,
            dropped_turns=random.choice([0, 0, 3]),
        )

    def pending(name: str) -> PendingJudgment:
        one = evaluation(name)
        body = _INVOCATION.dump_json(one.invocation)
        return PendingJudgment(one.key, number, body, None, "root_ended", True, False)

    names = [str(random.randrange(20)) for _ in range(3)]
    closed = random.choice([None, float(number)])
    state = TraceSnapshot(evaluation(names[0]).key[:2], (), 0.0, 0.0, closed, "late")
    turns = tuple(turn(name) for name in names)
    ended = [turn(names[0]).invocation] if random.random() < 0.3 else []
    return Changes(
        traces=(StoredTrace(state, {names[0]: ("f", number)}),),
        turns=turns,
        judgments_begun=tuple(pending(name) for name in set(names)),
        judgments_ended=(evaluation(str(number)).key,),
        ended_conversations=tuple(
            (one.tenant, one.conversation_id or "", one.scenario_id or "") for one in ended
        ),
        orphaned_turns=(evaluation(str(number % 20)).key,),
    )


@pytest.fixture(scope="module", params=thinned(range(2), 1))
def both(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, postgres: Server
) -> tuple[Path, str]:
    """A folder and a database to which the same was written."""
    random, address = Random(request.param), postgres.database()
    folder = tmp_path_factory.mktemp("store")
    with capture_logs(), opened(folder) as store, scorer(address) as database:
        for number in range(1, 60):
            events, changes = random_events(random, number), random_changes(random, number)
            wall = WALL + 10 * number
            assert store.commit(Progress(number, float(number), wall, events, changes))
            assert database.commit(step(number, events, changes=changes, wall=wall))
        assert store.commit(Progress(number, float(number), wall, [], counts=COUNTS))
    with gauge(address) as shared:
        assert shared.try_acquire()
        shared.commit(COUNTS, {}, WALL)
    return folder, address


def answers(both: tuple[Path, str], query: Callable[[Connection], Any]) -> tuple[Any, Any]:
    folder, address = both
    shared = PostgresReading(address)
    with reading(folder) as sqlite, shared() as postgres:
        found = query(sqlite), query(postgres)
    shared.close()
    return found


FILTERS = [
    Filter(),
    Filter(tenant="Süd"),
    Filter(tenant="nobody"),
    Filter(agent="billing"),
    Filter(agent="ab"),
    Filter(scenario="ünïcode"),
    Filter(scenario="x" * 200),
    Filter(scenario="x" * 128),
    Filter(scenario="x" * 128, agent="support", tenant="north"),
    Filter(version="2", agent="billing", verdict="failed"),
    Filter(flag="truncated", signature="nothing"),
    Filter(scenario="?"),
    Filter(tenant="north", agent="support", scenario="parcel"),
    Filter(verdict="failed"),
    Filter(verdict="failed", tenant="north"),
    Filter(verdict="passed", scenario="other"),
    Filter(category="wrong_argument"),
    Filter(criterion="trajectory", verdict="failed"),
    Filter(version="2"),
    Filter(reason="unknown_scenario"),
    Filter(since=WALL + 300.0),
    Filter(until=WALL + 300.0),
    Filter(since=WALL + 200.0, until=WALL + 400.0, verdict="failed"),
    Filter(trace_id=evaluation("7").invocation.trace_id),
]


@pytest.mark.parametrize("wanted", FILTERS, ids=lambda one: str(one)[:60])
def test_results_are_the_same_in_the_same_order(both: tuple[Path, str], wanted: Filter) -> None:
    def every(connection: Connection) -> list[Any]:
        found: list[Any] = []
        before = None
        while True:
            page = results.find(connection, wanted, 7, before)
            found += [replace(one, row=0) for one in page.results]
            if (before := page.next) is None:
                return found

    sqlite, postgres = answers(both, every)
    assert postgres == sqlite
    clustered = answers(both, lambda connection: clusters(connection, wanted))
    assert clustered[0] == clustered[1]
    versions = answers(both, lambda connection: by_version(connection, wanted))
    assert versions[0] == versions[1]


def test_results_after_a_cursor_are_the_same(both: tuple[Path, str]) -> None:
    def every(connection: Connection) -> list[Any]:
        found, row = [], 0
        while len(page := results.after(connection, Filter(), row, 9)) and page.next != row:
            found += [replace(one, row=0) for one in page.results]
            row = page.next or row
        assert row == results.newest(connection)
        return found

    sqlite, postgres = answers(both, every)
    assert postgres == sqlite


@pytest.mark.parametrize("tenant", [None, "north"])
def test_summaries_are_the_same(both: tuple[Path, str], tenant: str | None) -> None:
    names = [*SCENARIOS, *HOSTILE, *(str(number) for number in range(40))]
    queries: Sequence[Callable[[Connection], Any]] = [
        tenants,
        lambda connection: last_runs(connection, tenant, names)._replace(complete=True),
        lambda connection: unmatched_scenarios(connection, tenant),
    ]
    for query in queries:
        sqlite, postgres = answers(both, query)
        assert postgres == sqlite


@pytest.mark.parametrize("agent", [*AGENTS, *HOSTILE, ""])
@pytest.mark.parametrize(
    "wanted", [Filter(), Filter(tenant="north"), Filter(scenario="other"), Filter(since=WALL + 300)]
)
def test_two_versions_have_the_same_results(
    both: tuple[Path, str], wanted: Filter, agent: str
) -> None:
    def every(connection: Connection) -> dict[Any, list[Any]]:
        read = ReleaseResults(
            connection, replace(wanted, agent=agent), ("1", "2"), clock=lambda: 0.0
        )
        found: dict[Any, list[Any]] = {}
        for one in read.newest_first():
            found.setdefault((one.tenant, one.scenario_id), []).append(replace(one, row=0))
        assert read.complete
        return found

    sqlite, postgres = answers(both, every)
    assert postgres == sqlite


@pytest.mark.parametrize("name", ["drift", "drift_of", "Drift", "drïft", 'drift"]', "drif", ""])
def test_counts_of_one_kind_are_the_same(both: tuple[Path, str], name: str) -> None:
    sqlite, postgres = answers(both, lambda connection: sorted(counts_named(connection, name)))
    assert sqlite == postgres == sorted(one for one in COUNTS if one.key[0] == name)


def test_evidence_and_rebuilt_traces_are_the_same(both: tuple[Path, str]) -> None:
    kept = 0
    for number in range(40):
        key = evaluation(str(number)).key
        sqlite, postgres = answers(
            both,
            lambda connection, key=key: evidence.find(connection, key),  # type: ignore[misc]
        )
        assert postgres == sqlite
        kept += sqlite is not None
        owner = TENANTS[number % 3]
        sqlite, postgres = answers(
            both,
            lambda connection, key=key, owner=owner: trace(connection, key[1], owner),  # type: ignore[misc]
        )
        assert postgres == sqlite
    assert kept


def test_the_same_state_is_restored(both: tuple[Path, str]) -> None:
    folder, address = both
    store, database = SqliteStore(folder), PartitionDatabase(address, 0)
    sqlite, postgres = store.open(), database.claim("later").restored
    store.close()
    database.close()
    assert postgres.turns == sqlite.turns
    assert postgres.pending == sqlite.pending
    assert postgres.traces == sqlite.traces
    assert (postgres.row, postgres.at) == (sqlite.row, sqlite.at)
    assert len(sqlite.turns) > 5 < len(sqlite.pending)


def test_the_same_evaluations_are_restored_for_windows(both: tuple[Path, str]) -> None:
    def recent(connection: Connection) -> list[Any]:
        found = evaluations_since(connection, WALL + 200.0, lambda *_: None, lambda *_: True)
        return [one for _, one in found]

    sqlite, postgres = answers(both, recent)
    assert postgres == sqlite
    assert len(sqlite) > 20

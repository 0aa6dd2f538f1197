"""Answers of people in PostgreSQL are those of a store on disk."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

import psycopg
import pytest

from pathgauge.collector.core.feedback.kappa import Table
from pathgauge.collector.core.feedback.opinion import Opinion
from pathgauge.collector.core.feedback.pairs import CriterionKey
from pathgauge.collector.core.feedback.verdict import VerdictRules
from pathgauge.collector.store import Selection
from pathgauge.collector.store.postgres.connection import connect
from pathgauge.collector.store.postgres.feedback import FeedbackWriter
from pathgauge.collector.store.postgres.purge import purge
from pathgauge.collector.store.postgres.reading import PostgresReading
from pathgauge.collector.store.postgres.schema import migrate
from pathgauge.collector.store.queries.answered_sessions import Clock
from pathgauge.collector.store.queries.feedback import Subject, about, opinions, pairs
from pathgauge.collector.store.queries.results import of_trace
from pathgauge.collector.store.sql import Connection
from pathgauge.collector.testing import span_id, trace_id
from support.answered import (
    SELECTIONS,
    answer,
    answered_talks,
    content,
    given,
    of_tenants,
    paired_talks,
)
from support.evaluated import WALL, evaluation
from support.sessions import BOUNDS, session
from support.shared_database import scorer, step

RULES = VerdictRules()


@pytest.fixture
def database(address: str) -> str:
    with closing(connect(address)) as connection:
        migrate(connection)
    return address


def postgres_rows(address: str, read: Callable[[Connection], Any]) -> Any:
    with closing(connect(address)) as connection:
        return read(connection)


def test_postgres_keeps_the_same(database: str) -> None:
    writer = FeedbackWriter(database)
    with scorer(database) as partition:
        assert partition.commit(step(1, [evaluation("a"), *given(answer("a", "up", rater="x"))]))
        assert partition.commit(step(2, given(answer("a", "down", rater="x"))))
        assert partition.commit(step(3, given(answer("a", "down", rater="x"))))
    assert writer.record([answer("a", "up", rater="x"), answer("a", "good", rater="y")]) == [
        "repeated",
        "created",
    ]
    found = postgres_rows(database, lambda connection: pairs(connection, RULES, Clock(WALL), 0.0))
    assert found.answers == {"paired": 2}
    said = postgres_rows(database, lambda c: about(c, Subject(trace_id("a"), span_id("a"))))
    assert [one.answer.label for one in said] == ["good", "down"]
    with PostgresReading(database, keep_idle=False)() as connection:
        people = opinions(connection, of_trace(connection, trace_id("a")), RULES)
    assert people == {("", trace_id("a"), span_id("a")): Opinion(1, 1)}


def test_answers_about_conversations_are_paired_with_their_sessions(database: str) -> None:
    with scorer(database) as partition:
        for number, events in enumerate(answered_talks(), 1):
            assert partition.commit(step(number, events))
        assert partition.commit(step(9, [session("a", "early", "failed", revision=1)]))
    clock = Clock(10_000.0, BOUNDS)
    found = postgres_rows(database, lambda connection: pairs(connection, RULES, clock, 0.0))
    expected = paired_talks()
    expected.tables[CriterionKey("", "trajectory")] = Table(neither=2)
    assert found == expected


@pytest.mark.parametrize("how", SELECTIONS)
def test_a_purge_of_postgres_removes_what_was_said_of_a_run(database: str, how: str) -> None:
    with scorer(database) as partition:
        for number, (events, wall) in enumerate(content(), 1):
            assert partition.commit(step(number, events, wall=wall))
    purge(database, SELECTIONS[how], 0.0)
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT conversation FROM feedback ORDER BY id").fetchall()
    assert found == [("",), ("talk b",)]


def test_a_purge_of_a_tenant_removes_all_that_was_said_there_from_postgres(database: str) -> None:
    with scorer(database) as partition:
        assert partition.commit(step(1, given(*of_tenants("blue", "green"))))
    purge(database, Selection(tenant="blue"), 0.0)
    with psycopg.connect(database) as connection:
        found = connection.execute("SELECT tenant FROM feedback").fetchall()
    assert found == [("green",)] * 2
    assert FeedbackWriter(database).record(of_tenants("blue")) == ["purged", "created"]


@pytest.mark.parametrize("how", SELECTIONS)
def test_nothing_more_is_recorded_about_a_trace_purged_from_postgres(
    database: str, how: str
) -> None:
    with scorer(database) as partition:
        for number, (events, wall) in enumerate(content(), 1):
            assert partition.commit(step(number, events, wall=wall))
    purge(database, SELECTIONS[how], 0.0)
    assert FeedbackWriter(database).record([answer("a"), answer("c")]) == ["purged", "created"]


def test_two_answers_at_the_same_time_leave_one_current(
    database: str, at_once: Callable[..., None]
) -> None:
    def write(number: int) -> None:
        FeedbackWriter(database).record([answer("a", f"{number}", rater="x")])

    at_once(write, 4)
    found = postgres_rows(database, lambda c: about(c, Subject(trace_id("a"))))
    assert len(found) == 1

"""Queries of the API and the pages read one state of the database, for a bounded time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import psycopg
import pytest

from pathgauge.collector.store import StoreError
from pathgauge.collector.store.postgres import writing
from pathgauge.collector.store.postgres.connection import connect
from pathgauge.collector.store.postgres.reading import PostgresReading
from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.queries.reading import QueryTooSlowError
from pathgauge.collector.store.queries.results import after, find, newest
from pathgauge.collector.store.queries.rows import rows as found_rows
from support.evaluated import evaluation
from support.postgres import Server
from support.shared_database import rows, scorer, step


@pytest.fixture
def read() -> Iterator[Callable[..., PostgresReading]]:
    """Makes what opens a database, and closes it at the end."""
    made: list[PostgresReading] = []

    def make(address: str, max_seconds: float = 2.0) -> PostgresReading:
        made.append(PostgresReading(address, max_seconds))
        return made[-1]

    yield make
    for one in made:
        one.close()


Read: TypeAlias = Callable[..., PostgresReading]


@pytest.fixture
def opened(address: str) -> str:
    """A database with two results."""
    with scorer(address) as database:
        for row, name in enumerate("ab", 1):
            assert database.commit(step(row, [evaluation(name)]))
    return address


@pytest.mark.slow
def test_a_query_sees_one_state(read: Read, opened: str) -> None:
    with read(opened)() as connection, scorer(opened) as database:
        assert len(find(connection, Filter()).results) == 2
        assert database.commit(step(3, [evaluation("c")]))
        assert len(find(connection, Filter()).results) == 2
    with read(opened)() as connection:
        assert len(find(connection, Filter()).results) == 3


def test_it_can_only_read(read: Read, opened: str) -> None:
    with (
        pytest.raises(StoreError, match="read-only"),
        read(opened)() as connection,
    ):
        connection.execute("DELETE FROM results")


def test_a_slow_query_is_interrupted(read: Read, opened: str) -> None:
    reading = read(opened, max_seconds=0.1)
    with pytest.raises(QueryTooSlowError, match=r"more than 0\.1 s"), reading() as connection:
        connection.execute("SELECT pg_sleep(5)").fetchone()
    with reading() as connection:
        assert len(find(connection, Filter()).results) == 2


def test_a_database_without_tables_is_a_clear_error(read: Read, address: str) -> None:
    with (
        pytest.raises(StoreError, match="found schema version 0, expected 6"),
        read(address)(),
    ):
        pass


def test_the_address_over_tcp_needs_the_password(read: Read, postgres: Server, opened: str) -> None:
    address = postgres.over_tcp(opened)
    with read(address)() as connection:
        assert len(find(connection, Filter()).results) == 2
    with (
        pytest.raises(StoreError, match="password") as caught,
        read(address.replace("a-secret", "wr0ng"))(),
    ):
        pass
    assert "wr0ng" not in str(caught.value)


@pytest.mark.slow
def test_reading_continues_after_a_restart_of_the_server(
    read: Read, postgres: Server, opened: str
) -> None:
    reading = read(opened)
    for _ in range(2):
        with reading() as connection:
            assert len(find(connection, Filter()).results) == 2
        postgres.restart()


def test_only_as_many_rows_are_read_as_are_taken(read: Read, address: str) -> None:
    with scorer(address) as database:
        for row in range(10):
            events = [evaluation(f"{row} {number}") for number in range(50)]
            assert database.commit(step(row, events))
    with read(address)() as connection:
        found = found_rows(connection, Filter(), None)
        taken = [next(found).id for _ in range(3)]
        assert taken == sorted(taken, reverse=True)
        fetched = connection.execute("SELECT count(*) FROM pg_cursors").fetchone()
        assert fetched == (1,)
        assert len(list(found)) == 497


@pytest.mark.parametrize("ends", ["COMMIT", "ROLLBACK"])
def test_a_result_that_is_committed_late_is_not_missed_after_a_cursor(
    read: Read, opened: str, ends: str
) -> None:
    """Its key was given out before those of results that became visible earlier."""
    reading = read(opened)
    slow = connect(opened, {"pathgauge.partition": "7"})
    with reading() as connection:
        start = newest(connection)
    slow.raw.execute("BEGIN")
    writing.begin(slow, None)
    insert = (
        "INSERT INTO results (tenant, trace_id, span_id, revision, at, agent, scenario, body, crc)"
        " SELECT tenant, ?, span_id, revision, at, agent, scenario, body, crc FROM results LIMIT 1"
    )
    slow.execute(insert, ("slow",))
    with scorer(opened) as database:
        assert database.commit(step(3, [evaluation("c")]))
    with reading() as connection:
        page = after(connection, Filter(), start, 10)
        assert (page.results, page.next, newest(connection)) == ([], start, start)
    slow.raw.execute("COMMIT" if ends == "COMMIT" else "ROLLBACK")
    with reading() as connection:
        page = after(connection, Filter(), start, 10)
        assert [one.trace_id for one in page.results] == [evaluation("c").invocation.trace_id]
        assert page.next == newest(connection) == start + 2
    found = rows(opened, "SELECT id FROM results WHERE trace_id = 'slow'")
    assert found == ([(start + 1,)] if ends == "COMMIT" else [])
    slow.close()


def test_text_that_postgresql_refuses_is_cleaned(opened: str) -> None:
    connection = connect(opened)
    for text, expected in [("a\0b", "ab"), ("\ud800", "?"), ("x" * 1_000_000, "x" * 1_000_000)]:
        assert connection.execute("SELECT ?::text", (text,)).fetchone() == (expected,)
        connection.executemany("UPDATE results SET body = ?", [(text,)])
        assert connection.execute("SELECT DISTINCT body FROM results").fetchall() == [(expected,)]
    with pytest.raises(psycopg.DataError):
        connection.execute("SELECT ?::integer", ("seven",))
    connection.close()

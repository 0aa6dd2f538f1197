"""The tables of an earlier version are brought up to date, however long that takes."""

from __future__ import annotations

import threading
from contextlib import closing

import psycopg

from pathgauge.collector.store.postgres import schema
from pathgauge.collector.store.postgres.connection import connect

SHORT = {"statement_timeout": "200"}
"""Milliseconds; a session of a collector has more, but an index of a large table takes longer."""
LONGER_S = 1.0


def test_a_step_may_take_longer_than_any_other_statement(address: str) -> None:
    with psycopg.connect(address, autocommit=True) as earlier:
        earlier.execute("CREATE TABLE pathgauge_schema (version integer PRIMARY KEY)")
        for number, statements in enumerate(schema.MIGRATIONS[:-1], 1):
            earlier.execute(statements.encode())
            earlier.execute("INSERT INTO pathgauge_schema (version) VALUES (%s)", (number,))
    with psycopg.connect(address) as reader, closing(connect(address, SHORT)) as connection:
        reader.execute("SELECT count(*) FROM results")  # its lock is held until the commit
        done = threading.Timer(LONGER_S, reader.commit)
        done.start()
        schema.migrate(connection)
        done.join()
        schema.check(connection)
        timeout = connection.execute("SHOW statement_timeout").fetchone()
        assert timeout == ("200ms",)


def test_whoever_starts_meanwhile_waits_for_it(address: str) -> None:
    with psycopg.connect(address) as first, closing(connect(address, SHORT)) as second:
        first.execute("SELECT pg_advisory_xact_lock(%s::integer, 0)", (second.lock_key("schema"),))
        done = threading.Timer(LONGER_S, first.commit)
        done.start()
        schema.migrate(second)
        done.join()
        schema.check(second)

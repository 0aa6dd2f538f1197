"""Copies the rows of a store on disk into PostgreSQL, in the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence, Set
from typing import Any

import orjson

from pathgauge.collector.core.agent_records import NAME as AGENT_RECORDS
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.service.migration.requests import Produced
from pathgauge.collector.store import (
    StoreError,
    feedback,
    pending_judgments,
    session_members,
    sessions,
    turns,
)
from pathgauge.collector.store.forwarded_turns import decode
from pathgauge.collector.store.postgres import heads, writing
from pathgauge.collector.store.postgres.connection import PostgresConnection
from pathgauge.collector.store.resharding.source import Source
from pathgauge.collector.store.resharding.spending import NAMES as JUDGES_SPENT
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import insert

_AT_ONCE = 1_000
_RESULTS = (
    "id, tenant, trace_id, span_id, revision, at, agent, scenario, withdrawn, body, crc, verdict,"
    " category, signature, conversation"
)
_EVIDENCE = "id, tenant, trace_id, span_id, at, scenario, failed, size, body, crc"
_TRACES = "tenant, trace_id, closed, forgotten, known"


def refuse_rows(database: PostgresConnection) -> None:
    """Raises `StoreError` if the database is in use."""
    for table in ("results", "partitions", "counts", "feedback"):
        if database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():
            raise StoreError(f"postgres: found rows in {table}, expected an empty database")


def copy_results(main: sqlite3.Connection, database: PostgresConnection) -> int:
    """Copy results, evidence, feedback and counts; returns the number of results."""
    number = _copy(main, database, "results", _RESULTS)
    _copy(main, database, "evidence", _EVIDENCE)
    _copy(main, database, "session_members", f"{session_members.COLUMNS}, crc")
    _copy(main, database, "counts", "name, state, crc")
    _copy(main, database, "feedback", f"id, {feedback.COLUMNS}, crc")
    _copy(main, database, "feedback_key", "id, value")
    for table in ("results", "evidence", "feedback"):
        database.execute(
            f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), (SELECT coalesce(max(id), 0)"
            f" + 1 FROM {table}), false)"
        )
    return number


def copy_state(
    source: Source, database: PostgresConnection, partition: int, produced: Produced, shift: float
) -> None:
    """Copy what the scorer of a partition continues with; `shift` is added to running times."""
    database.execute("SELECT set_config('pathgauge.partition', ?, true)", (str(partition),))
    database.execute(
        'INSERT INTO partitions (partition, generation, owner, "row", at, offsets)'
        " VALUES (?, 0, 'migrate', ?, ?, ?::jsonb)",
        (partition, source.row, source.at + shift, orjson.dumps(produced.offsets).decode()),
    )
    heads.write(database, produced.heads, ())
    tables = source.tables
    _insert(
        database,
        f"INSERT INTO traces ({_TRACES}, crc)",
        (_trace(row, shift) for _, row in tables.rows("traces", _TRACES, "ORDER BY id")),
    )
    for table, columns, place in (
        ("turns", turns.COLUMNS, 5),
        ("awaited", pending_judgments.COLUMNS, 3),
        ("session_turns", sessions.TURN_COLUMNS, 4),
    ):
        _insert(
            database,
            f"INSERT INTO {table} ({columns}, crc)",
            (
                _with_crc([*row[:place], row[place] + shift, *row[place + 1 :]])
                for _, row in tables.rows(table, columns, "ORDER BY id")
            ),
        )
    _insert(
        database,
        f"INSERT INTO sessions ({sessions.COLUMNS}, crc)",
        (
            _with_crc(sessions.shifted(row, shift))
            for _, row in tables.rows("sessions", sessions.COLUMNS, "ORDER BY id")
        ),
    )
    for body in produced.turns:
        tenant, trace_id, _ = decode(body).key
        database.execute(
            "INSERT INTO forwarded (target, body, tenant, trace_id) VALUES (?, ?, ?, ?)",
            (partition, body, tenant, trace_id),
        )
    writing.records(database, _counts(source, {AGENT_RECORDS}))
    writing.counts(database, _counts(source, JUDGES_SPENT))


def _counts(source: Source, wanted: Set[str]) -> Iterator[Row]:
    for _, (name, state) in source.tables.rows("counts", "name, state"):
        key = orjson.loads(name)
        if key[0] in wanted:
            yield Row(key, orjson.loads(state))


def _trace(row: Sequence[Any], shift: float) -> tuple[Any, ...]:
    tenant, trace_id, closed, forgotten, text = row
    known = orjson.loads(text)
    if known.get("next_reading"):
        known["next_reading"] += shift
    if closed is not None:
        closed += shift
    return _with_crc([tenant, trace_id, closed, forgotten, orjson.dumps(known).decode()])


def _with_crc(row: Sequence[Any]) -> tuple[Any, ...]:
    return (*row, checksum(*row))


def _copy(main: sqlite3.Connection, database: PostgresConnection, table: str, columns: str) -> int:
    found = main.execute(f"SELECT {columns} FROM {table} ORDER BY id")
    return _insert(database, f"INSERT INTO {table} ({columns})", iter(found))


def _insert(database: PostgresConnection, into: str, rows: Iterator[Sequence[Any]]) -> int:
    number, chunk = 0, []
    for row in rows:
        chunk.append(tuple(row))
        if len(chunk) == _AT_ONCE:
            insert(database, into, chunk)
            number, chunk = number + len(chunk), []
    insert(database, into, chunk)
    return number + len(chunk)

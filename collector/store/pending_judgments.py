"""Evaluations that wait for judges, as rows: what the pipeline waits for comes in, statements of
one transaction go to the database.

A row holds the invocation with its content until judges have answered; with the answer it goes.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from typing import Any

import orjson

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.store.schema import checksum, insert

COLUMNS = "tenant, trace_id, span_id, at, known, body"

_INTO = f"INSERT OR REPLACE INTO awaited ({COLUMNS}, crc)"


def write(
    connection: sqlite3.Connection,
    begun: Iterable[PendingJudgment],
    settled: Iterable[EvaluationKey],
    at: float,
) -> None:
    """Keep what is waited for since `at`, and forget what is not waited for any more."""
    ended = [(trace_id, span_id, tenant) for tenant, trace_id, span_id in settled]
    connection.executemany(
        "DELETE FROM awaited WHERE trace_id = ? AND span_id = ? AND tenant = ?", ended
    )
    insert(connection, _INTO, [_row(awaited, at) for awaited in begun])


def _row(awaited: PendingJudgment, at: float) -> tuple[Any, ...]:
    known = {
        "revision": awaited.revision,
        "turn": awaited.turn,
        "closed_by": awaited.closed_by,
        "first": awaited.first,
        "unscored": awaited.unscored,
    }
    row = (*awaited.key, at, orjson.dumps(known).decode(), awaited.body.decode())
    return (*row, checksum(*row))


def read(columns: Sequence[Any]) -> PendingJudgment:
    """What the columns of a sound row say."""
    tenant, trace_id, span_id, _, known, body = columns
    return PendingJudgment((tenant, trace_id, span_id), body=body.encode(), **orjson.loads(known))

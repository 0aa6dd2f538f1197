"""Stores evaluations that wait for judges.

A row holds the invocation with its content. It is deleted as soon as the judges have answered.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any

import orjson

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.shadow_result import AwaitedShadow
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import Connection, upsert
from pathgauge.scorers.types import Json

COLUMNS = "tenant, trace_id, span_id, at, known, body"


def write(
    connection: Connection,
    begun: Iterable[PendingJudgment],
    ended: Iterable[EvaluationKey],
    at: float,
) -> None:
    """Store evaluations that wait since `at`, and delete those that no longer wait; the transaction
    is the caller's.
    """
    keys = [(trace_id, span_id, tenant) for tenant, trace_id, span_id in ended]
    connection.executemany(
        "DELETE FROM awaited WHERE trace_id = ? AND span_id = ? AND tenant = ?", keys
    )
    upsert(
        connection,
        "awaited",
        f"{COLUMNS}, crc",
        "trace_id, span_id, tenant",
        [_row(pending, at) for pending in begun],
    )


def _row(pending: PendingJudgment, at: float) -> tuple[Any, ...]:
    known: dict[str, Json] = {
        "revision": pending.revision,
        "turn": pending.turn,
        "closed_by": pending.closed_by,
        "first": pending.first,
        "unscored": pending.unscored,
        "failed": pending.failed,
    }
    if pending.shadow is not None:
        known["shadow"] = pending.shadow._asdict()
    if pending.uncompared:
        known["uncompared"] = pending.uncompared
    row = (*pending.key, at, orjson.dumps(known).decode(), pending.body.decode())
    return (*row, checksum(*row))


def read(columns: Sequence[Any]) -> PendingJudgment:
    """The evaluation of a row with a valid checksum. What a later version has added to it is left
    out.
    """
    tenant, trace_id, span_id, _, known, body = columns
    values = _only(PendingJudgment.__dataclass_fields__, orjson.loads(known))
    if shadow := values.get("shadow"):
        values["shadow"] = AwaitedShadow(**_only(AwaitedShadow._fields, shadow))
    values["uncompared"] = tuple(map(tuple, values.get("uncompared", ())))
    return PendingJudgment((tenant, trace_id, span_id), body=body.encode(), **values)


def _only(names: Container[str], values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name in names}

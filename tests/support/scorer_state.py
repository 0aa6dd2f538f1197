"""What the stores of scorers hold, whatever their number: what the next processes continue with."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.partitioning import partition_of_conversation, partition_of_trace
from pathgauge.collector.core.traces import TraceKey, TraceSnapshot
from pathgauge.collector.store.resharding import reshard
from pathgauge.collector.store.sqlite.store import SqliteStore


@dataclass
class View:
    """What the next processes would continue with. Times are before the end of the last ones."""

    traces: dict[TraceKey, tuple[Any, ...]]
    turns: dict[tuple[str, ...], Any]
    pending: dict[tuple[str, ...], PendingJudgment]
    unprocessed: Counter[tuple[Any, ...]]
    counts: dict[tuple[str, ...], int]


def view(main: Path, workers: int) -> View:
    found = View({}, {}, {}, Counter(), {})
    telemetry = InternalTelemetry()
    for number, folder in enumerate(reshard(main, workers) or [main]):
        store = SqliteStore(folder)
        restored = store.open()
        at = restored.at
        store.start(lambda delivery: True, lambda at=at: at)  # type: ignore[misc]
        assert all(0 < one.row <= restored.last_row for one in _all(store, 0))
        for trace in restored.traces:
            key, partitions = trace.snapshot.key, max(1, workers)
            assert partition_of_trace(key[1], partitions) == number
            assert key not in found.traces
            records = tuple(
                (
                    _before(restored.at, recalled.at),
                    *map(_text, recalled.spans),
                    *map(_text, recalled.logs),
                )
                for recalled in store.recall(key, trace.snapshot.rows)
            )
            snapshot = replace(trace.snapshot, rows=(), next_reading=0.0)
            fingerprints = {
                span: digest.removeprefix("forwarded ")
                for span, (digest, _) in trace.fingerprints.items()
            }
            found.traces[key] = (
                replace(snapshot, first=0, last=0, closed_at=None),
                *_ages(trace.snapshot, restored.at),
                fingerprints,
                records,
            )
        for turn in restored.turns:
            invocation = turn.invocation
            conversation = (invocation.tenant, invocation.conversation_id or "", "dialogue")
            assert partition_of_conversation(conversation, max(1, workers)) == number
            key_of_turn = (invocation.tenant, invocation.trace_id, invocation.span_id)
            found.turns[key_of_turn] = replace(turn, at=_before(restored.at, turn.at))
        for one in restored.pending:
            known = found.pending.setdefault(one.key, one)
            if one.revision > known.revision:
                found.pending[one.key] = one
        for delivery in _all(store, restored.row):
            batch = delivery.batch
            batch.count(telemetry)
            for record in batch.spans or batch.logs:
                assert partition_of_trace(record.trace_id, max(1, workers)) == number
            at = _before(restored.at, delivery.at)
            found.unprocessed.update((at, batch.origin.tenant, one) for one in _content(batch))
        store.close()
    for counter in (telemetry.accepted, telemetry.accepted_logs, telemetry.logs_dropped):
        found.counts |= {(counter.name, *labels): n for labels, n in counter.items()}
    return found


def _content(batch: Batch) -> list[str]:
    if batch.turn is not None:
        return [repr(batch.turn)]
    return list(map(_text, batch.spans or batch.logs))


def _text(record: Span | LogRecord) -> str:
    resource, scope = sorted(record.resource.attributes.items()), record.scope
    return repr((record.raw, resource, scope.name, scope.version))


def _all(store: SqliteStore, after: int) -> list[Any]:
    deliveries: list[Any] = []
    while more := list(store.read(after)):
        deliveries += more
        after = more[-1].row
    return deliveries


def _ages(snapshot: TraceSnapshot, now: float) -> list[float | None]:
    if not snapshot.rows:
        return []
    times = snapshot.first, snapshot.last, snapshot.closed_at
    return [None if at is None else _before(now, at) for at in times]


def _before(now: float, at: float) -> float:
    return round(now - at, 3)

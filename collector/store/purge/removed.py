"""What a purge has deleted, and the deletion of results."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeAlias

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.store import MAX_FINISHED
from pathgauge.collector.store.sql import delete

ResultRow: TypeAlias = "tuple[int, str, str, str, float]"
"""Key of the row, tenant, trace id, span id, time."""


@dataclass(slots=True)
class Removed:
    """What was deleted."""

    results: int = 0
    traces: set[TraceKey] = field(default_factory=set)
    """Traces with turns, sessions or evaluations that the pipeline may still hold, and some
    others.
    """
    finished: int = 0
    """The number of those others."""
    evaluations: set[EvaluationKey] = field(default_factory=set)
    """Evaluations that windows or judges may still hold."""

    def add_finished(self, traces: Iterable[TraceKey]) -> None:
        """Add some traces of which only results, evidence or feedback are deleted."""
        new = islice(
            (one for one in traces if one not in self.traces), MAX_FINISHED - self.finished
        )
        for trace in new:
            self.traces.add(trace)
            self.finished += 1

    def add_open(self, table: str, keys: Iterable[EvaluationKey]) -> None:
        """Add what was deleted from a table of what is not finished."""
        found = set(keys)
        self.traces.update(key[:2] for key in found)
        if table == "awaited":
            self.evaluations |= found


def remove_results(
    connection: sqlite3.Connection,
    removed: Removed,
    windows_since: float,
    rows: Sequence[ResultRow],
) -> None:
    """Delete these results. Windows may hold those since the Unix time `windows_since`."""
    removed.evaluations.update(key_of(key) for _, *key, at in rows if at >= windows_since)
    removed.results += delete(connection, "results", (row for row, *_ in rows))


def key_of(columns: Iterable[str]) -> EvaluationKey:
    """The key of an evaluation, from the columns of a row."""
    tenant, trace_id, span_id = columns
    return tenant, trace_id, span_id

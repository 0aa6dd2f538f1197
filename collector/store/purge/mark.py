"""Records in the database what a purge removes, until nothing of it is left in the files."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, dataclass

import orjson

from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.store.sql import insert, upsert

_NAME = "purge"


@dataclass(frozen=True, slots=True)
class Mark:
    """What is removed beside the traces in the table `purging`."""

    before: float | None = None
    """Requests that were stored before this Unix time."""
    with_results: bool = True
    """Whether results, and what was stored together with them, are removed by their age, too. Only
    their owner knows the age.
    """
    tenant: str | None = None
    """Only requests and feedback of this tenant are removed by their age. What else is stored of it
    belongs to the traces.
    """

    def removes(self, tenant: str, wall: float) -> bool:
        """Whether a request of this tenant that was stored at this Unix time is removed."""
        is_old = self.before is not None and wall < self.before
        return is_old and self.tenant in (None, tenant)


def read(connection: sqlite3.Connection) -> Mark | None:
    """The mark of a purge that is not finished."""
    found = connection.execute("SELECT value FROM meta WHERE name = ?", (_NAME,)).fetchone()
    return None if found is None else Mark(*orjson.loads(found[0]))


def write(connection: sqlite3.Connection, mark: Mark) -> None:
    """From this transaction on, the purge is certain."""
    text = orjson.dumps(astuple(mark)).decode()
    upsert(connection, "meta", "name, value", "name", [(_NAME, text)])


def remove(connection: sqlite3.Connection) -> None:
    """The purge is finished."""
    connection.execute("DELETE FROM meta WHERE name = ?", (_NAME,))


def clear(connection: sqlite3.Connection) -> None:
    """Forget the traces of a purge that ended before its mark was written."""
    connection.execute("DELETE FROM purging")


def add(connection: sqlite3.Connection, traces: Sequence[TraceKey]) -> None:
    """Add traces to those that are removed."""
    insert(connection, "INSERT OR IGNORE INTO purging (tenant, trace_id)", traces)


def holds(connection: sqlite3.Connection, trace: TraceKey) -> bool:
    """Whether a trace is removed."""
    tenant, trace_id = trace
    select = "SELECT 1 FROM purging WHERE trace_id = ? AND tenant = ?"
    return connection.execute(select, (trace_id, tenant)).fetchone() is not None

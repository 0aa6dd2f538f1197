"""Which traces the result of a session is made of, stored as long as the result.

The result has an id of its own in place of a trace id. A purge of one of its traces finds it here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import Connection, upsert

COLUMNS = "tenant, trace_id, session"


def write(connection: Connection, evaluations: Iterable[Evaluation]) -> None:
    """Write the members of these results of sessions, in the caller's transaction."""
    found = [one for one in evaluations if one.session is not None]
    if not found:
        return
    connection.executemany(
        "DELETE FROM session_members WHERE tenant = ? AND session = ?",
        [one.key[:2] for one in found],
    )
    upsert(
        connection,
        "session_members",
        f"{COLUMNS}, crc",
        "trace_id, session, tenant",
        list(_rows(found)),
    )


def of_results(
    connection: Connection, results: str, values: Sequence[Any]
) -> list[tuple[str, str]]:
    """The sessions (tenant, id) of the rows of `results` whose keys a query finds."""
    return [
        (tenant, session)
        for tenant, session in connection.execute(
            "SELECT DISTINCT m.tenant, m.session FROM results AS r CROSS JOIN session_members AS m"
            f" WHERE m.session = r.trace_id AND m.tenant = r.tenant AND r.id IN ({results})",
            values,
        ).fetchall()
    ]


def drop(connection: Connection, sessions: Iterable[tuple[str, str]]) -> None:
    """Delete the members of those sessions (tenant, id) that have no result any more."""
    connection.executemany(
        "DELETE FROM session_members WHERE tenant = ? AND session = ? AND NOT EXISTS"
        " (SELECT 1 FROM results AS r WHERE r.trace_id = session_members.session"
        " AND r.tenant = session_members.tenant)",
        list(sessions),
    )


def _rows(evaluations: Iterable[Evaluation]) -> Iterator[tuple[Any, ...]]:
    for one in evaluations:
        tenant, session, _ = one.key
        members = one.session.members if one.session is not None else ()
        for trace_id in dict.fromkeys(trace_id for trace_id, _ in members):
            row = (tenant, trace_id, session)
            yield (*row, checksum(*row))

"""Removes results and evidence that are too old or take too much space. Only the gauge does, after
its commits.

PostgreSQL does not shrink its tables when rows are deleted, but uses their space again. So the size
of the rows counts, not that of the files. The number of results is PostgreSQL's own estimate.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace

from pathgauge.collector.store import Removal, Usage, removal
from pathgauge.collector.store.evidence.table import EvidencePolicy, EvidenceRows, drop_oldest
from pathgauge.collector.store.postgres.connection import PostgresConnection
from pathgauge.collector.store.retention import Removed, Retention, SteadyWall, drop_feedback

CLEAN_S = 10.0
MAX_ROWS = 5_000
"""Rows that one transaction removes at most."""
RESULT_BYTES = 500
"""What a result takes beside its body, in the table and its indexes."""
PURGES_S = 7 * 86_400.0
"""How long a purge is told to processes that have not asked for a while."""
_SAMPLE = 200
"""So many of the oldest results say how large one is."""
_SLACK = 32
"""When too much is kept, this share of what may be kept, 1/32, is freed in addition."""


class SharedCleaning:
    """For the thread of the gauge, except for `usage`."""

    def __init__(
        self, retention: Retention | None = None, evidence: EvidencePolicy | None = None
    ) -> None:
        """`retention.max_bytes` is for results and evidence together."""
        self._retention = retention or Retention()
        self.usage = Usage(capacity=self._retention.max_bytes)
        """As of the last measurement."""
        self._evidence = EvidenceRows(evidence or EvidencePolicy())
        self._steady = SteadyWall()
        self._removed: dict[Removal, int] = {"age": 0, "space": 0}
        self._feedback: dict[Removal, int] = {"age": 0, "space": 0}
        self._next_at = -math.inf

    def clean(self, connection: PostgresConnection, wall: float) -> None:
        """Remove some rows, if it is time to; `wall` in Unix seconds. Raises `psycopg.Error`."""
        now, wall = time.monotonic(), self._steady(wall)
        if now < self._next_at:
            return
        used = _used(connection)
        with connection.transaction():
            removed = self._remove(connection, wall, used - self._retention.max_bytes)
        self._removed[removed.reason] += removed.results
        for reason, answers in removed.feedback.items():
            self._feedback[reason] += answers
        if removed.results + removed.others < MAX_ROWS:
            self._next_at = now + CLEAN_S
        self.usage = replace(
            self.usage,
            used=used,
            kept=used,
            results_removed=dict(self._removed),
            feedback_removed=dict(self._feedback),
        )

    def _remove(self, connection: PostgresConnection, wall: float, excess: int) -> Removed:
        connection.execute("DELETE FROM purges WHERE wall < ?", (wall - PURGES_S,))
        dropped = drop_feedback(connection, self._retention, wall, MAX_ROWS)
        removed = Removed(
            removal.drop_old_results(connection, wall - self._retention.results_s, MAX_ROWS),
            self._evidence.clean(connection, wall, MAX_ROWS) + sum(dropped.values()),
            feedback=dropped,
        )
        if removed.results + removed.others or excess <= 0:
            return removed
        excess += self._retention.max_bytes // _SLACK
        if evidence := drop_oldest(connection, excess, MAX_ROWS):
            return Removed(others=evidence)
        return Removed(removal.drop_oldest_results(connection, excess, MAX_ROWS), reason="space")


def _used(connection: PostgresConnection) -> int:
    """The size of results and evidence."""
    [plan] = connection.execute("EXPLAIN (FORMAT JSON) SELECT 1 FROM results").fetchone()
    results = plan[0]["Plan"]["Plan Rows"]
    [size, evidence] = connection.execute(
        "SELECT (SELECT avg(octet_length(body))::double precision FROM"
        " (SELECT body FROM results ORDER BY id LIMIT ?) AS oldest),"
        " (SELECT coalesce(sum(size), 0)::bigint FROM evidence)",
        (_SAMPLE,),
    ).fetchone()
    return int(evidence) + (0 if size is None else int(results * (size + RESULT_BYTES)))

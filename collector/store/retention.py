"""Removes results that are too old, or that take space which requests need, a few at a time.

Space is freed in this order: superseded revisions that an earlier version stored, results that no
window needs, states of traces that are over, the oldest evidence, and then the oldest results, even
if windows would need them after a restart.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

from pathgauge.collector.store import Removal, Usage, feedback, removal
from pathgauge.collector.store.evidence.table import drop_oldest
from pathgauge.collector.store.recent_results import WindowBounds
from pathgauge.collector.store.sql import Connection

CLEAN_S = 10.0
RETRY_S = 1.0
"""How long to wait while too much is kept and nothing can be removed."""
_MAX_ROWS = 20_000
"""Rows that one transaction removes at most."""
_MAX_SEARCHES = 5
"""So many times as many rows are searched for superseded revisions."""
_KEPT_TRACES = 200_000
OPEN_SHARE = 8
"""The share of the store, 1/8, that each of these may use: turns of open conversations, evaluations
that wait for judges, states of traces that are over, and evidence. So results always have some of
the half that is not for requests.
"""
_SLACK = 32
"""When too much is kept, this share of the store, 1/32, is freed in addition."""

_AGE: Removal = "age"
_SPACE: Removal = "space"


@dataclass(frozen=True, slots=True)
class Retention:
    """How much is kept, and for how long."""

    max_bytes: int = 10 << 30
    """Journal and results together."""
    results_s: float = 7 * 86_400.0
    """For results, and for what people said of them."""
    max_answers: int = 100_000
    """Answers of people that are kept."""

    @property
    def max_open_bytes(self) -> int:
        """For the turns of open conversations, and again for evaluations that wait for judges."""
        return self.max_bytes // OPEN_SHARE


class SteadyWall:
    """The wall clock without the jumps ahead that happen while the process runs. A result that was
    removed too early would still be missing after the clock is corrected.
    """

    def __init__(self) -> None:
        self._offset = math.inf

    def __call__(self, wall: float) -> float:
        """The Unix time; `wall` is the reading of the wall clock."""
        now = time.monotonic()
        self._offset = min(self._offset, wall - now)
        return now + self._offset


class Removed(NamedTuple):
    """What was removed."""

    results: int = 0
    others: int = 0
    """Superseded revisions, trace states and evidence."""
    reason: Removal = "age"
    """Why results were removed."""
    feedback: Mapping[Removal, int] = MappingProxyType({})
    """Answers of people, which are among the others, too."""


class Cleaning:
    """Removes results that are no longer kept."""

    def __init__(
        self,
        retention: Retention,
        windows: WindowBounds,
        clean_evidence: Callable[[Connection, float, int], int],
    ) -> None:
        """Results that `windows` need after a restart are kept, unless too much is kept in all.

        `clean_evidence` deletes evidence beyond its own bounds: it gets the Unix time and the
        largest number of rows, and returns how many it has deleted.
        """
        self._clean_evidence = clean_evidence
        self.results_removed: dict[Removal, int] = {"age": 0, "space": 0}
        self.feedback_removed: dict[Removal, int] = {"age": 0, "space": 0}
        self._retention = retention
        self._windows = windows
        self._steady = SteadyWall()
        self._next_at = self._next_if_short_at = -math.inf
        self._unsearched: range | None = None
        """Keys of results that may be superseded; `None`: not known yet."""

    def clean(self, connection: Connection, wall: float, usage: Usage) -> Removed:
        """Remove something within a transaction, if it is time to or too much is kept; `wall` in
        Unix seconds. To be passed to `committed` after the transaction.
        """
        now, wall = time.monotonic(), self._steady(wall)
        if now < (self._next_if_short_at if usage.excess else self._next_at):
            return Removed()
        removed = self._remove(connection, wall, usage)
        if removed.results + removed.others < _MAX_ROWS:
            self._next_at = now + CLEAN_S
        if usage.excess:
            self._next_if_short_at = now + RETRY_S
        return removed

    def committed(self, removed: Removed) -> bool:
        """Count what was removed; returns whether there was anything."""
        self.results_removed[removed.reason] += removed.results
        for reason, answers in removed.feedback.items():
            self.feedback_removed[reason] += answers
        if not removed.results + removed.others:
            return False
        self._next_if_short_at = -math.inf
        return True

    def _remove(self, connection: Connection, wall: float, usage: Usage) -> Removed:
        is_short = usage.nearly_full or usage.excess > 0
        if is_short and (superseded := self._drop_superseded(connection)):
            return Removed(others=superseded)
        removed = self._drop_unneeded(connection, wall, is_short=is_short)
        if removed.results + removed.others or not usage.excess:
            return removed
        return self._drop_needed(connection, usage)

    def _drop_needed(self, connection: Connection, usage: Usage) -> Removed:
        max_bytes = self._retention.max_bytes
        states = removal.drop_large_trace_states(connection, max_bytes // OPEN_SHARE, _MAX_ROWS)
        if states:
            return Removed(others=states)
        excess = usage.excess + max_bytes // _SLACK
        if evidence := drop_oldest(connection, excess, _MAX_ROWS):
            return Removed(others=evidence)
        return Removed(removal.drop_oldest_results(connection, excess, _MAX_ROWS), reason="space")

    def _drop_unneeded(self, connection: Connection, wall: float, *, is_short: bool) -> Removed:
        kept_s, reason = self._retention.results_s, _AGE
        if is_short and self._windows.max_age_s < kept_s:
            kept_s, reason = self._windows.max_age_s, _SPACE
        dropped = drop_feedback(connection, self._retention, wall, _MAX_ROWS)
        return Removed(
            removal.drop_old_results(connection, wall - kept_s, _MAX_ROWS),
            removal.drop_trace_states(connection, _KEPT_TRACES, _MAX_ROWS)
            + self._clean_evidence(connection, wall, _MAX_ROWS)
            + sum(dropped.values()),
            reason,
            dropped,
        )

    def _drop_superseded(self, connection: Connection) -> int:
        """Search some of the results that the store had at first, until some are found."""
        if self._unsearched is None:
            first, last = connection.execute("SELECT min(id), max(id) FROM results").fetchone()
            self._unsearched = range(first or 0, (last or -1) + 1)
        removed = searched = 0
        while self._unsearched and not removed and searched < _MAX_SEARCHES:
            chunk, self._unsearched = self._unsearched[:_MAX_ROWS], self._unsearched[_MAX_ROWS:]
            removed = removal.drop_superseded_results(connection, chunk[0], chunk[-1])
            searched += 1
        return removed


def drop_feedback(
    connection: Connection, retention: Retention, wall: float, max_rows: int
) -> dict[Removal, int]:
    """Delete answers of people that are too old or too many; returns how many, by reason."""
    return {
        "age": feedback.drop_old(connection, wall - retention.results_s, max_rows),
        "space": feedback.drop_excess(connection, retention.max_answers, max_rows),
    }

"""Moves traces, turns of open conversations, sessions, and evaluations that wait for judges.

Traces belong to the partition of their id; turns to that of their conversation, and evaluations of
turns too. A trace must know which of its turns another scorer has from now on, so that it tells
that one when late spans change them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from typing import Any, NamedTuple

import orjson

from pathgauge.collector.core.evaluations.conversations import conversation_key
from pathgauge.collector.core.evaluations.evaluator import SESSION, EvaluationKey
from pathgauge.collector.core.partitioning import (
    partition_of_conversation,
    partition_of_session,
    partition_of_trace,
)
from pathgauge.collector.core.published import forwarded_fingerprint, own_fingerprint
from pathgauge.collector.core.sessions.session import conversation_of
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.store import pending_judgments, sessions, turns
from pathgauge.collector.store.resharding.in_transit import TurnsInTransit
from pathgauge.collector.store.resharding.source import Source
from pathgauge.collector.store.resharding.target import Target
from pathgauge.collector.store.schema import checksum
from pathgauge.scorers.types import Invocation

_TRACE_COLUMNS = "tenant, trace_id, closed, forgotten, known"
_INTO_TRACES = f"INSERT OR IGNORE INTO traces ({_TRACE_COLUMNS}, crc)"
# Of two rows with the same key the newer one stays.
_INTO_TURNS = f"INSERT OR REPLACE INTO turns ({turns.COLUMNS}, crc)"
_INTO_AWAITED = f"INSERT OR REPLACE INTO awaited ({pending_judgments.COLUMNS}, crc)"
_INTO_SESSIONS = f"INSERT OR REPLACE INTO sessions ({sessions.COLUMNS}, crc)"
_INTO_SESSION_TURNS = f"INSERT OR REPLACE INTO session_turns ({sessions.TURN_COLUMNS}, crc)"


class _Row(NamedTuple):
    """A row with a valid checksum."""

    at: float
    """The place among the rows of all sources, in the running time that they get."""
    source: Source
    columns: list[Any]


class StateMover:
    """Moves the states of all sources to all targets, after the requests."""

    def __init__(
        self,
        sources: Sequence[TurnsInTransit],
        targets: Sequence[Target],
        is_turn: Callable[[Invocation], bool],
    ) -> None:
        """`is_turn` tells whether an invocation belongs to a conversation, by the references that
        are active now.
        """
        self._in_transit = {one.receiver.name: one for one in sources}
        self._sources = [one.receiver for one in sources]
        self._targets = targets
        self._is_turn = is_turn
        self._homes: dict[EvaluationKey, int] = {}
        """The partitions of turns."""
        self._awaited: dict[EvaluationKey, int] = {}
        """The newest revisions that wait. A turn that has changed its conversation may wait twice.
        """
        self._foreign: dict[TraceKey, set[str]] = {}
        """The entry agents of turns that are not in the partition of their trace."""

    def move(self) -> None:
        """Move all rows. Raises `DamagedSourceError` and `sqlite3.Error`."""
        for row in self._merged("turns", turns.COLUMNS, place=5, order="at, id"):
            self._move_turn(row)
        self._move_sessions()
        for row in self._merged("awaited", pending_judgments.COLUMNS, place=3, order="at, id"):
            self._move_awaited(row)
        for row in self._merged("traces", _TRACE_COLUMNS, place=2, order="id"):
            self._move_trace(row)
        for target in self._targets:
            target.flush()

    def _merged(self, table: str, columns: str, *, place: int, order: str) -> Iterator[_Row]:
        """The rows of all sources by the time in the column at `place`. Those of one source keep
        their order; without a time they are as old as the row before.
        """
        return merge(
            *(_rows(source, table, columns, place, order) for source in self._sources),
            key=lambda row: row.at,
        )

    def _move_turn(self, row: _Row) -> None:
        tenant, conversation, scenario, trace_id, span_id, at, body = row.columns
        key = tenant, trace_id, span_id
        if self._in_transit[row.source.name].is_withdrawn(key):
            return
        home = partition_of_conversation((tenant, conversation, scenario), len(self._targets))
        self._place(key, home)
        moved = (*row.columns[:5], at + row.source.shift, body)
        self._targets[home].insert(_INTO_TURNS, (*moved, checksum(*moved)))

    def _move_sessions(self) -> None:
        """Sessions belong to the partition of their conversation, whatever their scenario."""
        homes: dict[TraceKey, int] = {}
        for row in self._merged("sessions", sessions.COLUMNS, place=2, order="at, id"):
            moved = sessions.shifted(row.columns, row.source.shift)
            conversation = sessions.read(row.columns).conversation
            tenant, name, *_ = moved
            home = partition_of_session(tenant, conversation, len(self._targets))
            homes[tenant, name] = home
            self._targets[home].insert(_INTO_SESSIONS, (*moved, checksum(*moved)))
        columns = sessions.TURN_COLUMNS
        for row in self._merged("session_turns", columns, place=4, order="at, id"):
            tenant, name, trace_id, span_id, at, body = row.columns
            if (tenant, name) in homes:
                turn = (tenant, name, trace_id, span_id, at + row.source.shift, body)
                target = self._targets[homes[tenant, name]]
                target.insert(_INTO_SESSION_TURNS, (*turn, checksum(*turn)))

    def _move_awaited(self, row: _Row) -> None:
        tenant, trace_id, span_id, at, *rest = row.columns
        key = tenant, trace_id, span_id
        revision = orjson.loads(rest[0])["revision"]
        if revision < self._awaited.get(key, 0):
            return
        self._awaited[key] = revision
        home = self._homes.get(key)
        if home is None:
            home = self._home_of_awaited(key, row.columns)
            self._place(key, home)
        moved = (*key, at + row.source.shift, *rest)
        self._targets[home].insert(_INTO_AWAITED, (*moved, checksum(*moved)))

    def _home_of_awaited(self, key: EvaluationKey, columns: list[Any]) -> int:
        try:
            invocation = pending_judgments.read(columns).invocation()
        except (TypeError, ValueError):  # written by another version
            return self._home_of_trace(key[1])
        if invocation.dialect == SESSION:
            conversation = conversation_of(invocation) or ""
            return partition_of_session(invocation.tenant, conversation, len(self._targets))
        if self._is_turn(invocation):
            return partition_of_conversation(conversation_key(invocation), len(self._targets))
        return self._home_of_trace(key[1])

    def _place(self, key: EvaluationKey, home: int) -> None:
        self._homes[key] = home
        if home != self._home_of_trace(key[1]):
            self._foreign.setdefault(key[:2], set()).add(key[2])

    def _move_trace(self, row: _Row) -> None:
        tenant, trace_id, closed, forgotten, text = row.columns
        target = self._targets[self._home_of_trace(trace_id)]
        source, known = row.source, orjson.loads(text)
        rows = [target.new_row(source.name, old) for old in known["rows"]]
        if None in rows:  # as when a store is restored
            rows, forgotten = [], forgotten or "late"
        known["rows"] = rows
        if known.get("next_reading"):
            known["next_reading"] += source.shift
        known["digests"] = self._digests((tenant, trace_id), known["digests"])
        if closed is not None:
            closed += source.shift
        moved = (tenant, trace_id, closed, forgotten, orjson.dumps(known).decode())
        target.insert(_INTO_TRACES, (*moved, checksum(*moved)))

    def _digests(self, key: TraceKey, digests: dict[str, list[Any]]) -> dict[str, Any]:
        if len(self._targets) == 1:
            return {span_id: own_fingerprint(*known) for span_id, known in digests.items()}
        foreign = self._foreign.get(key, ())
        return {
            span_id: forwarded_fingerprint(*known) if span_id in foreign else known
            for span_id, known in digests.items()
        }

    def _home_of_trace(self, trace_id: str) -> int:
        return partition_of_trace(trace_id, len(self._targets))


def _rows(source: Source, table: str, columns: str, place: int, order: str) -> Iterator[_Row]:
    newest = 0.0
    for _, found in source.guarded(source.tables.rows(table, columns, f"ORDER BY {order}")):
        if found[place] is not None:
            newest = max(newest, found[place] + source.shift)
        yield _Row(newest, source, found)

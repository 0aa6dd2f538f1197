"""Moves the journal: each request goes to the stores of the scorers that have its traces, and each
turn that waits there to the one that has its conversation.

Processed rows come first, and unprocessed ones after them, so that one position still says which
are which. A request of several scorers is split. Its processed pieces are not counted again, and
each unprocessed piece counts its own records.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from heapq import merge
from typing import Any, NamedTuple

from pathgauge.collector.core.otlp.split import NO_TRACE, split
from pathgauge.collector.core.partitioning import partition_of_trace
from pathgauge.collector.store import journal
from pathgauge.collector.store.journal import COLUMNS, TURN, DamagedError, Packer
from pathgauge.collector.store.resharding.in_transit import TurnsInTransit
from pathgauge.collector.store.resharding.source import Source
from pathgauge.collector.store.resharding.target import Target

_INTO = f"INSERT INTO journal ({COLUMNS})"
_SELECT = f"SELECT {COLUMNS} FROM journal WHERE id > ? AND id <= ? ORDER BY id"


class _Request(NamedTuple):
    """A row of a source with a sound head."""

    at: float
    """The time that it gets."""
    source: Source
    values: tuple[Any, ...]
    traces: Sequence[str]

    @property
    def is_turn(self) -> bool:
        """Whether it is a turn that another scorer has sent."""
        return bool(self.values[4] == TURN)


class RequestMover:
    """Moves the journals of all sources to all targets; the partition of a target is its index."""

    def __init__(
        self, sources: Sequence[TurnsInTransit], targets: Sequence[Target], wall: float
    ) -> None:
        """`wall` is the Unix time."""
        self._in_transit = {one.receiver.name: one for one in sources}
        self._sources = [one.receiver for one in sources]
        self._targets = targets
        self._packer = Packer()
        self._wall = wall

    def move(self) -> None:
        """Move all rows. Raises `DamagedSourceError` and `sqlite3.Error`."""
        for request in self._merged([(source, 0, source.row) for source in self._sources]):
            if request.traces and not request.is_turn:  # others are not needed any more
                self._move(request)
        for target in self._targets:
            target.processed = target.last_row
        ends = [(source, source.row, sys.maxsize) for source in self._sources]
        at = max(target.at for target in self._targets)
        for request in self._merged(ends):
            at = max(at, request.at)
            self._move_turn(request) if request.is_turn else self._move(request)
        self._move_sent_turns(at)
        for target in self._targets:
            target.flush()
            target.suspect = max((self._suspect(one, target) for one in self._sources), default=0)

    def _merged(self, parts: Sequence[tuple[Source, int, int]]) -> Iterator[_Request]:
        """The requests of all sources by their time. Those of one source keep their order."""
        return merge(
            *(_requests(source, after, up_to) for source, after, up_to in parts),
            key=lambda request: request.at,
        )

    def _move(self, request: _Request) -> None:
        of_part: dict[int, set[str]] = {}
        for trace_id in request.traces or (NO_TRACE,):
            of_part.setdefault(self._part_of(trace_id), set()).add(trace_id)
        if len(of_part) == 1:
            [part] = of_part
            row = self._next_row(request, part)
            self._targets[part].insert(_INTO, journal.renumbered(request.values, row, request.at))
            return
        try:
            batch = journal.unpack(request.values).batch
        except DamagedError:
            for part, trace_ids in of_part.items():
                row = self._next_row(request, part)
                damaged = journal.unreadable(request.values, row, request.at, trace_ids)
                self._targets[part].insert(_INTO, damaged)
            return
        wall: float = request.values[2]
        for part, piece in split(batch, self._part_of).items():
            row = self._next_row(request, part)
            self._targets[part].insert(_INTO, self._packer.pack(row, request.at, wall, piece))

    def _move_turn(self, request: _Request) -> None:
        row: int = request.values[0]
        try:
            batch = journal.unpack(request.values).batch
        except DamagedError as error:
            request.source.quarantine("journal", row, str(error))
            return
        part = self._in_transit[request.source.name].part_in_journal(row, batch)
        if part is not None:
            new = self._next_row(request, part)
            self._targets[part].insert(_INTO, journal.renumbered(request.values, new, request.at))

    def _move_sent_turns(self, at: float) -> None:
        for receiver in self._in_transit.values():
            for part, batch in receiver.sent():
                target = self._targets[part]
                target.last_row += 1
                target.insert(_INTO, self._packer.pack(target.last_row, at, self._wall, batch))

    def _suspect(self, source: Source, target: Target) -> int:
        numbers = target.numbers.get(source.name)
        return numbers.up_to(source.suspect) if numbers is not None else 0

    def _next_row(self, request: _Request, part: int) -> int:
        return self._targets[part].next_row(request.source.name, request.values[0])

    def _part_of(self, trace_id: str) -> int:
        return partition_of_trace(trace_id, len(self._targets))


def _requests(source: Source, after: int, up_to: int) -> Iterator[_Request]:
    rows = source.connection.execute(_SELECT, (after, up_to))
    for values in source.guarded(rows):
        head = journal.head(values)
        if isinstance(head, int):
            source.quarantine("journal", head, "checksum")
        else:
            yield _Request(head.at + source.shift, source, values, head.traces)

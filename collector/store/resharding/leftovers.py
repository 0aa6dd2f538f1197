"""What scorers leave to the main file when their folders are replaced: publications that the gauge
has not read, what is known of agent versions, and the quarantine.

The publications become rows of the main file's own table `publications`. Whoever writes results
applies them before anything else, and deletes each in the transaction that stores its results.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import orjson

from pathgauge.collector.core.agent_records import NAME as AGENT_RECORDS
from pathgauge.collector.store import outbox
from pathgauge.collector.store.outbox import OutboxReader, Outgoing
from pathgauge.collector.store.resharding.source import Source
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import Connection, insert

_INTO_COUNTS = "INSERT OR REPLACE INTO counts (name, state, crc)"


def left_publications(main: Path, after: int, max_bytes: int) -> list[Outgoing]:
    """Publications that earlier scorers have left, after row `after`, until their bodies reach
    `max_bytes`; in the order in which they have to be applied.
    """
    return OutboxReader(main).publications(after, max_bytes)


def leave(main: Connection, scorers: Sequence[Source]) -> None:
    """Write what these scorers leave, in the transaction that puts others in their place."""
    read = outbox.published(main)
    for scorer in scorers:
        after = read.get(scorer.name, 0)
        found = scorer.connection.execute(
            "SELECT body, crc FROM publications WHERE id > ? ORDER BY id", (after,)
        )
        for row in scorer.guarded(found):
            insert(main, "INSERT INTO publications (body, crc)", [row])
    outbox.forget_published(main)
    _leave_quarantine(main, scorers)


def quarantine(main: Connection, sources: Iterable[Source]) -> None:
    """Record the rows that were not moved because they are damaged."""
    rows = [
        (time.time(), f"{source.name} {table} {row}".lstrip(), reason)
        for source in sources
        for (table, row), reason in source.damaged.items()
    ]
    insert(main, "INSERT INTO quarantine (at, source, reason)", rows)


def agent_records(sources: Iterable[Source]) -> dict[str, list[float]]:
    """What all of these processes together have seen of each agent version, by the name of the row
    of the table `counts`: the newest hour, and each record that one of them has seen.
    """
    known: dict[str, list[float]] = {}
    for source in sources:
        for _, (name, state) in source.guarded(source.tables.rows("counts", "name, state")):
            if orjson.loads(name)[0] == AGENT_RECORDS:
                seen = orjson.loads(state)
                known[name] = list(map(max, known.get(name, seen), seen))
    return known


def put_counts(connection: Connection, counts: dict[str, list[float]]) -> None:
    """Write counts into another store, by the names of their rows."""
    rows = [(name, orjson.dumps(state).decode()) for name, state in counts.items()]
    insert(connection, _INTO_COUNTS, [(*row, checksum(*row)) for row in rows])


def _leave_quarantine(main: Connection, scorers: Iterable[Source]) -> None:
    for scorer in scorers:
        found = scorer.connection.execute("SELECT at, source, reason FROM quarantine")
        rows = [(at, f"{scorer.name} {row}", reason) for at, row, reason in scorer.guarded(found)]
        insert(main, "INSERT INTO quarantine (at, source, reason)", rows)

"""What the last process left, put together: tables come in, `Restored` goes out; damaged rows are
told to `quarantine`.

No body of the journal is read here: which traces a row belongs to is written beside it, so that a
journal of gigabytes is known in seconds and within little memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import orjson
import structlog
from pydantic import ValidationError

from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.windows import Recent
from pathgauge.collector.core.internal_telemetry import Row
from pathgauge.collector.core.pipeline_events import Remembered
from pathgauge.collector.core.traces import TraceKey, TraceSnapshot
from pathgauge.collector.store import Restored, Turn, journal, pending_judgments, results
from pathgauge.collector.store.schema import checksum
from pathgauge.scorers.types import Invocation

_log = structlog.get_logger(__name__)

MAX_RESULTS = 300_000
"""How many results are looked through for windows: a few seconds, as senders do not wait for much
longer.
"""
_EVALUATION = "tenant, trace_id, span_id, revision, at, agent, scenario, body"

Quarantine = Callable[[str, int, str], None]
"""Sets a damaged row aside: table, key, reason."""


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """How far back the windows over recent scores reach."""

    max_age_s: float = 3600.0


@dataclass(slots=True)
class _Found:
    """The rows of one trace in the journal."""

    first: float
    last: float = 0.0
    rows: list[int] = field(default_factory=list)


class _Known(NamedTuple):
    closed: float | None
    forgotten: str | None
    rows: tuple[int, ...]
    completed: bool
    fingerprints: Mapping[str, tuple[str, int]]


@dataclass(frozen=True, slots=True)
class _Tables:
    """What is read, and where rows go that do not hold what was written."""

    connection: sqlite3.Connection
    quarantine: Quarantine

    def rows(
        self, table: str, columns: str, rest: str = "", values: Sequence[str] = ()
    ) -> Iterator[tuple[int, list[Any]]]:
        """The keys of sound rows, and their columns."""
        damaged = []
        try:
            for row, *written, crc in self.connection.execute(
                f"SELECT id, {columns}, crc FROM {table} {rest}", values
            ):
                if crc == checksum(*written):
                    yield row, written
                else:
                    damaged.append(row)
        finally:
            for row in damaged:
                self.quarantine(table, row, "checksum")


def restore(connection: sqlite3.Connection, quarantine: Quarantine) -> Restored:
    """Everything but the bodies of the journal, and results."""
    tables = _Tables(connection, quarantine)
    [requests] = connection.execute("SELECT count(*) FROM journal").fetchone()
    last_row, last_at = _newest(tables)
    row, at = _place(connection, last_row, last_at)
    return Restored(
        row=row,
        last_row=max(row, last_row),
        requests=requests,
        at=max(at, last_at),
        traces=tuple(_traces(tables, row)),
        turns=tuple(_turns(tables)),
        counts=tuple(_counts(tables)),
        awaited=tuple(_awaited(tables)),
    )


def _newest(tables: _Tables) -> tuple[int, float]:
    """The number and the time of the last sound row of the journal; damaged ones behind it are set
    aside: new rows take their numbers.
    """
    damaged, newest = [], (0, 0.0)
    for place in journal.newest_places(tables.connection):
        if not isinstance(place, int):
            newest = place.row, place.at
            break
        damaged.append(place)
    for row in damaged:
        tables.quarantine("journal", row, "checksum")
    return newest


def _place(connection: sqlite3.Connection, last_row: int, last_at: float) -> tuple[int, float]:
    """Up to which row, and until when, the last process came."""
    meta = dict(connection.execute("SELECT name, value FROM meta"))
    row, at = meta.get("row", 0), meta.get("at", 0.0)
    if "row" in meta and meta.get("crc") != checksum(row, at):
        # Their traces are read in any case. What was counted already must not be counted again, and
        # nobody knows what was not.
        _log.error(
            "the place in the journal was damaged; requests that were not counted yet will not be",
            requests=last_row,
        )
        return last_row, last_at
    if not journal.is_possible(at):
        _log.error(
            "the time that was reached was damaged; it goes on from the newest request", at=at
        )
        return row, last_at
    return row, at


def _traces(tables: _Tables, up_to: int) -> Iterator[Remembered]:
    found: dict[TraceKey, _Found] = {}
    damaged = []
    for place in journal.places(tables.connection, up_to):
        if isinstance(place, int):
            damaged.append(place)
            continue
        for trace_id in place.traces:
            trace = found.setdefault((place.tenant, trace_id), _Found(place.at))
            trace.last = place.at
            trace.rows.append(place.row)
    known = dict(_known(tables))
    for row in damaged:
        tables.quarantine("journal", row, "checksum")
    for key, known_trace in known.items():
        yield _remembered(key, found.pop(key, None), known_trace)
    for key, trace in found.items():
        yield Remembered(TraceSnapshot(key, tuple(trace.rows), trace.first, trace.last), {})


def _remembered(key: TraceKey, found: _Found | None, known: _Known) -> Remembered:
    present = found or _Found(0.0)
    forgotten = known.forgotten
    closed = known.closed
    if forgotten is None and not set(known.rows) <= set(present.rows):
        forgotten = "late"  # its rows were given back, save those that other traces still need
    if forgotten is None and present.rows and present.rows[-1] > max(known.rows, default=0):
        closed = None  # something came after it was read
    standing = TraceSnapshot(
        key, tuple(present.rows), present.first, present.last, closed, forgotten, known.completed
    )
    return Remembered(standing, known.fingerprints)


def _known(tables: _Tables) -> Iterator[tuple[TraceKey, _Known]]:
    for _, (tenant, trace_id, closed, forgotten, text) in tables.rows(
        "traces", "tenant, trace_id, closed, forgotten, known", "ORDER BY id"
    ):
        known = orjson.loads(text)
        fingerprints = {
            span_id: (digest, revision) for span_id, (digest, revision) in known["digests"].items()
        }
        yield (
            (tenant, trace_id),
            _Known(closed, forgotten, tuple(known["rows"]), known["completed"], fingerprints),
        )


def _turns(tables: _Tables) -> Iterator[Turn]:
    columns = "tenant, conversation, scenario, trace_id, span_id, at, body"
    unreadable = []
    for row, (tenant, conversation, scenario, trace_id, span_id, at, body) in tables.rows(
        "turns", columns, "ORDER BY at, id"
    ):
        if isinstance(body, bytes):
            newest = Invocation(
                trace_id,
                span_id,
                "",
                tenant=tenant,
                conversation_id=conversation,
                scenario_id=scenario,
            )
            yield Turn(newest, at, beyond=int(body))
            continue
        try:
            yield Turn(results.INVOCATION.validate_json(body), at)
        except ValidationError:  # of another version
            unreadable.append(row)
    for row in unreadable:
        tables.quarantine("turns", row, "unreadable")


def _awaited(tables: _Tables) -> Iterator[PendingJudgment]:
    unreadable = []
    for row, columns in tables.rows("awaited", pending_judgments.COLUMNS, "ORDER BY at, id"):
        try:
            found = pending_judgments.read(columns)
            found.invocation()
        except (TypeError, ValueError):  # of another version
            unreadable.append(row)
        else:
            yield found
    for row in unreadable:
        tables.quarantine("awaited", row, "unreadable")


def _counts(tables: _Tables) -> Iterator[Row]:
    for _, (name, state) in tables.rows("counts", "name, state"):
        yield Row(orjson.loads(name), orjson.loads(state))


def evaluations_since(
    connection: sqlite3.Connection, since: float, quarantine: Quarantine
) -> Iterator[tuple[int, Recent]]:
    """The evaluations that were first recorded at the Unix time `since` or later, the last one
    first, and the keys of their rows.

    They are read one by one, as there may be a million. Each is what its newest revision says.
    """
    tables = _Tables(connection, quarantine)
    newest: dict[tuple[str, str, str], int] = {}  # of those whose first revision is still to come
    for row, evaluation in tables.rows(
        "results", _EVALUATION, f"WHERE withdrawn = 0 ORDER BY id DESC LIMIT {MAX_RESULTS}"
    ):
        tenant, trace_id, span_id, revision, at, *_ = evaluation
        if at < since:
            break
        key = tenant, trace_id, span_id
        if revision > 0:
            newest.setdefault(key, row)
        elif (revised := newest.pop(key, None)) is None:
            yield row, _recent(evaluation, at)
        else:
            yield (
                row,
                _recent(
                    connection.execute(
                        f"SELECT {_EVALUATION} FROM results WHERE id = ?", (revised,)
                    ).fetchone(),
                    at,
                ),
            )


def _recent(evaluation: Sequence[Any], at: float) -> Recent:
    tenant, trace_id, span_id, _, _, agent, scenario, body = evaluation
    said = orjson.loads(body)
    scored = [one for one in said["criteria"] if one["value"] is not None]
    scores = {one["name"]: one["value"] for one in scored}
    judges = {one["name"]: one["judge"] for one in scored if "judge" in one}
    return Recent(
        (tenant, trace_id, span_id),
        agent,
        scenario,
        said["reference"],
        at,
        scores,
        said["agent_version"],
        judges,
    )

"""Reads the results that windows of recent scores need after a restart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

import orjson

from pathgauge.collector.core.evaluations.recent import Recent, Wants
from pathgauge.collector.store.restore import Quarantine, Tables
from pathgauge.collector.store.sql import MAX_KEYS, Connection, each, max_skew_s, with_keys

_Names: TypeAlias = "tuple[str, str, str]"
"""Tenant, agent and scenario."""
_Key: TypeAlias = "tuple[str, str, str]"
"""Tenant, trace id and span id."""

MAX_RESULTS = 300_000
"""How many of the newest rows are looked at to fill windows. To look at all of them takes about a
second, and senders do not wait much longer.
"""
SLICE = 500
"""Rows that are read before the next look at which series have full windows."""
MAX_UNWANTED = 500
"""Series that one statement leaves out."""
_HEAD = "r.id, r.tenant, r.trace_id, r.span_id, r.revision, r.at, r.agent, r.scenario"
_TYPES = (int, str, str, str, int, float, str, str)
_EVALUATION = "tenant, trace_id, span_id, revision, at, agent, scenario, body"


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """How far back the windows of recent scores reach."""

    max_age_s: float = 3600.0


class _Found(NamedTuple):
    """An evaluation that a window may hold."""

    row: int
    """The key of its first revision."""
    newest: int
    """The key of its newest one."""
    at: float
    """When the first one was recorded, in Unix seconds."""


def evaluations_since(
    connection: Connection,
    since: float,
    quarantine: Quarantine,
    wants: Wants,
    published: str = "",
) -> Iterator[tuple[int, Recent]]:
    """The evaluations that were first recorded at the Unix time `since` or later, newest first,
    each with the key of its row. An evaluation has the values of its newest revision. `published`
    is a further condition.

    There may be a million, of which windows hold few. So most are not read whole.
    """
    found = _find(connection, since, wants, published)
    while chunk := list(islice(found, MAX_KEYS)):
        rows = [key for one in chunk for key in dict.fromkeys((one.newest, one.row))]
        tables = Tables(connection, quarantine, f"WHERE id IN ({','.join('?' * len(rows))})")
        whole = dict(tables.rows("results", _EVALUATION, values=rows))
        for one in chunk:
            evaluation = whole.get(one.newest) or whole.get(one.row)
            if evaluation is not None:
                yield one.row, _recent(evaluation, one.at)


def _find(connection: Connection, since: float, wants: Wants, published: str) -> Iterator[_Found]:
    reached = since - max_skew_s(connection)
    [newest] = connection.execute("SELECT coalesce(max(id), 0) FROM results").fetchone()
    lowest, below = max(newest - MAX_RESULTS, 0), newest + 1
    revised = _Revised(connection, since, published)
    unwanted: set[_Names] = set()
    while rows := _slice(connection, lowest, below, unwanted, published):
        revised.add(rows)
        refused: Counter[_Names] = Counter()
        for columns in rows:
            row, tenant, _, _, revision, at, agent, scenario = columns
            yield from revised.down_to(row)
            if not _is_sound(columns):
                yield _Found(row, row, since)  # its checksum will tell
            elif at < reached:
                return
            elif at < since or revision > 0 or row == revised.last:
                continue
            elif wants(tenant, agent, scenario):
                yield _Found(row, row, at)
            else:
                refused[tenant, agent, scenario] += 1
        # Names that senders invent come once.
        often = (names for names, times in refused.items() if times > 1)
        unwanted.update(islice(often, MAX_UNWANTED - len(unwanted)))
        below = rows[-1][0]
    yield from revised.down_to(lowest + 1)


def _slice(
    connection: Connection, lowest: int, below: int, unwanted: Collection[_Names], published: str
) -> list[Sequence[Any]]:
    """The next rows, the newest first. A window that is full stays full, so the database passes
    over first revisions that are unwanted, in a tenth of the time that it takes to look at them.
    """
    others = ""
    if unwanted:
        names = ",".join(["(?,?,?)"] * len(unwanted))
        others = f"AND (revision = 0 AND (tenant, agent, scenario) IN (VALUES {names})) IS NOT TRUE"
    select = (
        f"SELECT {_HEAD} FROM results AS r WHERE id > ? AND id < ? AND withdrawn = 0 {published}"
        f" {others} ORDER BY id DESC LIMIT {SLICE}"
    )
    values = [name for names in unwanted for name in names]
    return list(each(connection, select, [lowest, below, *values]))


def _is_sound(columns: Sequence[Any]) -> bool:
    return tuple(map(type, columns)) == _TYPES


class _Revised:
    """Evaluations with a later revision. All are wanted, because it may have other names and more
    scores than anybody has counted.
    """

    def __init__(self, connection: Connection, since: float, published: str) -> None:
        self.last = 0
        """The key of the first revision that was returned last."""
        self._connection = connection
        self._since = since
        self._published = published
        self._known: set[_Key] = set()
        self._waiting: list[tuple[int, _Found]] = []
        """A heap. The one whose first revision is the newest comes first."""

    def add(self, rows: Iterable[Sequence[Any]]) -> None:
        """Look for later revisions among these rows, and for the first ones of each."""
        newest: dict[_Key, int] = {}
        for columns in rows:
            row, tenant, trace_id, span_id, revision, at, _, _ = columns
            if revision == 0 or not _is_sound(columns):
                continue
            key = tenant, trace_id, span_id
            if at >= self._since and key not in self._known:
                self._known.add(key)
                newest[key] = row
        found = with_keys(
            self._connection,
            "newest, tenant, trace_id, span_id",
            [(row, *key) for key, row in newest.items()],
            f"SELECT keys.newest, {_HEAD} FROM keys CROSS JOIN results AS r"
            " WHERE r.trace_id = keys.trace_id AND r.span_id = keys.span_id"
            " AND r.tenant = keys.tenant AND r.revision = 0 AND r.id < keys.newest"
            f" AND r.withdrawn = 0 {self._published}",
        )
        for row, *columns in found:
            if _is_sound(columns):
                first, at = columns[0], columns[5]
                heappush(self._waiting, (-first, _Found(first, row, at)))

    def down_to(self, row: int) -> Iterator[_Found]:
        """Those whose first revision has this key or a greater one, the newest first."""
        while self._waiting and -self._waiting[0][0] >= row:
            _, found = heappop(self._waiting)
            self.last = found.row
            if found.at >= self._since:
                yield found


def _recent(evaluation: Sequence[Any], at: float) -> Recent:
    tenant, trace_id, span_id, _, _, agent, scenario, text = evaluation
    body = orjson.loads(text)
    scored = [result for result in body["criteria"] if result["value"] is not None]
    return Recent(
        (tenant, trace_id, span_id),
        agent,
        scenario,
        body["reference"],
        at,
        {result["name"]: result["value"] for result in scored},
        body["agent_version"],
        {result["name"]: result["judge"] for result in scored if "judge" in result},
    )

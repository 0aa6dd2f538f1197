"""Reads rows of results, newest first.

Where an index answers a filter, all rows of it match. Otherwise the database looks at the rows, a
window of keys at a time: Python would have to take the interpreter lock back from the scoring for
each of them, and a statement without bounds could look for seconds.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple, TypeAlias

import orjson

from pathgauge.collector.core.evaluations.label_values import (
    MAX_NAME_BYTES,
    MAX_SCENARIO_BYTES,
    beginning,
    may_be_cut,
)
from pathgauge.collector.store.queries.filter import Filter, oldest_of
from pathgauge.collector.store.queries.stored_result import Row
from pathgauge.collector.store.schema import text_of
from pathgauge.collector.store.sql import (
    MAX_ID,
    Connection,
    Query,
    SharedConnection,
    max_skew_s,
    newest_first,
)

FIRST_WINDOW = 1_000
"""Keys that are looked at with one statement. As long as that is fast, the next looks at twice as
many.
"""
_MAX_WINDOW = 8_000
"""Beyond it, rows that are not in memory could take seconds."""
_WINDOW_S = 0.01
_COLUMNS = ", ".join(Row._fields)
_MAX_TENANTS = 1_000
_MAX_VERDICTS = 64
_CUT = {"agent": MAX_NAME_BYTES, "version": MAX_NAME_BYTES, "scenario": MAX_SCENARIO_BYTES}
"""The size at which metrics cut names."""
_IN_COLUMNS = "agent", "scenario", "category", "signature"
_IN_BODY = "version", "criterion", "reason", "flag"

_Conditions: TypeAlias = Sequence[tuple[str, str | int]]


class Looked(NamedTuple):
    """All rows with this key or a greater one were looked at."""

    id: int


class _Selection(NamedTuple):
    """What an index answers."""

    hint: str
    columns: Mapping[str, str]

    def query(self, lower: int, upper: int, also: _Conditions = ()) -> Query:
        """The rows with keys from `lower` until `upper`."""
        conditions: list[tuple[str, str | int]] = [("id < ?", upper), ("id >= ?", lower)]
        conditions += [(f"{name} = ?", text_of(value)) for name, value in self.columns.items()]
        conditions += also
        where = " AND ".join(text for text, _ in conditions)
        # Of a trace there are few rows. `+id` keeps databases from reading all others in the order
        # of `id`.
        order = "+id" if "trace_id" in self.columns else "id"
        return Query(
            f"SELECT {_COLUMNS} FROM results {self.hint} WHERE {where} ORDER BY {order} DESC",
            [value for _, value in conditions],
        )


def rows(connection: Connection, wanted: Filter, before: int | None) -> Iterator[Row]:
    """The rows of the index that leaves the fewest. No other condition is checked. Names are whole,
    no labels of metrics.
    """
    upper = _upper(connection, wanted, before)
    return _stream(connection, [one.query(0, upper) for one in _selections(connection, wanted)])


def search(connection: Connection, wanted: Filter, before: int | None) -> Iterator[Row | Looked]:
    """The rows that can match. Between two of them, a `Looked` says how far the search has come, so
    that it can stop also where nothing matches.
    """
    labels = {name: None for name in ("agent", "scenario") if _is_label(wanted, name)}
    selections = _selections(connection, replace(wanted, **labels))
    also = _conditions(wanted, selections)
    if not also:
        yield from rows(connection, wanted, before)
        return
    [first, last] = connection.execute(
        "SELECT (SELECT min(id) FROM results), (SELECT max(id) FROM results)"
    ).fetchone()
    if last is None:
        return
    upper = min(_upper(connection, wanted, before), last + 1)
    floor = max(first, _first_since(connection, wanted))
    size = FIRST_WINDOW
    while upper > floor:
        lower, began = max(floor, upper - size), time.monotonic()
        yield from _stream(connection, [one.query(lower, upper, also) for one in selections])
        upper = lower
        if time.monotonic() - began < _WINDOW_S:
            size = min(2 * size, _MAX_WINDOW)
        if upper > floor:
            yield Looked(upper)


def tenants(connection: Connection) -> list[str]:
    """The tenants that have results. An index has them first, so only its jumps are read."""
    return _different(connection, "tenant", "", (), _MAX_TENANTS)


def verdicts(connection: Connection, among: Sequence[str | None]) -> list[tuple[str | None, str]]:
    """The verdicts on invocations of each of these tenants; `None`: of all. A later version of
    pathgauge may have written some that this one does not know.
    """
    if len(among) > 1 and isinstance(connection, SharedConnection):
        # Each statement is a journey to the server, which has an index for all tenants.
        return list(product(among, _verdicts(connection, None)))
    return [(one, verdict) for one in among for verdict in _verdicts(connection, one)]


def _verdicts(connection: Connection, tenant: str | None) -> list[str]:
    owner, values = ("", ()) if tenant is None else (" AND tenant = ?", (text_of(tenant),))
    found = _different(connection, "verdict", owner, values, _MAX_VERDICTS)
    return [verdict for verdict in found if verdict]  # older revisions have none


def _different(
    connection: Connection, column: str, owner: str, values: Sequence[str], limit: int
) -> list[str]:
    """The values of a column that an index has first, or behind that of `owner`. Only the jumps
    between them are read.
    """
    least = f"SELECT min({column}) FROM results WHERE {column}"
    found = connection.execute(
        f"WITH RECURSIVE found(name) AS (SELECT ({least} >= ''{owner}) UNION ALL"
        f" SELECT ({least} > name{owner}) FROM found WHERE name IS NOT NULL)"
        " SELECT name FROM found WHERE name IS NOT NULL LIMIT ?",
        (*values, *values, limit),
    )
    return [name for (name,) in found]


def _selections(connection: Connection, wanted: Filter) -> list[_Selection]:
    if wanted.trace_id is not None:
        return [_Selection("", {"trace_id": wanted.trace_id})]
    every = tenants(connection)
    among = every if wanted.tenant is None else [wanted.tenant]
    verdict = _verdict(wanted)
    simple = _with_any_verdict(wanted, among, every) if verdict is None else None
    if simple is not None:
        return [simple]
    index, scenario = "INDEXED BY results_by_verdict", {}
    if wanted.scenario is not None:
        index, scenario = "INDEXED BY results_by_scenario", {"scenario": wanted.scenario}
    owners: Sequence[str | None] = among
    if wanted.tenant is None and isinstance(connection, SharedConnection):
        owners = [None]  # PostgreSQL has an index for all tenants
    pairs = verdicts(connection, owners) if verdict is None else product(owners, [verdict])
    return [_Selection(index, {**_owner(one), **scenario, "verdict": each}) for one, each in pairs]


def _owner(tenant: str | None) -> dict[str, str]:
    return {} if tenant is None else {"tenant": tenant}


def _with_any_verdict(
    wanted: Filter, among: Sequence[str], every: Sequence[str]
) -> _Selection | None:
    """`None` if the verdicts have to be read one by one."""
    if wanted.scenario is None and among == every:
        return _Selection("NOT INDEXED", {})
    if len(among) != 1 or wanted.agent is None or wanted.scenario is None:
        return None
    series = {"tenant": among[0], "agent": wanted.agent, "scenario": wanted.scenario}
    return _Selection("INDEXED BY results_by_series", series)


def _conditions(wanted: Filter, selections: Sequence[_Selection]) -> _Conditions:
    """What no index answers. The texts in bodies are only necessary conditions."""
    if wanted.trace_id is not None or not selections:
        return ()
    found = []
    for name in _IN_COLUMNS:
        value = getattr(wanted, name)
        if value is not None and name not in selections[0].columns:
            if _is_label(wanted, name):
                found.append((f"instr({name}, ?) = 1", text_of(beginning(value))))
            else:
                found.append((f"{name} = ?", text_of(value)))
    for name in _IN_BODY:
        value = getattr(wanted, name)
        if value is not None:
            if _is_label(wanted, name):
                text = orjson.dumps(text_of(beginning(value))).decode()[:-1]
            else:
                text = orjson.dumps(text_of(value)).decode()
            found.append(("instr(body, ?) > 0", text))
    return found


def _is_label(wanted: Filter, name: str) -> bool:
    """Whether this may be a label of metrics, which stands for longer names."""
    value = getattr(wanted, name)
    return value is not None and name in _CUT and may_be_cut(value, _CUT[name])


def _verdict(wanted: Filter) -> str | None:
    """The only verdict on an invocation that can match; `None`: any can. That of a criterion need
    not be the worst.
    """
    if wanted.category is not None or wanted.signature is not None or wanted.verdict == "failed":
        return "failed"
    return wanted.verdict if wanted.criterion is None else None


def _stream(connection: Connection, queries: Sequence[Query]) -> Iterator[Row]:
    return map(Row._make, newest_first(connection, queries))


def _upper(connection: Connection, wanted: Filter, before: int | None) -> int:
    """No row with this key or a greater one is wanted."""
    upper = MAX_ID if before is None else before
    if wanted.until is None:
        return upper
    found = connection.execute(
        "SELECT id FROM results WHERE at >= ? ORDER BY at LIMIT 1",
        (wanted.until + max_skew_s(connection),),
    ).fetchone()
    return min(upper, found[0]) if found else upper


def _first_since(connection: Connection, wanted: Filter) -> int:
    """The key behind the last row that was stored before the wanted time."""
    if wanted.since is None:
        return 0
    found = connection.execute(
        "SELECT id FROM results WHERE at < ? ORDER BY at DESC LIMIT 1",
        (oldest_of(connection, wanted),),
    ).fetchone()
    return found[0] + 1 if found else 0

"""Reads the results that windows of recent scores need after a restart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from pathgauge.collector.core.evaluations.windows import Recent
from pathgauge.collector.store.restore import Quarantine, Tables
from pathgauge.collector.store.sql import Connection, max_skew_s

MAX_RESULTS = 300_000
"""How many results are read to fill windows. They take a few seconds, and senders do not wait much
longer.
"""
_EVALUATION = "tenant, trace_id, span_id, revision, at, agent, scenario, body"


@dataclass(frozen=True, slots=True)
class WindowBounds:
    """How far back the windows of recent scores reach."""

    max_age_s: float = 3600.0


def evaluations_since(
    connection: Connection, since: float, quarantine: Quarantine, published: str = ""
) -> Iterator[tuple[int, Recent]]:
    """The evaluations that were first recorded at the Unix time `since` or later, newest first,
    each with the key of its row. An evaluation has the values of its newest revision. `published`
    is a further condition.

    They are read one by one, because there may be a million.
    """
    tables = Tables(connection, quarantine, f"WHERE withdrawn = 0 {published}")
    reached = since - max_skew_s(connection)
    # Rows of the newest revisions whose first revision has not been reached yet.
    newest: dict[tuple[str, str, str], int] = {}
    for row, evaluation in tables.rows(
        "results", _EVALUATION, f"ORDER BY id DESC LIMIT {MAX_RESULTS}"
    ):
        tenant, trace_id, span_id, revision, at, *_ = evaluation
        if at < reached:
            break
        if at < since:
            continue
        key = tenant, trace_id, span_id
        if revision > 0:
            newest.setdefault(key, row)
            continue
        revised = newest.pop(key, None)
        if revised is None:
            yield row, _recent(evaluation, at)
            continue
        select = f"SELECT {_EVALUATION} FROM results WHERE id = ?"
        yield row, _recent(connection.execute(select, (revised,)).fetchone(), at)


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

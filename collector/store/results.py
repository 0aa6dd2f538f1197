"""Writes results: evaluations, what judges add to them, and withdrawals.

Of each result, two revisions are kept: the first, which was counted and says since when it is in
windows, and the newest. Only the newest has a verdict in its column, by which queries find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import orjson
import structlog

from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.pipeline_events import (
    Judged,
    PublishedEvent,
    ShadowJudged,
    Withdrawn,
)
from pathgauge.collector.store import Progress, feedback, session_members
from pathgauge.collector.store.result_rows import (
    COLUMNS,
    QUERY_COLUMNS,
    complete,
    row_of,
    with_judged,
    with_judged_in_shadow,
)
from pathgauge.collector.store.revisions import newest_revisions, outdated
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import MAX_KEYS, Connection, upsert

_log = structlog.get_logger(__name__)

_KEY = "trace_id = ? AND span_id = ? AND tenant = ?"


def write_results(connection: Connection, progress: Progress) -> Set[int]:
    """Write evaluations, results of judges and withdrawals, in the caller's transaction; returns
    the indexes of those outcomes that a newer revision replaces.
    """
    newest = newest_revisions(connection, progress.outcomes)
    replaced = outdated(progress.outcomes, newest)
    _write_evaluations(connection, progress, newest)
    for index, outcome in enumerate(progress.outcomes):
        if isinstance(outcome, Judged) and index not in replaced:
            _add_judged(connection, outcome.evaluation)
        elif isinstance(outcome, ShadowJudged):
            _add_judged_in_shadow(connection, outcome)
    feedback.write(connection, progress)
    return replaced


def _write_evaluations(
    connection: Connection, progress: Progress, newest: Mapping[EvaluationKey, int]
) -> None:
    evaluations = [event for event in progress.outcomes if isinstance(event, Evaluation)]
    withdrawn = {event.key for event in progress.outcomes if isinstance(event, Withdrawn)}
    kept = [one for one in evaluations if one.revision in (0, newest[one.key])]
    at = {id(event): progress.at_of(index) for index, event in enumerate(progress.outcomes)}
    # In the order of time, and a first revision before newer ones, also if they came otherwise.
    kept.sort(key=lambda one: (at[id(one)], one.revision > 0))
    rows = list(_storable(kept, lambda one: row_of(one, at[id(one)])))
    replacing = {one.key for one in kept if one.revision or one.key in withdrawn}
    _delete_revisions(connection, list(replacing))
    known = {one.key: newest[one.key] for one in kept}
    rows += _newer_rows(connection, known, replacing, progress.wall)
    upsert(
        connection,
        "results",
        f"{COLUMNS}, crc, {QUERY_COLUMNS}",
        "trace_id, span_id, tenant, revision",
        rows,
        reset="withdrawn",
    )
    session_members.write(connection, kept)
    connection.executemany(
        f"UPDATE results SET verdict = '' WHERE {_KEY} AND revision < ?",
        [(*key[1:], key[0], revision) for key, revision in known.items() if revision],
    )
    connection.executemany(
        f"UPDATE results SET withdrawn = 1, verdict = '' WHERE {_KEY}",
        [(trace_id, span_id, tenant) for tenant, trace_id, span_id in _void(progress.outcomes)],
    )


def _newer_rows(
    connection: Connection,
    newest: Mapping[EvaluationKey, int],
    written: Set[EvaluationKey],
    wall: float,
) -> Iterator[tuple[Any, ...]]:
    """The rows of newer revisions than those that are written, to be written anew: whoever reads
    the newest rows first expects them before the first revision, and rows in the order of time.
    """
    for key, revision in newest.items():
        if not revision or key in written:
            continue
        found = _find(connection, key, revision)
        if found is not None:
            *identity, _, agent, scenario, body = found[1]
            yield complete((*identity, wall, agent, scenario, body), orjson.loads(body))


def _void(events: Iterable[PublishedEvent]) -> list[EvaluationKey]:
    """The results that were withdrawn, and not published again."""
    last = {event.key: event for event in events if isinstance(event, Evaluation | Withdrawn)}
    return [key for key, event in last.items() if isinstance(event, Withdrawn)]


def _delete_revisions(connection: Connection, keys: Sequence[EvaluationKey]) -> None:
    """Delete all revisions of these results but the first."""
    for start in range(0, len(keys), MAX_KEYS):
        chunk = keys[start : start + MAX_KEYS]
        values = ", ".join(["(?, ?, ?)"] * len(chunk))
        connection.execute(
            f"WITH keys (tenant, trace_id, span_id) AS (VALUES {values})"
            " DELETE FROM results WHERE id IN (SELECT r.id FROM keys CROSS JOIN results AS r"
            " WHERE r.trace_id = keys.trace_id AND r.span_id = keys.span_id"
            " AND r.tenant = keys.tenant AND r.revision > 0)",
            [value for key in chunk for value in key],
        )


def _storable(
    evaluations: Iterable[Evaluation], to_row: Callable[[Evaluation], tuple[Any, ...]]
) -> Iterator[tuple[Any, ...]]:
    """The rows of evaluations. A value from a scorer or a sender that cannot be stored must not
    affect the other evaluations.
    """
    for evaluation in evaluations:
        try:
            yield to_row(evaluation)
        except Exception:
            _log.exception(
                "an evaluation cannot be stored", trace_id=evaluation.invocation.trace_id
            )


def _add_judged(connection: Connection, evaluation: Evaluation) -> None:
    """Add the results of judges to the row of their evaluation, unless the row was deleted already
    or is damaged.
    """
    found = _find(connection, evaluation.key, evaluation.revision)
    if found is None:
        return
    for row in _storable([evaluation], lambda one: with_judged(found[1], one)):
        connection.execute(
            "UPDATE results SET body = ?, crc = ?, verdict = ?, category = ?, signature = ?,"
            " conversation = ? WHERE id = ?",
            (*row[-6:], found[0]),
        )


def _add_judged_in_shadow(connection: Connection, judged: ShadowJudged) -> None:
    """Add the results of judges in shadow to the others in shadow, as `_add_judged` does."""
    found = _find(connection, judged.key, judged.revision)
    if found is None:
        return
    row = with_judged_in_shadow(found[1], judged.shadow)
    if row is not None:
        connection.execute(
            "UPDATE results SET body = ?, crc = ? WHERE id = ?",
            (row[-1], checksum(*row), found[0]),
        )


def _find(
    connection: Connection, key: EvaluationKey, revision: int
) -> tuple[int, tuple[Any, ...]] | None:
    """Number and columns of a revision; `None` if the row is deleted or damaged."""
    tenant, trace_id, span_id = key
    found = connection.execute(
        f"SELECT id, {COLUMNS}, crc FROM results WHERE {_KEY} AND revision = ?",
        (trace_id, span_id, tenant, revision),
    ).fetchone()
    if found is None or found[-1] != checksum(*found[1:-1]):
        return None
    return found[0], found[1:-1]

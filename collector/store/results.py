"""Writes the progress of the pipeline: results, turns, trace states and counts.

A result row holds scores, verdicts and thresholds, but no content of the telemetry. The turns of
open conversations are stored with their content, because a later turn may change their scores. For
turns that the pipeline dropped, one row holds their number; its body is a blob instead of text.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson
import structlog
from pydantic import TypeAdapter

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.internal_telemetry import Row
from pathgauge.collector.core.pipeline_events import Judged, StoredTrace, Withdrawn
from pathgauge.collector.store import Progress, pending_judgments
from pathgauge.collector.store.schema import checksum, delete, insert
from pathgauge.scorers.types import Invocation, Json

_log = structlog.get_logger(__name__)

INVOCATION = TypeAdapter(Invocation)

_KEY = "trace_id = ? AND span_id = ? AND tenant = ?"
_CONVERSATION = "tenant = ? AND conversation = ? AND scenario = ?"


def write(connection: sqlite3.Connection, progress: Progress) -> int:
    """Write `progress` in the caller's transaction; returns how many journal rows it deleted."""
    evaluations = [outcome for outcome in progress.outcomes if isinstance(outcome, Evaluation)]
    columns = "tenant, trace_id, span_id, revision, at, agent, scenario, body, crc"
    insert(
        connection,
        f"INSERT OR REPLACE INTO results ({columns})",
        list(_storable(evaluations, lambda one: _result(one, progress.wall))),
    )
    for outcome in progress.outcomes:
        if isinstance(outcome, Judged):
            _add_judged(connection, outcome.evaluation)
    pending_judgments.write(
        connection, progress.changes.judgments_begun, progress.changes.judgments_ended, progress.at
    )
    _write_turns(connection, progress)
    _write_traces(connection, progress.changes.traces)
    _write_counts(connection, progress.counts)
    position = [
        ("row", progress.row),
        ("at", progress.at),
        ("crc", checksum(progress.row, progress.at)),
    ]
    insert(connection, "INSERT OR REPLACE INTO meta (name, value)", position)
    return delete(connection, "journal", progress.changes.released_rows)


def _storable(
    evaluations: Iterable[Evaluation], row_of: Callable[[Evaluation], tuple[Any, ...]]
) -> Iterator[tuple[Any, ...]]:
    """The rows of evaluations. A value from a scorer or a sender that cannot be stored must not
    affect the other evaluations.
    """
    for evaluation in evaluations:
        try:
            yield row_of(evaluation)
        except Exception:
            _log.exception(
                "an evaluation cannot be stored", trace_id=evaluation.invocation.trace_id
            )


def _result(evaluation: Evaluation, wall: float) -> tuple[Any, ...]:
    invocation, reference = evaluation.invocation, evaluation.match.reference
    scenario = invocation.scenario_id if reference is None else reference.scenario_id
    body = {
        "criteria": _criteria(evaluation),
        "reference": reference.version if reference else None,
        "unmatched": evaluation.match.unmatched,
        "agent_version": invocation.agent_version,
        "dialect": invocation.dialect,
        "flags": sorted(invocation.flags),
        "closed_by": evaluation.closed_by,
        "start_ns": invocation.start_ns,
        "end_ns": invocation.end_ns,
    }
    text = orjson.dumps(body).decode()
    row = (
        *evaluation.key,
        evaluation.revision,
        wall,
        text_of(invocation.agent),
        text_of(scenario),
        text,
    )
    return (*row, checksum(*row))


def _criteria(evaluation: Evaluation) -> list[dict[str, Json]]:
    return [
        {
            "name": result.criterion.name,
            "scorer": f"{result.criterion.scorer.name} {result.criterion.scorer.version}",
            "value": result.score.value,
            "reason": result.score.reason,
            "verdict": result.verdict,
            "threshold": result.criterion.threshold,
            **({"judge": result.criterion.judge} if result.criterion.judge else {}),
        }
        for result in evaluation.results
    ]


def _add_judged(connection: sqlite3.Connection, evaluation: Evaluation) -> None:
    """Add the results of judges to the row of their evaluation, unless the row was deleted already
    or is damaged.
    """
    tenant, trace_id, span_id = evaluation.key
    columns = "tenant, trace_id, span_id, revision, at, agent, scenario, body"
    found = connection.execute(
        f"SELECT id, {columns}, crc FROM results WHERE {_KEY} AND revision = ?",
        (trace_id, span_id, tenant, evaluation.revision),
    ).fetchone()
    if found is None or found[-1] != checksum(*found[1:-1]):
        return
    for row in _storable([evaluation], lambda one: _with_judged(found[1:-1], one)):
        connection.execute(
            "UPDATE results SET body = ?, crc = ? WHERE id = ?", (*row[-2:], found[0])
        )


def _with_judged(row: tuple[Any, ...], evaluation: Evaluation) -> tuple[Any, ...]:
    body = orjson.loads(row[-1])
    body["criteria"] += _criteria(evaluation)
    row = (*row[:-1], orjson.dumps(body).decode())
    return (*row, checksum(*row))


def text_of(name: str | None) -> str:
    """A name from telemetry in a form that SQLite can store: lone surrogates are replaced."""
    return (name or "").encode("utf-8", "replace").decode()


def _write_turns(connection: sqlite3.Connection, progress: Progress) -> None:
    for key in progress.changes.orphaned_turns:
        _delete_turn(connection, key)
    for event in progress.outcomes:
        match event:
            case Withdrawn((tenant, trace_id, span_id)):
                connection.execute(
                    f"UPDATE results SET withdrawn = 1 WHERE {_KEY}", (trace_id, span_id, tenant)
                )
                _delete_turn(connection, event.key)
            case ConversationResult():
                conversation = (
                    event.tenant,
                    text_of(event.conversation_id),
                    text_of(event.reference.scenario_id),
                )
                connection.execute(f"DELETE FROM turns WHERE {_CONVERSATION}", conversation)
            case Evaluation() if _is_turn(event):
                _write_turn(connection, event, progress.at)


def _delete_turn(connection: sqlite3.Connection, key: EvaluationKey) -> None:
    tenant, trace_id, span_id = key
    connection.execute(f"DELETE FROM turns WHERE {_KEY}", (trace_id, span_id, tenant))


def _write_turn(connection: sqlite3.Connection, evaluation: Evaluation, at: float) -> None:
    if evaluation.match.dropped_turns:
        connection.execute(
            f"DELETE FROM turns WHERE {_CONVERSATION} AND typeof(body) = 'blob'",
            _conversation(evaluation.invocation),
        )
    columns = "tenant, conversation, scenario, trace_id, span_id, at, body, crc"
    rows = list(_storable([evaluation], lambda one: _turn(one, at)))
    insert(connection, f"INSERT OR REPLACE INTO turns ({columns})", rows)


def _is_turn(evaluation: Evaluation) -> bool:
    match = evaluation.match
    if not evaluation.invocation.conversation_id:
        return False
    expected = match.reference is not None and len(match.reference.turns) > 1
    return expected or match.unmatched == "unexpected_turn"


def _conversation(invocation: Invocation) -> tuple[str, str, str]:
    return invocation.tenant, text_of(invocation.conversation_id), text_of(invocation.scenario_id)


def _turn(evaluation: Evaluation, at: float) -> tuple[Any, ...]:
    invocation, dropped_turns = evaluation.invocation, evaluation.match.dropped_turns
    body: str | bytes = str(dropped_turns).encode()
    if not dropped_turns:
        body = INVOCATION.dump_json(invocation).decode()
    row = (*_conversation(invocation), invocation.trace_id, invocation.span_id, at, body)
    return (*row, checksum(*row))


def _write_traces(connection: sqlite3.Connection, traces: Iterable[StoredTrace]) -> None:
    rows = []
    for snapshot, fingerprints in ((trace.snapshot, trace.fingerprints) for trace in traces):
        known = orjson.dumps(
            {"rows": snapshot.rows, "digests": fingerprints, "completed": snapshot.completed}
        ).decode()
        row = (*snapshot.key, snapshot.closed_at, snapshot.forgotten, known)
        rows.append((*row, checksum(*row)))
    insert(
        connection,
        "INSERT OR REPLACE INTO traces (tenant, trace_id, closed, forgotten, known, crc)",
        rows,
    )


def _write_counts(connection: sqlite3.Connection, counts: Iterable[Row]) -> None:
    kept, dropped = [], []
    for key, state in counts:
        name = orjson.dumps(list(key)).decode()
        if state is None:
            dropped.append((name,))
        else:
            text = orjson.dumps(list(state)).decode()
            kept.append((name, text, checksum(name, text)))
    insert(connection, "INSERT OR REPLACE INTO counts (name, state, crc)", kept)
    connection.executemany("DELETE FROM counts WHERE name = ?", dropped)


def drop_old(
    connection: sqlite3.Connection, results_before: float, kept_traces: int, max_rows: int
) -> int:
    """Delete results older than the Unix time `results_before`, and the state of old traces without
    journal rows, at most `max_rows` of each; returns how many rows were deleted.
    """
    removed = connection.execute(
        "DELETE FROM results WHERE id IN (SELECT id FROM results WHERE at < ? ORDER BY at LIMIT ?)",
        (results_before, max_rows),
    ).rowcount
    oldest = connection.execute("SELECT min(at) FROM journal").fetchone()[0]
    newest = connection.execute("SELECT max(id) FROM traces").fetchone()[0] or 0
    removed += connection.execute(
        "DELETE FROM traces WHERE id IN (SELECT id FROM traces WHERE id <= :newest AND (closed <"
        " :oldest OR forgotten IS NOT NULL OR :oldest IS NULL) ORDER BY id LIMIT :max_rows)",
        {"newest": newest - kept_traces, "oldest": oldest, "max_rows": max_rows},
    ).rowcount
    return removed

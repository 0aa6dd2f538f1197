"""What the pipeline said, as rows: `Progress` comes in, statements of one transaction go to the
database.

A result row holds no content of the telemetry: scores, verdicts and what they were measured
against. The turns of conversations that are not finished are the exception, as a later turn may
have them scored again. Of those that the pipeline did not keep, one row has the number: its body is
no text.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import orjson
import structlog
from pydantic import TypeAdapter

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.internal_telemetry import Row
from pathgauge.collector.core.pipeline_events import Judged, Remembered, Withdrawn
from pathgauge.collector.store import Progress, pending_judgments
from pathgauge.collector.store.schema import checksum, delete, insert
from pathgauge.scorers.types import Invocation, Json

_log = structlog.get_logger(__name__)

INVOCATION = TypeAdapter(Invocation)

_KEY = "trace_id = ? AND span_id = ? AND tenant = ?"
_CONVERSATION = "tenant = ? AND conversation = ? AND scenario = ?"


def write(connection: sqlite3.Connection, progress: Progress) -> int:
    """Everything of `progress`; the transaction is the caller's. Returns how many journal rows it
    removed.
    """
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
        connection, progress.changes.awaited, progress.changes.settled, progress.at
    )
    _write_turns(connection, progress)
    _write_traces(connection, progress.changes.traces)
    _write_counts(connection, progress.counts)
    place = [
        ("row", progress.row),
        ("at", progress.at),
        ("crc", checksum(progress.row, progress.at)),
    ]
    insert(connection, "INSERT OR REPLACE INTO meta (name, value)", place)
    return delete(connection, "journal", progress.changes.released)


def _storable(
    evaluations: Iterable[Evaluation], row_of: Callable[[Evaluation], tuple[Any, ...]]
) -> Iterator[tuple[Any, ...]]:
    """The rows of evaluations. What a scorer or a sender put into one must not keep the others from
    being stored.
    """
    for evaluation in evaluations:
        try:
            yield row_of(evaluation)
        except Exception:  # whatever it is, the others are not to blame
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
    """Add what judges said to the row of their evaluation, unless it is too old to be there, or
    damaged.
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
    """A name from telemetry as SQLite can hold it: lone surrogates have no UTF-8."""
    return (name or "").encode("utf-8", "replace").decode()


def _write_turns(connection: sqlite3.Connection, progress: Progress) -> None:
    for tenant, trace_id, span_id in progress.changes.dropped_turns:
        connection.execute(f"DELETE FROM turns WHERE {_KEY}", (trace_id, span_id, tenant))
    columns = "tenant, conversation, scenario, trace_id, span_id, at, body, crc"
    for outcome in progress.outcomes:
        match outcome:
            case Withdrawn((tenant, trace_id, span_id)):
                connection.execute(
                    f"UPDATE results SET withdrawn = 1 WHERE {_KEY}", (trace_id, span_id, tenant)
                )
                connection.execute(f"DELETE FROM turns WHERE {_KEY}", (trace_id, span_id, tenant))
            case ConversationResult():
                of_conversation = (
                    outcome.tenant,
                    text_of(outcome.conversation_id),
                    text_of(outcome.reference.scenario_id),
                )
                connection.execute(f"DELETE FROM turns WHERE {_CONVERSATION}", of_conversation)
            case Evaluation(invocation, match) if _is_turn(outcome):
                if match.beyond:
                    connection.execute(
                        f"DELETE FROM turns WHERE {_CONVERSATION} AND typeof(body) = 'blob'",
                        _conversation(invocation),
                    )
                rows = list(_storable([outcome], lambda one: _turn(one, progress.at)))
                insert(connection, f"INSERT OR REPLACE INTO turns ({columns})", rows)


def _is_turn(evaluation: Evaluation) -> bool:
    match = evaluation.match
    expected = match.reference is not None and len(match.reference.turns) > 1
    return bool(evaluation.invocation.conversation_id) and (
        expected or match.unmatched == "unexpected_turn"
    )


def _conversation(invocation: Invocation) -> tuple[str, str, str]:
    return invocation.tenant, text_of(invocation.conversation_id), text_of(invocation.scenario_id)


def _turn(evaluation: Evaluation, at: float) -> tuple[Any, ...]:
    invocation, beyond = evaluation.invocation, evaluation.match.beyond
    body = str(beyond).encode() if beyond else INVOCATION.dump_json(invocation).decode()
    row = (*_conversation(invocation), invocation.trace_id, invocation.span_id, at, body)
    return (*row, checksum(*row))


def _write_traces(connection: sqlite3.Connection, traces: Iterable[Remembered]) -> None:
    rows = []
    for standing, fingerprints in ((trace.standing, trace.fingerprints) for trace in traces):
        known = orjson.dumps(
            {"rows": standing.rows, "digests": fingerprints, "completed": standing.completed}
        ).decode()
        row = (*standing.key, standing.closed_at, standing.forgotten, known)
        rows.append((*row, checksum(*row)))
    insert(
        connection,
        "INSERT OR REPLACE INTO traces (tenant, trace_id, closed, forgotten, known, crc)",
        rows,
    )


def _write_counts(connection: sqlite3.Connection, counts: Iterable[Row]) -> None:
    kept, gone = [], []
    for key, state in counts:
        name = orjson.dumps(list(key)).decode()
        if state is None:
            gone.append((name,))
        else:
            text = orjson.dumps(list(state)).decode()
            kept.append((name, text, checksum(name, text)))
    insert(connection, "INSERT OR REPLACE INTO counts (name, state, crc)", kept)
    connection.executemany("DELETE FROM counts WHERE name = ?", gone)


def drop_old(
    connection: sqlite3.Connection, results_before: float, traces_kept: int, at_once: int
) -> int:
    """Remove results older than the Unix time `results_before`, and traces that no journal row can
    still bring back; returns how many.
    """
    removed = connection.execute(
        "DELETE FROM results WHERE id IN (SELECT id FROM results WHERE at < ? ORDER BY at LIMIT ?)",
        (results_before, at_once),
    ).rowcount
    oldest = connection.execute("SELECT min(at) FROM journal").fetchone()[0]
    newest = connection.execute("SELECT max(id) FROM traces").fetchone()[0] or 0
    removed += connection.execute(
        "DELETE FROM traces WHERE id IN (SELECT id FROM traces WHERE id <= :newest AND (closed <"
        " :oldest OR forgotten IS NOT NULL OR :oldest IS NULL) ORDER BY id LIMIT :at_once)",
        {"newest": newest - traces_kept, "oldest": oldest, "at_once": at_once},
    ).rowcount
    return removed

"""Writes the progress of the pipeline: results, trace states and counts.

A result row holds scores, verdicts and thresholds, but no content of the telemetry: that is in the
row of its evidence. Of each result, two revisions are kept: the first, which was counted and says
since when it is in windows, and the newest. Only the newest has a verdict in its column, by which
queries find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import orjson
import structlog

from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.evaluations.shadow_result import Shadowed
from pathgauge.collector.core.evidence.evidence import overall
from pathgauge.collector.core.internal_telemetry import Row
from pathgauge.collector.core.pipeline_events import (
    Judged,
    PublishedEvent,
    ShadowJudged,
    StoredTrace,
    Withdrawn,
)
from pathgauge.collector.store import (
    Progress,
    feedback,
    journal,
    pending_judgments,
    session_members,
    sessions,
    turns,
)
from pathgauge.collector.store.revisions import newest_revisions, outdated
from pathgauge.collector.store.schema import checksum, name_of
from pathgauge.collector.store.sql import MAX_KEYS, Connection, upsert
from pathgauge.scorers.types import Json

_log = structlog.get_logger(__name__)

_KEY = "trace_id = ? AND span_id = ? AND tenant = ?"
_COLUMNS = "tenant, trace_id, span_id, revision, at, agent, scenario, body"
_FOUND_BY = "verdict, category, signature, conversation"
"""Columns for queries. They repeat what is in the body, so the checksum does not need them."""


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


def write_state(connection: Connection, progress: Progress) -> journal.Released:
    """Write what a scorer needs to continue, in the caller's transaction; returns which journal
    rows it deleted.
    """
    write_changes(connection, progress)
    position = [
        ("row", progress.row),
        ("at", progress.at),
        ("crc", checksum(progress.row, progress.at)),
    ]
    upsert(connection, "meta", "name, value", "name", position)
    return journal.release(connection, progress.changes.released_rows)


def write_changes(connection: Connection, progress: Progress) -> None:
    """Write the state of traces, turns, sessions and pending judgments, in the caller's
    transaction.
    """
    pending_judgments.write(
        connection, progress.changes.judgments_begun, progress.changes.judgments_ended, progress.at
    )
    withdrawn = [event.key for event in progress.outcomes if isinstance(event, Withdrawn)]
    turns.write(connection, progress.changes, withdrawn)
    sessions.write(connection, progress.changes.sessions)
    _write_traces(connection, progress.changes.traces)


def _write_evaluations(
    connection: Connection, progress: Progress, newest: Mapping[EvaluationKey, int]
) -> None:
    evaluations = [event for event in progress.outcomes if isinstance(event, Evaluation)]
    withdrawn = {event.key for event in progress.outcomes if isinstance(event, Withdrawn)}
    kept = [one for one in evaluations if one.revision in (0, newest[one.key])]
    at = {id(event): progress.at_of(index) for index, event in enumerate(progress.outcomes)}
    # In the order of time, and a first revision before newer ones, also if they came otherwise.
    kept.sort(key=lambda one: (at[id(one)], one.revision > 0))
    rows = list(_storable(kept, lambda one: _result(one, at[id(one)])))
    replacing = {one.key for one in kept if one.revision or one.key in withdrawn}
    _delete_revisions(connection, list(replacing))
    known = {one.key: newest[one.key] for one in kept}
    rows += _newer_rows(connection, known, replacing, progress.wall)
    upsert(
        connection,
        "results",
        f"{_COLUMNS}, crc, {_FOUND_BY}",
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
        tenant, trace_id, span_id = key
        found = connection.execute(
            f"SELECT {_COLUMNS}, crc FROM results WHERE {_KEY} AND revision = ?",
            (trace_id, span_id, tenant, revision),
        ).fetchone()
        if found is not None and found[-1] == checksum(*found[:-1]):
            *identity, _, agent, scenario, body = found[:-1]
            yield _complete((*identity, wall, agent, scenario, body), orjson.loads(body))


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
    failure = evaluation.failure
    body: dict[str, Json] = {
        "verdict": overall(result.verdict for result in evaluation.results),
        "failure": failure and [failure.category, failure.signature],
        "criteria": _criteria(evaluation),
        "reference": reference.version if reference else None,
        "unmatched": evaluation.match.unmatched,
        "agent_version": name_of(invocation.agent_version) or None,
        "conversation": name_of(invocation.conversation_id) or None,
        "dialect": invocation.dialect,
        "flags": sorted(invocation.flags),
        "closed_by": evaluation.closed_by,
        "start_ns": invocation.start_ns,
        "end_ns": invocation.end_ns,
    }
    if evaluation.session is not None:
        body["session"] = {
            "conversation": name_of(invocation.conversation_id),
            "ended_by": evaluation.session.ended_by,
            "turns": evaluation.session.members,
        }
    if evaluation.shadow is not None:
        body["shadow"] = _shadow(evaluation.shadow)
    text = orjson.dumps(body).decode()
    row = (
        *evaluation.key,
        evaluation.revision,
        wall,
        name_of(invocation.agent),
        name_of(scenario),
        text,
    )
    return _complete(row, body)


def _shadow(shadowed: Shadowed) -> Json:
    return {
        "setup": shadowed.setup,
        "reference": shadowed.reference,
        "criteria": [one._asdict() for one in shadowed.results],
    }


def _complete(row: tuple[Any, ...], body: dict[str, Json]) -> tuple[Any, ...]:
    """The row with its checksum and the columns for queries."""
    session = body.get("session") or {"conversation": ""}
    failure = body["failure"] or ("", "")
    return (*row, checksum(*row), body["verdict"], *failure, session["conversation"])


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


def _add_judged(connection: Connection, evaluation: Evaluation) -> None:
    """Add the results of judges to the row of their evaluation, unless the row was deleted already
    or is damaged.
    """
    found = _row_of(connection, evaluation.key, evaluation.revision)
    if found is None:
        return
    for row in _storable([evaluation], lambda one: _with_judged(found[1], one)):
        connection.execute(
            "UPDATE results SET body = ?, crc = ?, verdict = ?, category = ?, signature = ?,"
            " conversation = ? WHERE id = ?",
            (*row[-6:], found[0]),
        )


def _add_judged_in_shadow(connection: Connection, judged: ShadowJudged) -> None:
    """Add the results of judges in shadow to the others in shadow, as `_add_judged` does."""
    found = _row_of(connection, judged.key, judged.revision)
    if found is None:
        return
    number, row = found
    body = orjson.loads(row[-1])
    shadow = body.get("shadow")
    if shadow is None or shadow["setup"] != judged.shadow.setup:
        return
    shadow["criteria"] += [one._asdict() for one in judged.shadow.results]
    written = (*row[:-1], orjson.dumps(body).decode())
    connection.execute(
        "UPDATE results SET body = ?, crc = ? WHERE id = ?",
        (written[-1], checksum(*written), number),
    )


def _row_of(
    connection: Connection, key: EvaluationKey, revision: int
) -> tuple[int, tuple[Any, ...]] | None:
    """Number and columns of a revision; `None` if the row is deleted or damaged."""
    tenant, trace_id, span_id = key
    found = connection.execute(
        f"SELECT id, {_COLUMNS}, crc FROM results WHERE {_KEY} AND revision = ?",
        (trace_id, span_id, tenant, revision),
    ).fetchone()
    if found is None or found[-1] != checksum(*found[1:-1]):
        return None
    return found[0], found[1:-1]


def _with_judged(row: tuple[Any, ...], evaluation: Evaluation) -> tuple[Any, ...]:
    body = orjson.loads(row[-1])
    body["criteria"] += _criteria(evaluation)
    body["verdict"] = overall(one["verdict"] for one in body["criteria"])
    failure = evaluation.failure
    body["failure"] = body.get("failure") or (failure and [failure.category, failure.signature])
    return _complete((*row[:-1], orjson.dumps(body).decode()), body)


def _write_traces(connection: Connection, traces: Iterable[StoredTrace]) -> None:
    rows = []
    for snapshot, fingerprints in ((trace.snapshot, trace.fingerprints) for trace in traces):
        known = orjson.dumps(
            {
                "rows": snapshot.rows,
                "digests": fingerprints,
                "completed": snapshot.completed,
                "next_reading": snapshot.next_reading,
                "read_entry_agents": snapshot.read_entry_agents,
            }
        ).decode()
        row = (*snapshot.key, snapshot.closed_at, snapshot.forgotten, known)
        rows.append((*row, checksum(*row)))
    upsert(
        connection,
        "traces",
        "tenant, trace_id, closed, forgotten, known, crc",
        "trace_id, tenant",
        rows,
    )


def write_counts(connection: Connection, counts: Iterable[Row]) -> None:
    """Write the present values of counts, in the caller's transaction."""
    kept, dropped = [], []
    for key, state in counts:
        name = orjson.dumps(list(key)).decode()
        if state is None:
            dropped.append((name,))
        else:
            text = orjson.dumps(list(state)).decode()
            kept.append((name, text, checksum(name, text)))
    upsert(connection, "counts", "name, state, crc", "name", kept)
    connection.executemany("DELETE FROM counts WHERE name = ?", dropped)

"""Writes the evidence of results, in the transaction of the results, and bounds how much is kept.

`policy.py` says which evidence is kept.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from typing import Any

import orjson
import structlog

from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.evidence.evidence import (
    CriterionEvidence,
    Evidence,
    evidence_of,
    overall,
)
from pathgauge.collector.core.pipeline_events import Judged, Withdrawn
from pathgauge.collector.store import Progress
from pathgauge.collector.store.evidence.bodies import EvidenceBodies, unpacked
from pathgauge.collector.store.evidence.policy import (
    FAILED,
    EvidencePolicy,
    Passed,
    scenario_of,
)
from pathgauge.collector.store.schema import checksum
from pathgauge.collector.store.sql import Connection, upsert

__all__ = ["EvidencePolicy", "EvidenceRows", "drop_oldest", "find", "log_unstorable"]

_log = structlog.get_logger(__name__)

_KEY = "trace_id = ? AND span_id = ? AND tenant = ?"
_COLUMNS = "tenant, trace_id, span_id, at, scenario, failed, size"


class EvidenceRows:
    """The rows of the table `evidence`. For the thread of the database only."""

    def __init__(self, policy: EvidencePolicy) -> None:
        self._policy = policy
        self._bodies = EvidenceBodies()

    def write(
        self, connection: Connection, progress: Progress, outdated: Set[int] = frozenset()
    ) -> None:
        """Write the evidence of new results, and delete that of withdrawn ones. Outcomes whose
        index is in `outdated` have no effect.
        """
        if self._policy.keep == "none":
            return
        built = progress.evidence
        for index, event in enumerate(progress.outcomes):
            if index in outdated:
                continue
            if isinstance(event, Withdrawn) or (isinstance(event, Evaluation) and event.revision):
                _delete(connection, event.key)
            if built is not None and index not in built:
                continue
            body = None if built is None else built[index]
            if isinstance(event, Evaluation):
                self._add(connection, event, progress.at_of(index), body)
            elif isinstance(event, Judged):
                self._add_judged(connection, event.evaluation, progress.at_of(index), body)

    def clean(self, connection: Connection, wall: float, max_rows: int) -> int:
        """Delete evidence that is too old, or the oldest if all takes too much space; returns how
        many rows were deleted.
        """
        old = connection.execute(
            "DELETE FROM evidence WHERE id IN"
            " (SELECT id FROM evidence WHERE at < ? ORDER BY at LIMIT ?)",
            (wall - self._policy.retention_s, max_rows),
        ).rowcount
        [size] = connection.execute("SELECT coalesce(sum(size), 0) FROM evidence").fetchone()
        excess = size - self._policy.max_bytes
        return old + (drop_oldest(connection, excess, max_rows) if excess > 0 else 0)

    def _add(
        self, connection: Connection, evaluation: Evaluation, wall: float, body: bytes | None
    ) -> None:
        """`body` is `None` if the evidence has to be built here."""
        is_kept = self._policy.keeps(evaluation)
        if not is_kept and (
            evaluation.match.turn is None or not self._is_wanted(connection, evaluation, wall)
        ):
            return
        verdict = overall(result.verdict for result in evaluation.results)
        _insert(
            connection,
            evaluation,
            wall,
            verdict in FAILED,
            lambda: self._bodies.packed(evidence_of(evaluation)) if body is None else body,
        )
        if not is_kept:
            self._drop_passed(connection, evaluation)

    def _is_wanted(self, connection: Connection, evaluation: Evaluation, wall: float) -> bool:
        """Whether a passed run is stored."""
        kept = Passed(
            *connection.execute(
                "SELECT count(*), coalesce(max(at), 0) FROM evidence"
                " WHERE tenant = ? AND scenario = ? AND failed = 0",
                (evaluation.invocation.tenant, scenario_of(evaluation)),
            ).fetchone()
        )
        return self._policy.wants(kept, wall)

    def _drop_passed(self, connection: Connection, evaluation: Evaluation) -> None:
        """Delete the oldest passed runs beyond the number that is kept."""
        connection.execute(
            "DELETE FROM evidence WHERE id IN (SELECT id FROM evidence WHERE tenant = ?"
            " AND scenario = ? AND failed = 0 ORDER BY at DESC, id DESC LIMIT 1000000000 OFFSET ?)",
            (
                evaluation.invocation.tenant,
                scenario_of(evaluation),
                self._policy.passed_per_scenario,
            ),
        )

    def _add_judged(
        self, connection: Connection, evaluation: Evaluation, wall: float, body: bytes | None
    ) -> None:
        """Add the results of judges. A run that passed without them may have failed now."""
        before = find(connection, evaluation.key) or _without_evidence(connection, evaluation)
        if before is None:
            return
        judged = (result.verdict for result in evaluation.results)
        verdict = overall([*(one.verdict for one in before.criteria), *judged])

        def joined() -> bytes:
            added = evidence_of(evaluation) if body is None else unpacked(body)
            return self._bodies.packed(_joined(before, added))

        _insert(connection, evaluation, wall, verdict in FAILED, joined)


def _without_evidence(connection: Connection, evaluation: Evaluation) -> Evidence | None:
    """What the result row says of a run that only judges have failed."""
    found = connection.execute(
        f"SELECT body FROM results WHERE {_KEY} AND revision = ?",
        (*_where(evaluation.key), evaluation.revision),
    ).fetchone()
    if found is None or overall(one.verdict for one in evaluation.results) != "failed":
        return None
    judged = {result.criterion.name for result in evaluation.results}
    return Evidence(evaluation.invocation, tuple(_others(found[0], judged)))


def _insert(
    connection: Connection,
    evaluation: Evaluation,
    wall: float,
    failed: bool,
    make: Callable[[], bytes],
) -> None:
    """Store the evidence. What a scorer or a sender has made impossible to store must not affect
    the other evaluations.
    """
    try:
        body = make()
    except Exception:
        log_unstorable(evaluation)
        return
    row = (*evaluation.key, wall, scenario_of(evaluation), int(failed), len(body))
    upsert(
        connection,
        "evidence",
        f"{_COLUMNS}, body, crc",
        "trace_id, span_id, tenant",
        [(*row, body, _checksum(row, body))],
    )


def find(connection: Connection, key: EvaluationKey) -> Evidence | None:
    """The evidence of a result; `None` if it is not kept, is damaged, or was written by an
    incompatible version.
    """
    found = connection.execute(
        f"SELECT {_COLUMNS}, body, crc FROM evidence WHERE {_KEY}", _where(key)
    ).fetchone()
    if found is None:
        return None
    *row, body, crc = found
    if crc != _checksum(row, body):
        return None
    try:
        return unpacked(body)
    except ValueError:
        return None


def drop_oldest(connection: Connection, size: float, max_rows: int) -> int:
    """Delete the oldest evidence, until it frees `size` bytes; returns how many rows."""
    rows = 0
    for (length,) in connection.execute(
        "SELECT size FROM evidence ORDER BY at LIMIT ?", (max_rows,)
    ):
        rows += 1
        size -= length
        if size <= 0:
            break
    return connection.execute(
        "DELETE FROM evidence WHERE id IN (SELECT id FROM evidence ORDER BY at LIMIT ?)", (rows,)
    ).rowcount


def _delete(connection: Connection, key: EvaluationKey) -> None:
    connection.execute(f"DELETE FROM evidence WHERE {_KEY}", _where(key))


def _where(key: EvaluationKey) -> tuple[str, str, str]:
    tenant, trace_id, span_id = key
    return trace_id, span_id, tenant


def _checksum(row: Sequence[Any], body: bytes) -> int:
    return checksum(*row, zlib.crc32(body))


def log_unstorable(evaluation: Evaluation) -> None:
    """Log the present exception, which must not affect other evaluations."""
    _log.exception("evidence cannot be stored", trace_id=evaluation.invocation.trace_id)


def _joined(before: Evidence, judged: Evidence) -> Evidence:
    """With the results of judges. A failure that was found before them stays."""
    criteria = (*before.criteria, *judged.criteria)
    return replace(judged, criteria=criteria, failure=before.failure or judged.failure)


def _others(body: str, judged: Set[str]) -> Iterable[CriterionEvidence]:
    """The criteria of a result row, which has no details, without those that were judged."""
    for one in orjson.loads(body)["criteria"]:
        if one["name"] in judged:
            continue
        yield CriterionEvidence(
            one["name"],
            one["scorer"],
            one["verdict"],
            one["value"],
            one["threshold"],
            reason=one["reason"],
            judge=one.get("judge", ""),
        )

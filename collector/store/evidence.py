"""Writes the evidence of results, in the transaction of the results, and bounds how much is kept.

Failures are kept until they are too old or take too much space. Of the passed runs of a scenario
the newest are kept, so that a failure can be compared with what runs usually do; after the first
ones, one of them is stored each `PASSED_S`, because storing every run would cost more than it
explains.
"""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

import orjson
import structlog
import zstandard

from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.evidence.evidence import (
    CriterionEvidence,
    Evidence,
    decode,
    encode,
    evidence_of,
    overall,
)
from pathgauge.collector.core.pipeline_events import Judged, Withdrawn
from pathgauge.collector.store import Progress
from pathgauge.collector.store.schema import checksum, insert, name_of

_log = structlog.get_logger(__name__)

Kept: TypeAlias = Literal["failed", "all", "none"]

PASSED_S = 30.0
"""The shortest time between two passed runs of a scenario that are stored, after the first ones."""
MAX_DECODED_BYTES = 1 << 20
_LEVEL = 3
_KEY = "trace_id = ? AND span_id = ? AND tenant = ?"
_COLUMNS = "tenant, trace_id, span_id, at, scenario, failed, size"


@dataclass(frozen=True, slots=True)
class EvidencePolicy:
    """Which evidence is kept, how much of it, and for how long."""

    keep: Kept = "failed"
    passed_per_scenario: int = 20
    max_bytes: int = 256 << 20
    retention_s: float = 7 * 86_400.0


class Passed(NamedTuple):
    """The evidence of the passed runs of a scenario that is kept."""

    number: int
    newest: float
    """Unix time of the newest, 0 without any."""


class EvidenceRows:
    """The rows of the table `evidence`. For the thread of the database only."""

    def __init__(self, policy: EvidencePolicy) -> None:
        self._policy = policy
        self._compressor = zstandard.ZstdCompressor(level=_LEVEL)

    def write(self, connection: sqlite3.Connection, progress: Progress) -> None:
        """Write the evidence of new results, and delete that of withdrawn ones."""
        if self._policy.keep == "none":
            return
        for event in progress.outcomes:
            if isinstance(event, Evaluation):
                self._add(connection, event, progress.wall)
            elif isinstance(event, Judged):
                self._add_judged(connection, event.evaluation, progress.wall)
            elif isinstance(event, Withdrawn):
                _delete(connection, event.key)

    def clean(self, connection: sqlite3.Connection, wall: float, max_rows: int) -> int:
        """Delete evidence that is too old, or the oldest if all takes too much space; returns how
        many rows were deleted.
        """
        old = connection.execute(
            "DELETE FROM evidence WHERE id IN"
            " (SELECT id FROM evidence WHERE at < ? ORDER BY at LIMIT ?)",
            (wall - self._policy.retention_s, max_rows),
        ).rowcount
        [size] = connection.execute("SELECT total(size) FROM evidence").fetchone()
        excess = size - self._policy.max_bytes
        return old + (drop_oldest(connection, excess, max_rows) if excess > 0 else 0)

    def _add(self, connection: sqlite3.Connection, evaluation: Evaluation, wall: float) -> None:
        if evaluation.revision:
            _delete(connection, evaluation.key)
        verdict = overall(result.verdict for result in evaluation.results)
        if verdict in ("failed", "error") or self._policy.keep == "all":
            self._insert(connection, evaluation, wall)
        elif evaluation.match.turn is not None and self._is_wanted(connection, evaluation, wall):
            self._insert(connection, evaluation, wall)
            self._drop_passed(connection, evaluation)

    def _is_wanted(
        self, connection: sqlite3.Connection, evaluation: Evaluation, wall: float
    ) -> bool:
        """Whether a passed run is stored."""
        wanted = self._policy.passed_per_scenario
        kept = Passed(
            *connection.execute(
                "SELECT count(*), ifnull(max(at), 0) FROM evidence"
                " WHERE tenant = ? AND scenario = ? AND failed = 0",
                (evaluation.invocation.tenant, _scenario(evaluation)),
            ).fetchone()
        )
        if kept.number < wanted:
            return True
        return wanted > 0 and not kept.newest <= wall < kept.newest + PASSED_S

    def _drop_passed(self, connection: sqlite3.Connection, evaluation: Evaluation) -> None:
        """Delete the oldest passed runs beyond the number that is kept."""
        connection.execute(
            "DELETE FROM evidence WHERE id IN (SELECT id FROM evidence WHERE tenant = ?"
            " AND scenario = ? AND failed = 0 ORDER BY at DESC, id DESC LIMIT -1 OFFSET ?)",
            (
                evaluation.invocation.tenant,
                _scenario(evaluation),
                self._policy.passed_per_scenario,
            ),
        )

    def _add_judged(
        self, connection: sqlite3.Connection, evaluation: Evaluation, wall: float
    ) -> None:
        """Add the results of judges. A run that passed without them may have failed now."""
        stored = find(connection, evaluation.key)
        if stored is not None:
            self._insert(connection, evaluation, wall, stored)
            return
        found = connection.execute(
            f"SELECT body FROM results WHERE {_KEY} AND revision = ?",
            (*_where(evaluation.key), evaluation.revision),
        ).fetchone()
        if found is None or overall(one.verdict for one in evaluation.results) != "failed":
            return
        judged = {result.criterion.name for result in evaluation.results}
        before = Evidence(evaluation.invocation, tuple(_others(found[0], judged)))
        self._insert(connection, evaluation, wall, before)

    def _insert(
        self,
        connection: sqlite3.Connection,
        evaluation: Evaluation,
        wall: float,
        before: Evidence | None = None,
    ) -> None:
        """Store the evidence, with the criteria of `before`. What a scorer or a sender has made
        impossible to store must not affect the other evaluations.
        """
        try:
            evidence = evidence_of(evaluation) if before is None else _joined(before, evaluation)
            text = encode(evidence)
        except Exception:
            _log.exception("evidence cannot be stored", trace_id=evaluation.invocation.trace_id)
            return
        body, invocation = self._compressor.compress(text), evidence.invocation
        failed = overall(one.verdict for one in evidence.criteria) in ("failed", "error")
        key = (invocation.tenant, invocation.trace_id, invocation.span_id)
        row = (*key, wall, name_of(evidence.scenario_id), int(failed), len(body))
        insert(
            connection,
            f"INSERT OR REPLACE INTO evidence ({_COLUMNS}, body, crc)",
            [(*row, body, _checksum(row, body))],
        )


def find(connection: sqlite3.Connection, key: EvaluationKey) -> Evidence | None:
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
        return decode(zstandard.decompress(body, max_output_size=MAX_DECODED_BYTES))
    except (ValueError, zstandard.ZstdError):
        return None


def drop_oldest(connection: sqlite3.Connection, size: float, max_rows: int) -> int:
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


def _delete(connection: sqlite3.Connection, key: EvaluationKey) -> None:
    connection.execute(f"DELETE FROM evidence WHERE {_KEY}", _where(key))


def _where(key: EvaluationKey) -> tuple[str, str, str]:
    tenant, trace_id, span_id = key
    return trace_id, span_id, tenant


def _scenario(evaluation: Evaluation) -> str:
    reference = evaluation.match.reference
    return name_of(
        evaluation.invocation.scenario_id if reference is None else reference.scenario_id
    )


def _checksum(row: Sequence[Any], body: bytes) -> int:
    return checksum(*row, zlib.crc32(body))


def _joined(before: Evidence, evaluation: Evaluation) -> Evidence:
    """With the results of judges. A failure that was found before them stays."""
    judged = evidence_of(evaluation, before.criteria)
    return replace(judged, failure=before.failure or judged.failure)


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

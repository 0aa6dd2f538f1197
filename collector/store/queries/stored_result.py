"""One result as it is stored, without its evidence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.evaluations.shadow_result import Shadowed, ShadowResult
from pathgauge.collector.store.schema import checksum
from pathgauge.scorers.authoring.extras import seconds
from pathgauge.scorers.types import Json

_NS = 1e9


@dataclass(frozen=True, slots=True)
class CriterionResult:
    """What one criterion said."""

    name: str
    scorer: str
    """Name and version."""
    verdict: str
    value: float | None
    threshold: float | None
    reason: str | None
    """Why there is no value."""
    judge: str = ""


@dataclass(frozen=True, slots=True)
class StoredSession:
    """What the result of a session says beside its criteria."""

    conversation_id: str
    ended_by: str
    turns: tuple[tuple[str, str], ...]
    """Trace id and span id of each turn, in order."""
    begun_at: float | None = None
    """When its first turn began, in Unix seconds, by its spans."""
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class StoredResult:
    """One result, without its evidence."""

    row: int
    """Grows with time; a cursor for the next query."""
    tenant: str
    trace_id: str
    span_id: str
    at: float
    """When it was stored, in Unix seconds."""
    agent: str | None
    agent_version: str | None
    scenario_id: str | None
    verdict: str
    category: str | None
    signature: str | None
    """What failed, in one line; see `Failure`."""
    reference_version: str | None
    unmatched: str | None
    """Why there is no reference turn."""
    flags: tuple[str, ...]
    duration_s: float | None
    criteria: tuple[CriterionResult, ...]
    revision: int = 0
    session: StoredSession | None = None
    """Set if it is the result of a session, and not of an invocation."""
    shadow: Shadowed | None = None
    """The scores in shadow."""

    @property
    def key(self) -> EvaluationKey:
        """The identity of the evaluated invocation."""
        return self.tenant, self.trace_id, self.span_id


class Row(NamedTuple):
    """A row of the table, by its columns."""

    id: int
    tenant: str
    trace_id: str
    span_id: str
    revision: int
    at: float
    agent: str
    scenario: str
    body: str
    crc: int
    withdrawn: int
    verdict: str
    category: str
    signature: str


def read(row: Row) -> StoredResult | None:
    """The result of a row; `None` if it is damaged, withdrawn, or no longer the newest revision."""
    if row.withdrawn or not row.verdict or row.crc != checksum(*row[1:9]):
        return None
    body: dict[str, Json] = orjson.loads(row.body)
    start, end = body["start_ns"], body["end_ns"]
    category, signature = body.get("failure") or (None, None)
    return StoredResult(
        row.id,
        row.tenant,
        row.trace_id,
        row.span_id,
        row.at,
        row.agent or None,
        body["agent_version"],
        row.scenario or None,
        body["verdict"],
        category,
        signature,
        body["reference"],
        body["unmatched"],
        tuple(body["flags"]),
        seconds(start, end),
        tuple(map(_criterion, body["criteria"])),
        row.revision,
        _session(body.get("session"), start, end),
        _shadow(body.get("shadow")),
    )


def _session(
    written: dict[str, Json] | None, start_ns: int | None, end_ns: int | None
) -> StoredSession | None:
    if written is None:
        return None
    turns = tuple((trace_id, span_id) for trace_id, span_id in written["turns"])
    return StoredSession(
        written["conversation"],
        written["ended_by"],
        turns,
        None if start_ns is None else start_ns / _NS,
        None if end_ns is None else end_ns / _NS,
    )


def _shadow(found: Any) -> Shadowed | None:
    if found is None:
        return None
    results = tuple(
        # A later version may have written more.
        ShadowResult(**{name: one[name] for name in ShadowResult._fields if name in one})
        for one in found["criteria"]
    )
    return Shadowed(found["setup"], found["reference"], results)


def _criterion(one: dict[str, Json]) -> CriterionResult:
    return CriterionResult(
        one["name"],
        one["scorer"],
        one["verdict"],
        one["value"],
        one["threshold"],
        one["reason"],
        one.get("judge", ""),
    )

"""Stores the turns of open conversations, with their content: a later turn may change their scores.

For turns that a conversation does not keep, one row holds their number; its body is that number
instead of an object. Earlier versions stored it as a blob. Keys that earlier versions do not know
follow those of the invocation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import structlog

from pathgauge.collector.core.documents.adapters import adapter
from pathgauge.collector.core.evaluations.conversation import ConversationKey
from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.evaluations.invocation_json import from_json
from pathgauge.collector.core.evaluations.stored_turn import UNKNOWN, StoredTurn
from pathgauge.collector.core.evaluations.turn import JudgedScore
from pathgauge.collector.core.pipeline_events import Changes
from pathgauge.collector.store.schema import checksum, text_of
from pathgauge.collector.store.sql import Connection, upsert
from pathgauge.scorers.types import Invocation

_log = structlog.get_logger(__name__)

COLUMNS = "tenant, conversation, scenario, trace_id, span_id, at, body"
_CONVERSATION = "tenant = ? AND conversation = ? AND scenario = ?"


@dataclass(frozen=True, slots=True)
class _Evaluated:
    """What a body says beside the invocation."""

    evaluated_as: int | None = UNKNOWN
    revision: int = 0
    closed_by: str = "root_ended"
    held: bool = False
    judged: Mapping[str, JudgedScore] = field(default_factory=dict)


def write(connection: Connection, changes: Changes, withdrawn: Iterable[EvaluationKey]) -> None:
    """Write what changed in open conversations, in the caller's transaction."""
    connection.executemany(
        "DELETE FROM turns WHERE tenant = ? AND trace_id = ? AND span_id = ?",
        [*changes.orphaned_turns, *withdrawn],
    )
    connection.executemany(
        f"DELETE FROM turns WHERE {_CONVERSATION}",
        [(key[0], *map(text_of, key[1:])) for key in changes.ended_conversations],
    )
    connection.executemany(
        f"DELETE FROM turns WHERE {_CONVERSATION} AND substr(body, 1, 1) <> '{{'",
        [_conversation(turn.invocation) for turn in changes.turns if turn.dropped_turns],
    )
    upsert(
        connection,
        "turns",
        f"{COLUMNS}, crc",
        "trace_id, span_id, tenant",
        _rows(changes.turns),
    )


def read(columns: Sequence[Any]) -> StoredTurn:
    """The turn in a row with a valid checksum. Raises `ValueError` if another version wrote it."""
    tenant, conversation, scenario, trace_id, span_id, at, body = columns
    if body[:1] != "{":
        newest = Invocation(
            trace_id,
            span_id,
            "",
            tenant=tenant,
            conversation_id=conversation,
            scenario_id=scenario,
        )
        return StoredTurn(newest, at, dropped_turns=int(body))
    known = adapter(_Evaluated).validate_json(body)
    return StoredTurn(
        from_json(body),
        at,
        known.evaluated_as,
        known.revision,
        known.closed_by,
        known.held,
        judged=known.judged,
    )


def _rows(turns: Iterable[StoredTurn]) -> Iterator[tuple[Any, ...]]:
    for turn in turns:
        try:
            yield _row(turn)
        except Exception:  # a value of a sender must not affect the other turns
            _log.exception("a turn cannot be stored", trace_id=turn.invocation.trace_id)


def _row(turn: StoredTurn) -> tuple[Any, ...]:
    invocation = turn.invocation
    body = str(turn.dropped_turns)
    if not turn.dropped_turns:
        evaluated = _Evaluated(turn.number, turn.revision, turn.closed_by, turn.held, turn.judged)
        known = adapter(_Evaluated).dump_json(evaluated)
        body = (adapter(Invocation).dump_json(invocation)[:-1] + b"," + known[1:]).decode()
    ids = invocation.trace_id, invocation.span_id
    row = (*_conversation(invocation), *ids, turn.at, body)
    return (*row, checksum(*row))


def _conversation(invocation: Invocation) -> ConversationKey:
    return invocation.tenant, text_of(invocation.conversation_id), text_of(invocation.scenario_id)

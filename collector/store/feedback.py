"""The table of what people said, written in the transaction of whoever received it.

A row is one answer. Of one person, subject and name, one row is `current`; a few of those that it
replaced stay, so that an old answer that is sent again is recognised and does not come back. A row
has the pseudonym of the rater only: a keyed hash, whose key never leaves the database.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import orjson

from pathgauge.collector.core.feedback.answer import Answer, Scale
from pathgauge.collector.core.pipeline_events import FeedbackGiven
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.store import FeedbackOutcome, Progress
from pathgauge.collector.store.schema import checksum, text_of
from pathgauge.collector.store.sql import Connection, SharedConnection, delete

MAX_REPLACED = 20
"""Replaced answers of one person, subject and name that are remembered."""
COLUMNS = (
    "tenant, trace_id, span_id, conversation, name, rater, client, given, at, is_current, body"
)
_OF_RUN = "trace_id = ? AND span_id = ? AND conversation = ? AND tenant = ? AND name = ?"
_OF_CONVERSATION = (
    "trace_id || '' = ? AND span_id || '' = ? AND conversation = ? AND conversation <> ''"
    " AND tenant = ? AND name = ?"
)
"""The same by the index of conversations: in that of traces, all of them are in one place."""
_KEY_BYTES = 32
_PSEUDONYM_BYTES = 12
_MAX_AHEAD_S = 3600.0
"""An answer that was given later than this from now came while the clock was wrong."""


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """An answer, as it is stored."""

    row: int
    answer: Answer
    """Its `rater` is the pseudonym."""
    at: float
    """When it was stored, in Unix seconds."""


def write(connection: Connection, progress: Progress) -> None:
    """Write the answers among the outcomes, in the caller's transaction."""
    answers = [one.answer for one in progress.outcomes if isinstance(one, FeedbackGiven)]
    if answers:
        record(connection, answers, progress.wall)


def record(
    connection: Connection,
    answers: Iterable[Answer],
    wall: float,
    is_purged: Callable[[TraceKey], bool] = lambda trace: False,
) -> list[FeedbackOutcome]:
    """Write answers that arrived at the Unix time `wall`, in the caller's transaction. Those about
    purged traces are left out.
    """
    if isinstance(connection, SharedConnection):
        # Two transactions at the same time would both take their answer for the newest one.
        connection.execute("LOCK TABLE feedback IN SHARE ROW EXCLUSIVE MODE")
    key = _key(connection)
    return [
        "purged"
        if is_purged((answer.tenant, answer.trace_id))
        else _record(connection, answer, wall, key)
        for answer in answers
    ]


def _record(connection: Connection, answer: Answer, wall: float, key: bytes) -> FeedbackOutcome:
    given = wall if answer.given_at is None else min(answer.given_at, wall)
    rater = pseudonym(key, answer.tenant, answer.rater)
    subject = (
        text_of(answer.trace_id),
        text_of(answer.span_id),
        text_of(answer.conversation_id),
        text_of(answer.tenant),
        text_of(answer.name),
    )
    body = _body(answer)
    sent = connection.execute(
        "SELECT trace_id, span_id, conversation, tenant, name, rater, body FROM feedback"
        " WHERE tenant = ? AND client = ?",
        (subject[3], text_of(answer.id)),
    ).fetchone()
    if sent is not None:
        return "repeated" if tuple(sent) == (*subject, rater, body) else "conflict"
    known = connection.execute(
        f"SELECT id, given FROM feedback WHERE {_subject(subject)} AND rater = ?"
        " AND is_current = 1",
        (*subject, rater),
    ).fetchone()
    is_current = known is None or known[1] <= given or known[1] > wall + _MAX_AHEAD_S
    if known is not None and is_current:
        connection.execute("UPDATE feedback SET is_current = 0 WHERE id = ?", (known[0],))
    trace_id, span_id, conversation, tenant, name = subject
    values = (
        *(tenant, trace_id, span_id, conversation, name, rater, text_of(answer.id)),
        *(given, wall, int(is_current), body),
    )
    row = (*values, _checksum(values))
    connection.execute(
        f"INSERT INTO feedback ({COLUMNS}, crc) VALUES ({','.join('?' * len(row))})", row
    )
    if known is None:
        return "created"
    _forget_replaced(connection, (*subject, rater))
    return "replaced" if is_current else "outdated"


def _subject(values: tuple[str, ...]) -> str:
    """The condition for trace, span, conversation, tenant and name."""
    return _OF_CONVERSATION if values[2] else _OF_RUN


def _forget_replaced(connection: Connection, person: tuple[str, ...]) -> None:
    found = connection.execute(
        f"SELECT id FROM feedback WHERE {_subject(person)} AND rater = ? AND is_current = 0"
        " ORDER BY id DESC LIMIT 1000 OFFSET ?",
        (*person, MAX_REPLACED),
    ).fetchall()
    delete(connection, "feedback", [row for (row,) in found])


def pseudonym(key: bytes, tenant: str, rater: str | None) -> str:
    """The name under which a rater is stored; empty without one."""
    if not rater:
        return ""
    text = f"{tenant}\x1f{rater}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, key=key, digest_size=_PSEUDONYM_BYTES).hexdigest()


def _key(connection: Connection) -> bytes:
    """The key of the pseudonyms, made when the first answer is stored."""
    found = connection.execute("SELECT value FROM feedback_key WHERE id = 1").fetchone()
    if found is None:
        fresh = secrets.token_bytes(_KEY_BYTES)
        connection.execute("INSERT INTO feedback_key (id, value) VALUES (1, ?)", (fresh,))
        return fresh
    return bytes(found[0])


def _body(answer: Answer) -> str:
    body = {
        "label": answer.label,
        "rating": answer.rating,
        "scale": answer.scale and list(answer.scale),
        "comment": answer.comment,
        "source": answer.source,
    }
    return text_of(orjson.dumps(_storable(body)).decode())


def _storable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _storable(one) for key, one in value.items()}
    return text_of(value) if isinstance(value, str) else value


def read(rows: Iterable[tuple[Any, ...]]) -> Iterator[StoredAnswer]:
    """The answers of rows with `id`, `COLUMNS` and `crc`, without damaged ones."""
    for row, *values, crc in rows:
        if crc != _checksum(values):
            continue
        tenant, trace_id, span_id, conversation, name, rater, client, given, at, _, text = values
        body = orjson.loads(text)
        answer = Answer(
            tenant,
            trace_id,
            span_id,
            conversation,
            name,
            body["label"],
            body["rating"],
            body["scale"] and Scale(*body["scale"]),
            body["comment"],
            rater or None,
            body["source"],
            given,
            client,
        )
        yield StoredAnswer(row, answer, at)


def _checksum(values: Iterable[Any]) -> int:
    """Without `is_current`, the only column that changes."""
    *fixed, _, body = values
    return checksum(*fixed, body)


def drop_old(connection: Connection, before: float, max_rows: int) -> int:
    """Delete answers stored before a Unix time; returns how many."""
    return connection.execute(
        "DELETE FROM feedback WHERE id IN"
        " (SELECT id FROM feedback WHERE at < ? ORDER BY at LIMIT ?)",
        (before, max_rows),
    ).rowcount


def drop_excess(connection: Connection, kept: int, max_rows: int) -> int:
    """Delete the oldest answers of the tenant with the most, while there are more than `kept` of
    all tenants; returns how many were deleted. So one tenant cannot push out the others' answers.
    """
    counts = connection.execute(
        "SELECT tenant, count(*) FROM feedback GROUP BY tenant ORDER BY count(*) DESC, tenant"
    ).fetchall()
    excess = sum(number for _, number in counts) - kept
    if excess <= 0:
        return 0
    tenant, number = counts[0]
    found = connection.execute(
        "SELECT id FROM feedback WHERE tenant = ? ORDER BY id LIMIT ?",
        (tenant, min(excess, number, max_rows)),
    ).fetchall()
    return delete(connection, "feedback", [row for (row,) in found])

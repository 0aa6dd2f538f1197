"""Queries about what people said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.feedback.opinion import Opinion, opinion
from pathgauge.collector.core.feedback.pairs import Judged, Pairing, Pairs
from pathgauge.collector.core.feedback.subjects import about_runs
from pathgauge.collector.core.feedback.verdict import VerdictRules
from pathgauge.collector.store.feedback import COLUMNS, StoredAnswer, read
from pathgauge.collector.store.queries.answered_sessions import (
    Clock,
    session_of,
    sessions_of,
)
from pathgauge.collector.store.queries.stored_result import (
    CriterionResult,
    Row,
    StoredResult,
    read as read_result,
)
from pathgauge.collector.store.schema import text_of
from pathgauge.collector.store.sql import MAX_KEYS, Connection, with_keys

MAX_ANSWERS = 10_000
"""The newest so many answers are compared with criteria."""
MAX_LISTED = 500
_TraceKey: TypeAlias = "tuple[str, str]"
_SELECT = f"SELECT id, {COLUMNS}, crc FROM feedback WHERE is_current = 1"


class Subject(NamedTuple):
    """What is asked about; an empty span id means the whole trace."""

    trace_id: str = ""
    span_id: str = ""
    conversation_ids: Sequence[str] = ()
    """Any of them, instead of a trace."""


def about(
    connection: Connection, subject: Subject, tenant: str | None = None
) -> list[StoredAnswer]:
    """The current answers, the newest first: about a trace also those about its spans."""
    where = " AND trace_id = ?"
    values: list[str] = [subject.trace_id]
    if subject.conversation_ids:
        values = list(map(text_of, subject.conversation_ids))
        # The second condition is that of the index.
        where = f" AND conversation IN ({','.join('?' * len(values))}) AND conversation <> ''"
    elif subject.span_id:
        where, values = f"{where} AND span_id IN (?, '')", [*values, subject.span_id]
    if tenant is not None:
        where, values = f"{where} AND tenant = ?", [*values, tenant]
    found = connection.execute(f"{_SELECT}{where} ORDER BY id DESC LIMIT ?", (*values, MAX_LISTED))
    return list(read(found))


def about_run(connection: Connection, run: StoredResult, clock: Clock) -> list[StoredAnswer]:
    """The current answers about a run, or about a session, the newest first."""
    tenant, trace_id, span_id = run.key
    found = about(connection, Subject(trace_id, span_id), tenant)
    if run.session is not None and run.session.conversation_id:
        subject = Subject(conversation_ids=(run.session.conversation_id,))
        said = about(connection, subject, tenant)
        sessions = sessions_of(connection, [one.answer for one in said])
        found += [one for one in said if session_of(one.answer, sessions, clock) == run.key]
    return sorted(found, key=lambda one: -one.row)


def opinions(
    connection: Connection, runs: Iterable[StoredResult], rules: VerdictRules
) -> Mapping[EvaluationKey, Opinion]:
    """What people say of these runs, and of others of their traces; nothing of those that nobody
    has answered.
    """
    traces = list(dict.fromkeys((one.tenant, one.trace_id) for one in runs))
    found: dict[EvaluationKey, Opinion] = {}
    for chunk in _chunks(traces):
        given = _answers(connection, chunk)
        results = _results(connection, list(given)) if given else {}
        for key, answers in given.items():
            for run, said in _assigned(answers, results.get(key, []), Pairing(rules)):
                names = {one.name for one in run.criteria}
                found[run.key] = opinion(rules, said, names)
    return found


def _answers(
    connection: Connection, keys: Sequence[_TraceKey]
) -> Mapping[_TraceKey, Sequence[Answer]]:
    columns = ", ".join(f"f.{name}" for name in f"id, {COLUMNS}, crc".split(", "))
    rows = with_keys(
        connection,
        "tenant, trace_id",
        keys,
        f"SELECT {columns} FROM keys CROSS JOIN feedback AS f WHERE f.trace_id = keys.trace_id"
        " AND f.tenant = keys.tenant AND f.is_current = 1",
    )
    found: dict[_TraceKey, list[Answer]] = {}
    for stored in read(rows):
        answer = stored.answer
        found.setdefault((answer.tenant, answer.trace_id), []).append(answer)
    return found


def answered_runs(
    connection: Connection,
    pairing: Pairing,
    clock: Clock,
    since: float,
    tenant: str | None = None,
) -> Iterator[tuple[StoredResult, list[Answer]]]:
    """Each run and session with the newest answers about it, the newest first. Answers about none
    are left to `pairing`.
    """
    by_trace: dict[_TraceKey, list[Answer]] = {}
    for answer in _placed(connection, _newest(connection, since, tenant), pairing, clock):
        by_trace.setdefault((answer.tenant, answer.trace_id), []).append(answer)
    for chunk in _chunks(list(by_trace)):
        results = _results(connection, chunk)
        for key in chunk:
            yield from _assigned(by_trace[key], results.get(key, []), pairing)


def _newest(connection: Connection, since: float, tenant: str | None) -> list[Answer]:
    where = " AND at >= ?"
    values: list[str | float] = [since]
    if tenant is not None:
        where, values = f"{where} AND tenant = ?", [since, tenant]
    found = connection.execute(f"{_SELECT}{where} ORDER BY id DESC LIMIT ?", (*values, MAX_ANSWERS))
    return [stored.answer for stored in read(found)]


def _placed(
    connection: Connection, answers: Sequence[Answer], pairing: Pairing, clock: Clock
) -> Iterator[Answer]:
    """The answers; those about conversations as ones about the results of their sessions."""
    sessions = sessions_of(connection, (one for one in answers if one.conversation_id))
    for answer in answers:
        if not answer.conversation_id:
            yield answer
        elif (key := session_of(answer, sessions, clock)) is not None:
            yield replace(answer, trace_id=key[1], span_id=key[2])
        else:
            pairing.leave("waiting")


def _chunks(keys: Sequence[_TraceKey]) -> Iterator[Sequence[_TraceKey]]:
    return (keys[start : start + MAX_KEYS] for start in range(0, len(keys), MAX_KEYS))


def _results(
    connection: Connection, keys: Sequence[_TraceKey]
) -> dict[_TraceKey, list[StoredResult]]:
    """The results of traces."""
    columns = ", ".join(f"r.{name}" for name in Row._fields)
    # `||` keeps SQLite from an index that begins with the tenant, of whom there may be only one.
    rows = with_keys(
        connection,
        "tenant, trace_id",
        keys,
        f"SELECT {columns} FROM keys CROSS JOIN results AS r WHERE r.trace_id = keys.trace_id"
        " AND r.tenant || '' = keys.tenant AND r.withdrawn = 0 AND r.verdict <> ''"
        " ORDER BY r.id DESC",
    )
    found: dict[_TraceKey, list[StoredResult]] = {}
    for result in filter(None, (read_result(Row._make(row)) for row in rows)):
        found.setdefault((result.tenant, result.trace_id), []).append(result)
    return found


def pairs(
    connection: Connection,
    rules: VerdictRules,
    clock: Clock,
    since: float,
    tenant: str | None = None,
) -> Pairs:
    """The answers since a Unix time, paired with what criteria said of the same runs and
    sessions.
    """
    pairing = Pairing(rules)
    for run, given in answered_runs(connection, pairing, clock, since, tenant):
        pairing.add(run.tenant, run.at, given, [_judged(one) for one in run.criteria])
    return pairing.found


def _assigned(
    answers: Sequence[Answer], results: Sequence[StoredResult], pairing: Pairing
) -> Iterator[tuple[StoredResult, list[Answer]]]:
    """Each answered run of a trace with the answers about it."""
    by_span = {result.span_id: result for result in results}
    found = about_runs(answers, by_span)
    if found.none:
        pairing.leave("ambiguous" if by_span else "waiting", len(found.none))
    for span_id, about_run in found.runs.items():
        yield by_span[span_id], about_run


def _judged(one: CriterionResult) -> Judged:
    passed = {"passed": True, "failed": False}.get(one.verdict)
    return Judged(one.name, one.scorer, one.judge, passed)

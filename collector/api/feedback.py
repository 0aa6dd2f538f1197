"""Answers queries about what people said, and takes what they say."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from pathgauge.collector.api.feedback_models import (
    AgreementQuery,
    Agreements,
    FeedbackQuery,
    GivenAnswer,
    GivenAnswers,
    MeasuredAgreement,
)
from pathgauge.collector.api.models import time_of
from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.feedback.kappa import Table, agreement
from pathgauge.collector.core.feedback.pairs import CriterionKey
from pathgauge.collector.core.feedback.verdict import VerdictRules
from pathgauge.collector.store import FeedbackOutcome
from pathgauge.collector.store.feedback import StoredAnswer
from pathgauge.collector.store.queries import feedback as rows
from pathgauge.collector.store.queries.answered_sessions import Clock
from pathgauge.collector.store.queries.feedback import Subject
from pathgauge.collector.store.queries.stored_result import StoredResult

Record: TypeAlias = Callable[[Sequence[Answer]], Sequence[FeedbackOutcome]]
"""Redacts answers and makes them durable. Raises `StoreError`."""


@dataclass(frozen=True, slots=True)
class FeedbackIntake:
    """Takes answers, for the API and the pages."""

    record: Record
    tenants: frozenset[str] = frozenset({""})
    """The configured tenants."""
    count: Callable[[str, str], None] = field(default=lambda source, outcome: None)
    """Counts a request by its source and outcome."""

    def take(self, answer: Answer) -> FeedbackOutcome:
        """Make one answer durable. Raises `ProblemError` and `StoreError`; for any thread."""
        if answer.tenant not in self.tenants:
            raise ProblemError(
                422, f"tenant: found {answer.tenant[:100]!r}, expected a configured one"
            )
        [outcome] = self.record([answer])
        if outcome == "purged":
            raise ProblemError(410, "trace_id: the trace was purged; nothing about it is kept")
        if outcome == "conflict":
            raise ProblemError(409, "id: another answer has this id; choose a new one to revise it")
        return outcome


def given(sources: Sources, tenant: str | None, query: FeedbackQuery) -> GivenAnswers:
    """The answers about a run, a trace or a conversation."""
    if sources.reading is None:
        return GivenAnswers(answers=[])
    wanted = query.tenant if tenant is None else tenant
    conversations: Collection[str] = ()
    if query.conversation_id:
        conversations = sources.conversation_ids(query.conversation_id, wanted)
    subject = Subject(query.trace_id or "", query.span_id or "", tuple(conversations))
    with sources.reading() as connection:
        found = rows.about(connection, subject, wanted)
    return GivenAnswers(answers=[given_answer(one, sources.verdict_rules) for one in found])


def given_about(sources: Sources, run: StoredResult) -> Sequence[GivenAnswer]:
    """The answers about a run, or about a session."""
    if sources.reading is None:
        return ()
    clock = Clock(time.time(), sources.session_bounds)
    with sources.reading() as connection:
        found = rows.about_run(connection, run, clock)
    return [given_answer(one, sources.verdict_rules) for one in found]


def given_answer(stored: StoredAnswer, rules: VerdictRules) -> GivenAnswer:
    """One stored answer, with what it means."""
    answer = stored.answer
    return GivenAnswer(
        trace_id=answer.trace_id or None,
        span_id=answer.span_id or None,
        conversation_id=answer.conversation_id or None,
        tenant=answer.tenant,
        name=answer.name,
        label=answer.label,
        rating=answer.rating,
        scale=answer.scale,
        passed=rules.verdict(answer),
        comment=answer.comment,
        rater=answer.rater,
        source=answer.source,
        time=time_of(stored.at if answer.given_at is None else answer.given_at),
    )


def agreements(sources: Sources, tenant: str | None, query: AgreementQuery) -> Agreements:
    """The agreement of criteria with people."""
    if sources.reading is None:
        return Agreements(metrics=[], answers={})
    now = time.time()
    clock = Clock(now, sources.session_bounds)
    since = now - sources.feedback_window
    wanted = query.tenant if tenant is None else tenant
    with sources.reading() as connection:
        found = rows.pairs(connection, sources.verdict_rules, clock, since, wanted)
    return Agreements(
        metrics=[_measured(key, table) for key, table in sorted(found.tables.items())],
        answers={state: number for state, number in found.answers.items() if number},
    )


def _measured(key: CriterionKey, table: Table) -> MeasuredAgreement:
    found = agreement(table)
    return MeasuredAgreement(
        tenant=key.tenant,
        metric=key.metric,
        judge=key.judge,
        pairs=table.pairs,
        both_passed=table.both,
        only_people_passed=table.people_only,
        only_metric_passed=table.criterion_only,
        neither_passed=table.neither,
        kappa=None if found is None else found.kappa,
        lower=None if found is None else found.lower,
        upper=None if found is None else found.upper,
    )

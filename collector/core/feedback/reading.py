"""Reads the answers of people from spans and log records as they arrive.

Spans with answers are spans like others. Log records with answers are not passed on to the
assembler: they often come days after their trace, which they would open again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeAlias

from pathgauge.collector.core.feedback.answer import MAX_ID_CHARS, Answer, derived_id
from pathgauge.collector.core.feedback.forms import (
    MAX_ANSWERS,
    Attributes,
    Said,
    may_answer,
    said,
)
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.invocations.dialects.vocabulary import is_infrastructure
from pathgauge.collector.core.otlp.own_events import SCOPE
from pathgauge.collector.core.otlp.spans import LogRecord, Span

_NS = 1e9
_CONVERSATION_KEYS = ("gen_ai.conversation.id", "session.id")

_Found: TypeAlias = "Iterator[tuple[Said, Answer]]"


class FeedbackReader:
    """Counts what it reads, and what it leaves out and why."""

    def __init__(self, telemetry: InternalTelemetry) -> None:
        self._telemetry = telemetry

    def of_spans(self, spans: Iterable[Span]) -> list[Answer]:
        """The answers in the attributes and events of spans, without those of instrumentations of
        servers, clients and databases: they are most of the spans, and nobody answers there.
        """
        marked = [
            span
            for span in spans
            if not is_infrastructure(span.scope.name) and may_answer(span.raw)
        ]
        return [answer for span in marked for answer in self._of(span, _of_span)]

    def of_logs(self, logs: Sequence[LogRecord]) -> tuple[Sequence[LogRecord], list[Answer]]:
        """The log records without answers of people, and the answers of the others."""
        others: list[LogRecord] = []
        answers: list[Answer] = []
        for log in logs:
            found = self._of(log, _of_log) if may_answer(log.raw) else []
            if found:
                self._telemetry.logs_dropped.add("feedback")
                answers += found
            else:
                others.append(log)
        return others, answers

    def _of(self, record: Any, read: Callable[[Any], _Found]) -> list[Answer]:
        if record.scope.name == SCOPE:
            return []  # what pathgauge has exported is no answer of a person
        try:
            return list(self._kept(read(record)))
        except Exception:  # what a sender wrote must not affect other records
            self._telemetry.feedback_dropped.add("unreadable")
            return []
        finally:
            record.release()

    def _kept(self, found: _Found) -> Iterator[Answer]:
        for one, answer in islice(found, MAX_ANSWERS):
            reason = _useless(one, answer)
            if reason is None:
                self._telemetry.feedback_read.add(one.source)
                yield answer
            else:
                self._telemetry.feedback_dropped.add(reason)
        if further := sum(1 for _ in found):
            self._telemetry.feedback_dropped.add("too_many", n=further)


def _useless(said: Said, answer: Answer) -> str | None:
    """Why an answer is not used."""
    if not said.is_human:
        return "not_human"
    if said.is_empty:
        return "no_value"
    has_subject = answer.conversation_id if said.target == "session" else answer.trace_id
    return None if has_subject else "no_subject"


def _of_span(span: Span) -> _Found:
    for one in said(span.attributes):
        about = span.parent_id or "" if one.target == "parent" else span.span_id
        yield one, _answer(one, span, about, span.attributes, span.end_ns)
    for event in span.events:
        for one in said(event.attributes, event.name):
            yield one, _answer(one, span, span.span_id, event.attributes, event.time_ns)


def _of_log(log: LogRecord) -> _Found:
    for one in said(log.attributes, log.event_name, log.body):
        yield one, _answer(one, log, log.span_id or "", log.attributes, log.time_ns)


def _answer(
    one: Said, record: Span | LogRecord, span_id: str, attributes: Attributes, time_ns: int
) -> Answer:
    is_session = one.target == "session"
    trace_id = "" if is_session else record.trace_id
    span_id = span_id if one.target in ("span", "parent") else ""
    conversation = next(
        (str(attributes[key]) for key in _CONVERSATION_KEYS if attributes.get(key)), ""
    )
    given = (one.source, one.name, one.label, one.rating, one.rater, time_ns)
    return Answer(
        record.tenant,
        trace_id,
        span_id,
        conversation[:MAX_ID_CHARS] if is_session else "",
        one.name,
        one.label,
        one.rating,
        one.scale,
        one.comment,
        one.rater,
        one.source,
        time_ns / _NS if time_ns else None,
        f"{one.source}:{one.id or derived_id(record.trace_id, span_id, *given)}",
    )

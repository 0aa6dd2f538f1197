"""Answers of people about the runs of `support/evaluated.py`."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pathgauge.collector.core.feedback.answer import Answer, derived_id
from pathgauge.collector.core.feedback.kappa import Table
from pathgauge.collector.core.feedback.pairs import CriterionKey, Pairs
from pathgauge.collector.core.pipeline_events import FeedbackGiven, PublishedEvent
from pathgauge.collector.store import Selection
from pathgauge.collector.testing import span_id, trace_id
from support.evaluated import WALL, evaluation
from support.sessions import session


def answer(run: str = "a", label: str = "up", /, *, tenant: str = "", **fields: Any) -> Answer:
    """An answer about a run. Equal answers have equal ids."""
    given = {"label": label, "id": derived_id(run, label, sorted(fields.items())), **fields}
    return Answer(tenant, trace_id(run), span_id(run), **given)


def about_talk(
    conversation: str, label: str = "up", /, *, at: float, tenant: str = "", **fields: Any
) -> Answer:
    """An answer about a conversation, given at the Unix time `at`."""
    unique = derived_id(tenant, conversation, label, at, sorted(fields.items()))
    return Answer(
        tenant, "", conversation_id=conversation, label=label, given_at=at, id=unique, **fields
    )


def given(*answers: Answer) -> list[PublishedEvent]:
    return [FeedbackGiven(one) for one in answers]


SELECTIONS = {
    "trace": Selection(trace_id=trace_id("a")),
    "scenario": Selection(scenario="parcel"),
    "age": Selection(before=WALL + 50),
}


def talked(name: str, **fields: Any) -> Any:
    found = evaluation(name, **fields)
    return replace(found, invocation=replace(found.invocation, conversation_id=f"talk {name}"))


def content() -> list[tuple[list[PublishedEvent], float]]:
    """Of `a` everything is purged, of `b` nothing."""
    said = [
        (answer(name, comment=f"secret of {name}"), Answer("", "", conversation_id=f"talk {name}"))
        for name in "ab"
    ]
    of_a, of_b = (
        given(run, replace(talk, label="up", id=talk.conversation_id)) for run, talk in said
    )
    return [
        ([talked("a"), *of_a], WALL),
        ([talked("b", scenario="refund"), *of_b], WALL + 100),
    ]


def of_tenants(*tenants: str) -> list[Answer]:
    """In each tenant, the same answers about a run and about a conversation."""
    return [
        one
        for tenant in tenants
        for one in (answer(tenant=tenant), about_talk("talk", at=2.0, tenant=tenant))
    ]


def answered_talks() -> list[list[PublishedEvent]]:
    """Sessions of several conversations, and answers before, between and after their results."""
    return [
        given(about_talk("early", "down", at=2.0), about_talk("never", "up", at=2.0)),
        [session("a", "early"), session("b", "late", "failed"), session("c", "other")],
        [session("n", "late", tenant="north"), *given(about_talk("late", "down", at=2.0))],
        given(
            about_talk("late", "down", at=2.0, tenant="north"),
            about_talk("other", "blue", at=2.0),
        ),
    ]


def paired_talks() -> Pairs:
    """What becomes of them."""
    return Pairs(
        {
            CriterionKey("", "trajectory"): Table(criterion_only=1, neither=1),
            CriterionKey("north", "trajectory"): Table(criterion_only=1),
        },
        Counter({"paired": 3, "waiting": 1, "no_verdict": 1}),
    )


def answered_trace(body: bytes, label: str) -> bytes:
    """The trace with what a person said of its run."""
    request = ExportTraceServiceRequest.FromString(body)
    root = next(
        span
        for group in request.resource_spans
        for scope in group.scope_spans
        for span in scope.spans
        if not span.parent_span_id
    )
    for field, value in (("annotator_kind", "HUMAN"), ("label", label)):
        attribute = root.attributes.add(key=f"annotations.0.annotation.{field}")
        attribute.value.string_value = value
    return request.SerializeToString()

"""The answers of people are found in every notation, and nothing else is taken for one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pathgauge.collector.core.counters import Counter
from pathgauge.collector.core.evaluations.evaluator import Evaluator
from pathgauge.collector.core.feedback.answer import Answer, Scale
from pathgauge.collector.core.feedback.forms import MAX_ANSWERS
from pathgauge.collector.core.feedback.reading import FeedbackReader
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import FeedbackGiven
from pathgauge.collector.core.redaction import Redactor, Rules
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.testing import log, span, span_id, trace_id
from support.dialects import INSTALLED

RESULT, USER = "gen_ai.evaluation.result", "gen_ai.evaluation.user_feedback"
HUMAN = {"microsoft.gen_ai.evaluation.actor.type": "human"}


def read(*records: Span | LogRecord) -> tuple[list[Answer], InternalTelemetry]:
    telemetry = InternalTelemetry()
    reader = FeedbackReader(telemetry)
    spans = [one for one in records if isinstance(one, Span)]
    _, answers = reader.of_logs([one for one in records if isinstance(one, LogRecord)])
    return [*reader.of_spans(spans), *answers], telemetry


def counted(counter: Counter) -> dict[str, int]:
    return {"/".join(labels): number for labels, number in counter.items()}


def annotation(prefix: str = "annotations.0.annotation.", /, **fields: Any) -> dict[str, Any]:
    return {f"{prefix}{key}": value for key, value in fields.items()}


def on_span(attributes: dict[str, Any]) -> Span:
    return span("a", "work", attributes, parent="p")


SPAN = {"trace_id": trace_id("trace"), "span_id": span_id("a")}
FORMS: dict[str, tuple[Span | LogRecord, dict[str, Any]]] = {
    "Azure": (
        log(
            RESULT,
            {
                "gen_ai.evaluation.name": "task_completion",
                "gen_ai.evaluation.score.value": "1.0",
                "gen_ai.evaluation.score.label": "pass",
                "gen_ai.evaluation.explanation": "fine",
                "user.id": "ann",
                **HUMAN,
            },
            span="a",
        ),
        {
            **SPAN,
            "source": "gen_ai",
            "name": "task_completion",
            "label": "pass",
            "rating": 1.0,
            "comment": "fine",
            "rater": "ann",
        },
    ),
    "evaluator type": (
        log(
            RESULT,
            {
                "gen_ai.evaluation.score.value": 0.5,
                "gen_ai.evaluation.evaluator.type": "human",
            },
            span="a",
        ),
        {**SPAN, "source": "gen_ai", "name": "feedback", "rating": 0.5},
    ),
    "span event": (
        span("a", "work", events=[(RESULT, {"gen_ai.evaluation.score.label": "fail", **HUMAN})]),
        {**SPAN, "source": "gen_ai", "name": "feedback", "label": "fail"},
    ),
    "user feedback of the drafts": (
        log(USER, {"gen_ai.evaluation.score": -1}, body={"comment": "bad"}),
        {
            "trace_id": trace_id("trace"),
            "span_id": "",
            "source": "gen_ai",
            "name": "user_feedback",
            "rating": -1.0,
            "scale": Scale(-1, 1),
            "comment": "bad",
        },
    ),
    "OpenInference": (
        on_span(
            annotation(name="correctness", label="correct", annotator_kind="HUMAN", identifier="u")
        ),
        {
            **SPAN,
            "source": "openinference",
            "name": "correctness",
            "label": "correct",
            "rater": "u",
        },
    ),
    "OpenInference, the trace": (
        on_span(
            annotation("trace.evaluations.3.evaluation.", name="c", score=1, annotator_kind="Human")
        ),
        {
            "trace_id": trace_id("trace"),
            "span_id": "",
            "source": "openinference",
            "name": "c",
            "rating": 1.0,
        },
    ),
    "OpenInference, the session": (
        on_span(
            {
                **annotation(
                    "session.annotations.0.annotation.", name="c", score=0, annotator_kind="HUMAN"
                ),
                "session.id": "talk",
            }
        ),
        {
            "trace_id": "",
            "span_id": "",
            "conversation_id": "talk",
            "source": "openinference",
            "name": "c",
            "rating": 0.0,
        },
    ),
    "Logfire": (
        on_span({"logfire.feedback.name": "thumb", "thumb": True}),
        {
            "trace_id": trace_id("trace"),
            "span_id": span_id("p"),
            "source": "logfire",
            "name": "thumb",
            "label": "true",
        },
    ),
    "Langfuse": (
        on_span(
            {
                "langfuse.score.name": "quality",
                "langfuse.score.value": 0.25,
                "langfuse.score.source": "ANNOTATION",
            }
        ),
        {**SPAN, "source": "langfuse", "name": "quality", "rating": 0.25},
    ),
    "Langfuse, from its SDK": (
        log("x", {"langfuse.score.name": "user-feedback", "langfuse.score.value": 1}, span="a"),
        {**SPAN, "source": "langfuse", "name": "user-feedback", "rating": 1.0},
    ),
    "LangSmith": (
        on_span(
            {
                "langsmith.feedback.key": "tone",
                "langsmith.feedback.value": "rude",
                "langsmith.feedback.feedback_source.type": "app",
            }
        ),
        {**SPAN, "source": "langsmith", "name": "tone", "label": "rude"},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_is_read(form: str) -> None:
    record, fields = FORMS[form]
    [found], telemetry = read(record)
    assert replace(found, id="", given_at=None) == Answer("", **fields)
    assert counted(telemetry.feedback_read) == {found.source: 1}
    assert counted(telemetry.feedback_dropped) == {}


@pytest.mark.parametrize("form", FORMS)
def test_an_answer_that_is_sent_again_has_the_same_id(form: str) -> None:
    record, _ = FORMS[form]
    [first], _ = read(record)
    [again], _ = read(record)
    assert first.id == again.id
    assert first.id.startswith(f"{first.source}:")


def test_an_answer_about_a_run_is_not_one_about_its_conversation() -> None:
    attributes = {"gen_ai.evaluation.score.value": 1.0, "gen_ai.conversation.id": "c", **HUMAN}
    [found], _ = read(log(RESULT, attributes, span="a"))
    assert (found.trace_id, found.conversation_id) == (trace_id("trace"), "")


def test_an_answer_without_a_time_was_given_when_it_arrived() -> None:
    attributes = {"gen_ai.evaluation.score.value": 1.0, **HUMAN}
    record = log(RESULT, attributes, time=7.5)
    [known], _ = read(record)
    record.time_ns = 0
    [unknown], _ = read(record)
    assert (known.given_at, unknown.given_at) == (1_700_000_007.5, None)


def test_what_was_decoded_to_look_for_answers_does_not_stay_in_memory() -> None:
    record = on_span(annotation(name="n", score=1, annotator_kind="HUMAN"))
    decoded = record.attributes
    read(record)
    assert record.attributes is not decoded


NO_ANSWERS: dict[str, tuple[Span | LogRecord, str]] = {
    "a model": (log(RESULT, {"gen_ai.evaluation.score.value": 1.0}, span="a"), "not_human"),
    "another evaluator": (
        log(
            RESULT,
            {"gen_ai.evaluation.score.value": 1, "gen_ai.evaluation.evaluator.type": "llm_judge"},
        ),
        "not_human",
    ),
    "a model about what users ask": (
        log(
            RESULT,
            {
                "gen_ai.evaluation.name": "user_feedback",
                "gen_ai.evaluation.score.value": 1,
                "gen_ai.evaluation.evaluator.type": "llm",
            },
        ),
        "not_human",
    ),
    "a model in Phoenix": (
        on_span(annotation(name="correctness", score=1, annotator_kind="LLM")),
        "not_human",
    ),
    "unknown in Phoenix": (on_span(annotation(name="annotator_kind", score=1)), "not_human"),
    "an evaluator of Langfuse": (
        on_span(
            {
                "langfuse.score.name": "user-feedback",
                "langfuse.score.value": 1,
                "langfuse.score.source": "EVAL",
            }
        ),
        "not_human",
    ),
    "a model in LangSmith": (
        on_span(
            {
                "langsmith.feedback.key": "user_score",
                "langsmith.feedback.score": 1,
                "langsmith.feedback.feedback_source.type": "model",
            }
        ),
        "not_human",
    ),
    "a comment alone": (log(RESULT, {"gen_ai.evaluation.explanation": "hm", **HUMAN}), "no_value"),
    "no number": (
        log(RESULT, {"gen_ai.evaluation.score.value": float("nan"), **HUMAN}),
        "no_value",
    ),
    "no conversation": (
        on_span(
            annotation(
                "session.annotations.0.annotation.", score=1, annotator_kind="HUMAN", name="n"
            )
        ),
        "no_subject",
    ),
}


@pytest.mark.parametrize("what", NO_ANSWERS)
def test_nothing_else_is_an_answer(what: str) -> None:
    record, reason = NO_ANSWERS[what]
    answers, telemetry = read(record)
    assert answers == []
    assert counted(telemetry.feedback_dropped) == {reason: 1}
    assert counted(telemetry.feedback_read) == {}


def test_what_pathgauge_has_exported_is_never_read_back() -> None:
    attributes = {"gen_ai.evaluation.score.value": 1.0, **HUMAN}
    answers, telemetry = read(
        log(RESULT, attributes, scope="pathgauge"),
        span("a", "x", scope="pathgauge", events=[(RESULT, attributes)]),
    )
    assert answers == []
    assert counted(telemetry.feedback_dropped) == {}


def test_instrumentations_of_clients_are_not_looked_at() -> None:
    attributes = annotation(name="n", score=1, annotator_kind="HUMAN")
    answers, telemetry = read(
        span("a", "GET", attributes, scope="opentelemetry.instrumentation.httpx")
    )
    assert answers == []
    assert counted(telemetry.feedback_dropped) == {}


def test_the_answers_of_one_record_are_bounded() -> None:
    attributes: dict[str, Any] = {}
    for number in range(MAX_ANSWERS + 7):
        attributes |= annotation(
            f"annotations.{number}.annotation.", name="n", score=1, annotator_kind="HUMAN"
        )
    answers, telemetry = read(on_span(attributes))
    assert len(answers) == MAX_ANSWERS
    assert counted(telemetry.feedback_dropped) == {"too_many": 7}


def pipeline(telemetry: InternalTelemetry, *, takes_feedback: bool = True) -> Pipeline:
    return Pipeline(
        INSTALLED,
        Evaluator(()),
        ReferenceSet([]),
        telemetry,
        Bounds(settle=1.0),
        takes_feedback=takes_feedback,
    )


def test_feedback_that_comes_late_does_not_open_its_trace_again() -> None:
    telemetry = InternalTelemetry()
    flow = pipeline(telemetry)
    record, _ = FORMS["Azure"]
    assert isinstance(record, LogRecord)
    [given] = flow.feed((), [record], 0.0)
    assert isinstance(given, FeedbackGiven)
    assert flow.usage().open_traces == 0
    assert counted(telemetry.logs_dropped) == {"feedback": 1}
    other = log(RESULT, {"gen_ai.evaluation.score.value": 1.0}, span="a")
    assert flow.feed((), [other], 0.0) == []
    assert flow.usage().open_traces == 1


def test_feedback_about_a_purged_trace_is_dropped() -> None:
    telemetry = InternalTelemetry()
    flow = pipeline(telemetry)
    flow.discard({("", trace_id("trace"))})
    record, _ = FORMS["OpenInference"]
    assert isinstance(record, Span)
    assert flow.feed([record], (), 0.0) == []
    assert counted(telemetry.feedback_dropped) == {"purged": 1}


def test_feedback_can_be_switched_off() -> None:
    telemetry = InternalTelemetry()
    record, _ = FORMS["Azure"]
    assert isinstance(record, LogRecord)
    assert pipeline(telemetry, takes_feedback=False).feed((), [record], 0.0) == []
    assert counted(telemetry.feedback_dropped) == {"off": 1}


@pytest.mark.parametrize("form", FORMS)
def test_without_content_only_the_comments_are_lost(form: str) -> None:
    record, fields = FORMS[form]
    redactor = Redactor(Rules(content=False), {}, b"salt", INSTALLED)
    kept = (
        redactor.spans([record]).records[0]
        if isinstance(record, Span)
        else redactor.logs([record]).records[0]
    )
    [found], _ = read(kept)
    expected = Answer("", **fields)
    assert (found.name, found.label, found.rating) == (
        expected.name,
        expected.label,
        expected.rating,
    )
    assert found.comment is None

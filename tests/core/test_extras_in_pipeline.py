"""Spans and texts of models are kept for as long as a criterion needs them, and no longer."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from pathgauge import Failure, HasMatchingSpan, SpanQuery, Stagnation
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.evaluations.fingerprint import fingerprint
from pathgauge.collector.core.evaluations.memory_size import memory_size
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.testing import span
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED

SLOW = HasMatchingSpan(SpanQuery(has_attributes={"db.system": "pg"}, min_duration=2))
FAILURE = Criterion("failure", Failure())
QUERIES = Criterion("slow", SLOW, 1.0)
TEXTS = Criterion("stagnation", Stagnation())
ANSWER = {
    "role": "assistant",
    "parts": [{"type": "text", "content": "Your order is on its way to you."}],
    "finish_reason": "stop",
}


def agent(trace: str) -> list[Span]:
    chat = {
        "gen_ai.operation.name": "chat",
        "gen_ai.output.messages": json.dumps([ANSWER]),
    }
    return [
        span(
            "agent", "invoke_agent a", {"gen_ai.operation.name": "invoke_agent"}, trace=trace, end=9
        ),
        span("chat", "chat m", chat, parent="agent", trace=trace),
    ]


def query(trace: str, seconds: float, system: str = "pg") -> Span:
    attributes = {"db.system": system, "db.statement": "SELECT 1"}
    return span("query", "SELECT", attributes, parent="agent", trace=trace, end=seconds)


def pipeline(*criteria: Criterion) -> Pipeline:
    return Pipeline(INSTALLED, Evaluator(criteria), ReferenceSet(), InternalTelemetry())


def evaluated(under_test: Pipeline, spans: list[Span], now: float) -> Evaluation:
    """The evaluation of the only invocation in spans that arrive together."""
    events = [*under_test.feed(spans, [], now), *under_test.expire(now + 40)]
    (evaluation,) = (event for event in events if isinstance(event, Evaluation))
    return evaluation


def value(evaluation: Evaluation, name: str) -> float | None:
    return {one.criterion.name: one.score.value for one in evaluation.results}[name]


@pytest.mark.parametrize(("seconds", "expected"), [(3, 1.0), (1, 0.0)])
def test_a_query_finds_spans_that_no_dialect_knows(seconds: float, expected: float) -> None:
    found = evaluated(pipeline(QUERIES, FAILURE), [*agent("t"), query("t", seconds)], 0)
    assert value(found, "slow") == expected


def test_only_what_a_criterion_needs_is_kept() -> None:
    spans = [*agent("t"), query("t", 3)]
    plain = evaluated(pipeline(FAILURE), spans, 0).invocation
    with_spans = evaluated(pipeline(FAILURE, QUERIES), spans, 0).invocation
    with_texts = evaluated(pipeline(FAILURE, TEXTS), spans, 0).invocation
    assert plain.spans == with_texts.spans == ()
    assert [dict(one.attributes) for one in with_spans.spans] == [{}, {"db.system": "pg"}, {}]
    assert [call.text for call in plain.model_calls] == [None]
    assert [call.text for call in with_spans.model_calls] == [None]
    assert [call.text for call in with_texts.model_calls] == ["Your order is on its way to you."]
    assert memory_size(plain) < memory_size(with_texts) < memory_size(with_spans)


def test_a_criterion_of_one_scenario_is_enough() -> None:
    evaluator = Evaluator((FAILURE,), {"refund": (FAILURE, QUERIES), "order": (TEXTS,)})
    assert evaluator.extras.span_attributes == frozenset({"db.system"})
    assert evaluator.extras.model_texts
    assert Evaluator((FAILURE,)).extras.span_attributes is None


def test_a_reload_keeps_spans_from_then_on() -> None:
    under_test = pipeline(FAILURE)
    assert evaluated(under_test, [*agent("1"), query("1", 3)], 0).invocation.spans == ()
    under_test.configure(Evaluator((FAILURE, QUERIES)), ReferenceSet())
    assert value(evaluated(under_test, [*agent("2"), query("2", 3)], 100), "slow") == 1.0
    under_test.configure(Evaluator((FAILURE,)), ReferenceSet())
    assert evaluated(under_test, [*agent("3"), query("3", 3)], 200).invocation.spans == ()


def test_a_late_span_that_a_query_finds_causes_a_revision() -> None:
    under_test = pipeline(QUERIES)
    first = evaluated(under_test, agent("t"), 0)
    late = evaluated(under_test, [query("t", 3)], 50)
    assert (value(first, "slow"), first.revision) == (0.0, 0)
    assert (value(late, "slow"), late.revision) == (1.0, 1)


def test_without_such_a_criterion_the_late_span_changes_nothing() -> None:
    under_test = pipeline(FAILURE)
    evaluated(under_test, agent("t"), 0)
    events = [*under_test.feed([query("t", 3)], [], 50), *under_test.expire(100)]
    assert not [event for event in events if isinstance(event, Evaluation)]


def test_invocations_with_spans_and_texts_can_be_stored() -> None:
    found = evaluated(pipeline(QUERIES, TEXTS), [*agent("t"), query("t", 3)], 0).invocation
    adapter: TypeAdapter[Any] = TypeAdapter(Invocation)
    restored = adapter.validate_json(adapter.dump_json(found))
    assert restored == found
    assert fingerprint(restored) == fingerprint(found)


def test_each_part_of_a_span_is_part_of_the_fingerprint() -> None:
    def of(*others: Span) -> str:
        return fingerprint(evaluated(pipeline(QUERIES), [*agent("t"), *others], 0).invocation)

    different = [of(), of(query("t", 3)), of(query("t", 4)), of(query("t", 3, "mysql"))]
    assert len(set(different)) == len(different)

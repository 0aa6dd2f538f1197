"""Pydantic Evals: whether spans match a query, and how many."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic_evals.evaluators import EvaluatorContext, HasMatchingSpan
from pydantic_evals.otel import SpanNode, SpanTree

from .lines import Case, Results, answer

START = datetime(2026, 1, 1, tzinfo=UTC)


def results(case: Case) -> Results:
    """1 if a span matches, and the number of those that do."""
    tree = SpanTree()
    tree.add_spans([node(span) for span in case["spans"]])
    context: EvaluatorContext[object, object, object] = EvaluatorContext(
        name=None,
        inputs=None,
        metadata=None,
        expected_output=None,
        output=None,
        duration=1.0,
        _span_tree=tree,
        attributes={},
        metrics={},
    )
    return {
        "has_matching_span": float(HasMatchingSpan(case["query"]).evaluate(context)),
        "count": float(len(tree.find(case["query"]))),
    }


def node(span: list[Any]) -> SpanNode:
    """A span of a case."""
    span_id, parent, name, start, end, status, attributes = span
    return SpanNode(
        name=name,
        trace_id=1,
        span_id=span_id,
        parent_span_id=parent,
        start_timestamp=START + timedelta(milliseconds=start),
        end_timestamp=START + timedelta(milliseconds=end),
        attributes=attributes,
        status=status,
    )


if __name__ == "__main__":
    answer(("pydantic-evals",), results)

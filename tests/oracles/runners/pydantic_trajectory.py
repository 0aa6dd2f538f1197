"""Pydantic Evals: the match of tool names in spans, in its three orders, or as often as they were
expected.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pydantic_evals.evaluators import EvaluatorContext, ToolCorrectness, TrajectoryMatch
from pydantic_evals.otel import SpanNode, SpanTree

from .lines import Case, Results, answer

ORDERS = ("exact", "in_order", "any_order")
START = datetime(2026, 1, 1, tzinfo=UTC)


def results(case: Case) -> Results:
    """The score of every order, and of the tools alone."""
    actual = context([name for name, _ in case["actual"]])
    expected = [name for name, _ in case["expected"]]
    found = {
        order: TrajectoryMatch(expected, order=order).evaluate(actual).value for order in ORDERS
    }
    found["tools"] = float(ToolCorrectness(expected).evaluate(actual).value)
    found["tools allow_extra"] = float(
        ToolCorrectness(expected, allow_extra=True).evaluate(actual).value
    )
    return found


def context(names: list[str]) -> EvaluatorContext[object, object, object]:
    """What an evaluator sees of an agent that called these tools."""
    tree = SpanTree()
    tree.add_spans([span(number, name) for number, name in enumerate(names)])
    return EvaluatorContext(
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


def span(number: int, name: str) -> SpanNode:
    """The span of a call."""
    start = START + timedelta(seconds=number)
    return SpanNode(
        name=f"execute_tool {name}",
        trace_id=1,
        span_id=number + 1,
        parent_span_id=None,
        start_timestamp=start,
        end_timestamp=start + timedelta(seconds=1),
        attributes={"gen_ai.tool.name": name},
    )


if __name__ == "__main__":
    answer(("pydantic-evals",), results)

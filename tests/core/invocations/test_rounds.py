"""One span of a model around several rounds, as Google's GenAI SDK writes it when it calls
functions on its own: which calls were asked for together?
"""

from __future__ import annotations

from typing import Any

import pytest

from pathgauge import ExpectedCall, ReferenceTurn
from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.tool_use.errors import ErrorRecovery
from pathgauge.scorers.trajectories.adk import ToolTrajectoryF1
from pathgauge.scorers.types import Invocation
from support.by_hand import INPUT, OUTPUT, text
from support.dialects import read

SCOPE = "opentelemetry.instrumentation.google_genai"
REQUEST = span("request", "POST /orders", {"http.request.method": "POST"}, end=21)
LOOP = span(
    "loop",
    "generate_content m",
    {
        "gen_ai.operation.name": "generate_content",
        INPUT: text("user", "Go."),
        OUTPUT: text("assistant", "Done."),
    },
    parent="request",
    end=20,
    scope=SCOPE,
)


def tool(name: str, start: float, end: float, **options: Any) -> Span:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "gen_ai.tool.call.arguments": "{}",
    }
    return span(
        f"{name} {start}",
        f"execute_tool {name}",
        attributes,
        parent="loop",
        start=start,
        end=end,
        scope=SCOPE,
        **options,
    )


def of(*tools: Span) -> Invocation:
    [invocation] = read(Trace("", trace_id("trace"), (REQUEST, LOOP, *tools)))
    return invocation


@pytest.mark.parametrize(
    ("tools", "together"),
    [
        ((tool("a", 1, 2), tool("b", 3, 4)), [["a"], ["b"]]),
        ((tool("a", 1, 2), tool("b", 2, 3)), [["a"], ["b"]]),
        ((tool("a", 1, 3), tool("b", 2, 4)), [["a", "b"]]),
        ((tool("a", 1, 5), tool("b", 2, 3), tool("c", 4, 6)), [["a", "b", "c"]]),
        ((tool("a", 1, 3), tool("b", 2, 4), tool("c", 5, 6)), [["a", "b"], ["c"]]),
        ((tool("a", 1, 1), tool("b", 1, 1)), [["a", "b"]]),  # rounded to milliseconds
    ],
)
def test_calls_inside_one_span_of_a_model_were_asked_for_together_if_they_overlap(
    tools: tuple[Span, ...], together: list[list[str]]
) -> None:
    found: dict[object, list[str]] = {}
    for call in of(*tools).tool_calls:
        key = call.name if call.group is None else call.group
        found.setdefault(key, []).append(call.name)
    assert sorted(map(sorted, found.values())) == together


def test_calls_of_several_rounds_in_the_wrong_order_do_not_match() -> None:
    expected = ReferenceTurn(tool_calls=(ExpectedCall("a", {}), ExpectedCall("b", {})))
    scorer = ToolTrajectoryF1(parallel_calls="any_order")
    scores = [
        scorer.score(of(*tools), expected).value
        for tools in (
            (tool("a", 1, 2), tool("b", 3, 4)),
            (tool("b", 1, 2), tool("a", 3, 4)),
        )
    ]
    assert scores == [1.0, 0.5]


def test_a_tool_that_succeeds_in_a_later_round_has_recovered() -> None:
    found = of(tool("a", 1, 2, error="no"), tool("a", 3, 4))
    assert ErrorRecovery().score(found, None).value == 1.0

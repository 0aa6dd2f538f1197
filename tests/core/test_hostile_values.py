"""Extreme numbers and times in spans: scores stay in their ranges, and each trace is read once, on
time.
"""

from __future__ import annotations

import math
from functools import cache

import pytest

from pathgauge.collector.config import criteria
from pathgauge.collector.config.criteria import Location
from pathgauge.collector.config.plugins.scorers import SCORERS
from pathgauge.collector.core.documents import Document
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.testing import span
from pathgauge.scorers.types import ExpectedCall, Reference, ReferenceTurn
from support.dialects import INSTALLED

NOW = 1_000.0
"""In time of the pipeline, which does not use the times in spans."""
YEAR = 365 * 86_400.0

NUMBERS = {
    "NaN": math.nan,
    "infinite": math.inf,
    "negative infinite": -math.inf,
    "huge": 1e308,
    "most": 2**63 - 1,
    "least": -(2**63),
    "a fraction": 0.5,
    "text": "NaN",
}
TIMES = {
    "a year ago": (-YEAR, 1 - YEAR),
    "in a year": (YEAR, YEAR + 1),
    "end before start": (1.0, -YEAR),
    "a year long": (0.0, YEAR),
}
REFERENCES = ReferenceSet(
    [Reference("refund", (ReferenceTurn(tool_calls=(ExpectedCall("lookup"),)),))]
)


@cache
def evaluator() -> Evaluator:
    """Every scorer that needs no options."""
    found: dict[str, None] = {}
    for name in SCORERS.names():
        try:
            criteria.build({name: None}, Location(Document("", None), ("criteria",)))
        except ValueError:
            continue
        found[name] = None
    assert len(found) > 30
    return Evaluator(criteria.build(found, Location(Document("", None), ("criteria",))))


def invocation(number: object = 1, start: float = 0.0, end: float = 1.0) -> list[Span]:
    agent = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": "agent",
        "pathgauge.scenario.id": "refund",
    }
    usage = {f"gen_ai.usage.{kind}_tokens": number for kind in ("input", "output")}
    tool = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "lookup",
        "gen_ai.tool.call.arguments": {"amount": number},
    }
    return [
        span("agent", "invoke_agent agent", {**agent, **usage}, start=start, end=end),
        span(
            "model",
            "chat",
            {"gen_ai.operation.name": "chat", **usage},
            parent="agent",
            start=start,
            end=end,
        ),
        span("tool", "execute_tool lookup", tool, parent="agent", start=start, end=end),
    ]


def evaluated(spans: list[Span]) -> Evaluation:
    pipeline = Pipeline(INSTALLED, evaluator(), REFERENCES, InternalTelemetry())
    assert pipeline.feed(spans, [], NOW) == []
    assert pipeline.expire(NOW + 5.0) == []
    [evaluation] = pipeline.expire(NOW + 7.0)
    assert [*pipeline.expire(NOW + YEAR), *pipeline.drain(NOW + YEAR)] == []
    assert isinstance(evaluation, Evaluation)
    return evaluation


def assert_all_in_range(evaluation: Evaluation) -> None:
    for result in evaluation.results:
        scorer, value = result.criterion.scorer, result.score.value
        assert result.verdict != "error", (result.criterion.name, result.score)
        assert value is None or (math.isfinite(value) and scorer.low <= value <= scorer.high), (
            result.criterion.name,
            value,
        )


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_any_number_in_an_attribute_gives_valid_scores(number: object) -> None:
    evaluation = evaluated(invocation(number))
    assert evaluation.invocation.agent == "agent"
    assert_all_in_range(evaluation)


@pytest.mark.parametrize(("start", "end"), TIMES.values(), ids=TIMES)
def test_times_in_spans_do_not_affect_when_a_trace_is_read(start: float, end: float) -> None:
    evaluation = evaluated(invocation(start=start, end=end))
    assert ("clock_skew" in evaluation.invocation.flags) == (end < start)
    assert_all_in_range(evaluation)

"""What LangSmith's exporter writes for failed runs, with handwritten spans."""

from __future__ import annotations

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

FAILED = [
    (
        "exception",
        {
            "exception.type": "Exception",
            "exception.message": "ValueError('boom')Traceback (most recent call last):\n  ...",
        },
    )
]


def of(*spans: Span) -> list[Invocation]:
    return read(Trace("", trace_id("trace"), spans))


@pytest.mark.parametrize(
    ("written", "result"), [("{}", None), ('{"output": {}}', {}), ('{"n": 1}', {"n": 1})]
)
@pytest.mark.parametrize("status", ["", None])
def test_a_tool_run_that_failed_has_no_outputs_and_an_error_without_its_traceback(
    written: str, result: object, status: str | None
) -> None:
    """`status` is `None` where the status was set before the run failed."""
    attributes = {"langsmith.span.kind": "tool", "gen_ai.completion": written}
    tool = span(
        "t",
        "look",
        attributes,
        parent="a",
        start=1,
        end=2,
        scope="langsmith",
        error=status,
        events=FAILED,
    )
    [read_one] = of(
        span("a", "a", {"langsmith.span.kind": "chain"}, end=9, scope="langsmith"), tool
    )
    assert [(call.result, call.error) for call in read_one.tool_calls] == [
        (result, "ValueError('boom')")
    ]

"""Steps and failures under Splunk's instrumentations, with handwritten spans."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.testing import span, trace_id
from support.dialects import read

ALL = {"gen_ai.evaluation.sampled": True, "gen_ai.agent.name": "desk"}
AGENT = {**ALL, "gen_ai.operation.name": "invoke_agent"}
STEP = {**ALL, "gen_ai.step.name": "model", "gen_ai.step.type": "chain"}


def chat(**more: Any) -> dict[str, Any]:
    return {**ALL, "gen_ai.operation.name": "chat", **more}


@pytest.mark.parametrize(
    ("model", "has_failed"), [("gpt", False), ("unknown_model", True)], ids=["replied", "silent"]
)
def test_a_model_call_without_a_reply_has_failed(model: str, *, has_failed: bool) -> None:
    called = chat(**{"gen_ai.request.model": model})
    spans = (
        span("a", "invoke_agent desk", AGENT, end=10),
        span("s", "step model", STEP, parent="a", start=1, end=9),
        span("m", f"chat {model}", called, parent="s", start=2, end=8),
    )
    [run] = read(Trace("", trace_id("trace"), spans))
    assert (run.error, "unknown_dialect" in run.flags) == (has_failed, False)
    assert run.model == (None if has_failed else "gpt")


def test_what_stands_for_a_missing_model_may_be_an_answer() -> None:
    answer = [{"role": "assistant", "parts": [{"type": "text", "content": "unknown_model"}]}]
    called = chat(**{"gen_ai.request.model": "gpt", "gen_ai.output.messages": json.dumps(answer)})
    spans = (
        span("a", "invoke_agent desk", AGENT, end=10),
        span("m", "chat gpt", called, parent="a", start=2, end=8),
    )
    [run] = read(Trace("", trace_id("trace"), spans))
    assert run.final_response == "unknown_model"

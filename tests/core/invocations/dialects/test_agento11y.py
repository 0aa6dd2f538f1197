"""Special cases of agento11y that the captures do not have, with handwritten spans."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest

from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Invocation
from support.dialects import read

SCOPE = "github.com/grafana/sigil/sdks/python"


def model(id: str, start: float, **messages: Any) -> Span:
    attributes = {f"gen_ai.{key}.messages": json.dumps([one]) for key, one in messages.items()}
    stated = {"agento11y.generation.id": id, "gen_ai.agent.name": "desk", **attributes}
    return span(id, "chat m", stated, parent="r", start=start, end=start + 1, scope=SCOPE)


def of(*spans: Span) -> Invocation:
    root = span("r", "handle_request", {}, end=10, scope="app")
    [one] = read(Trace("", trace_id("trace"), (root, *spans)))
    return one


@pytest.mark.parametrize(
    ("written", "arguments"),
    [
        ({"arguments": {"n": 1}}, {"n": 1}),
        ({"agento11y.arguments_b64": b64encode(b'{"n": 1}').decode()}, {"n": 1}),
        ({"agento11y.arguments_b64": "no base64"}, None),
        ({"agento11y.arguments_b64": ["eyJ9"]}, None),
    ],
    ids=["as it is", "in base64", "damaged", "of another type"],
)
def test_arguments_may_be_written_in_base64(
    written: dict[str, Any], arguments: dict[str, Any] | None
) -> None:
    call = {"type": "tool_call", "id": "c1", "name": "look", **written}
    [read] = of(model("m", 1, output={"role": "assistant", "parts": [call]})).tool_calls
    assert read.arguments == arguments


def test_a_result_in_a_prompt_tells_that_the_tool_failed() -> None:
    call = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {}}
    result = {"type": "tool_call_response", "id": "c1", "response": "no connection"}
    failed = result | {"agento11y.is_error": True}
    [read] = of(
        model("m1", 1, output={"role": "assistant", "parts": [call]}),
        model("m2", 3, input={"role": "tool", "parts": [failed]}),
    ).tool_calls
    assert (read.result, read.error) == ("no connection", "no connection")

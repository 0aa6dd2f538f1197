"""Special cases of Laminar that the captures do not have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.invocations.dialects.laminar import kind
from pathgauge.collector.testing import span

KIND = "lmnr.span.type"
AGENT = {"name": "support", "output_type": "str"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (AGENT, "agent"),
        (AGENT | {"name": "billing"}, "chain"),
        ({"name": "support"}, "chain"),
        (["support"], "chain"),
    ],
)
def test_an_agent_is_described_by_its_input(given: Any, expected: str) -> None:
    attributes = {KIND: "DEFAULT", "lmnr.span.input": json.dumps(given)}
    assert kind(span("a", "support", attributes, scope="lmnr.tracer")) == expected


@pytest.mark.parametrize(("stated", "expected"), [("LLM", "model"), ("DEFAULT", None)])
def test_spans_of_other_instrumentations_are_what_these_say(
    stated: str, expected: str | None
) -> None:
    assert kind(span("a", "run", {KIND: stated}, scope="pydantic-ai")) == expected

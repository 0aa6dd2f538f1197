"""Special cases of Laminar that the captures do not have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pathgauge.collector.core.invocations.dialects.laminar import failure, kind, matches
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


@pytest.mark.parametrize(("scope", "expected"), [("lmnr.tracer", True), ("ai", False)])
def test_a_function_in_javascript_has_no_type(scope: str, expected: bool) -> None:
    assert matches(span("a", "support", {"lmnr.span.path": ["support"]}, scope=scope)) is expected


@pytest.mark.parametrize(
    ("scope", "error"), [("lmnr.tracer", "the window is closed"), ("pydantic-ai", None)]
)
def test_an_exception_is_a_failure_in_spans_of_laminar_only(scope: str, error: str | None) -> None:
    thrown = ("exception", {"exception.message": "the window is closed"})
    assert failure(span("a", "refund", {KIND: "TOOL"}, scope=scope, events=[thrown])) == error

"""What every dialect promises to the reading. All built-in ones are held to it, and the example of
the page for people who write them.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from functools import cache
from types import ModuleType
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

import pathgauge.collector.core.invocations.dialects
from pathgauge.collector.core.invocations import read
from pathgauge.collector.core.invocations.dialects import BUILT_IN, Dialect, Kind, Registry
from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.offline.trace_files import read_path
from pathgauge.collector.testing import span, trace_id
from support.repository import CAPTURES, ROOT

PAGE = ROOT / "docs" / "writing-a-dialect.md"
KINDS = set(get_args(Kind))


@cache
def documented() -> Dialect:
    """The example of the page."""
    names: dict[str, Any] = {"__name__": "documented"}
    exec(PAGE.read_text().partition("```python\n")[2].partition("```")[0], names)
    example: Dialect = names["ACME"]
    return example


def modules() -> dict[str, ModuleType]:
    """The modules of the built-in dialects, by the name of the dialect."""
    found = [
        importlib.import_module(f"pathgauge.collector.core.invocations.dialects.{m.name}")
        for m in pkgutil.iter_modules(pathgauge.collector.core.invocations.dialects.__path__)
    ]
    own = (
        (value, module)
        for module in found
        for value in vars(module).values()
        if isinstance(value, Dialect)
    )
    return {value.name: module for value, module in own if value.kind.__module__ == module.__name__}


@cache
def captured_spans() -> list[Span]:
    """Every kind of span once."""
    spans = (
        one
        for path in sorted({p.parent for p in CAPTURES.glob("*/*/invocations.json")})
        for one in read_path(path).spans
    )
    return list({(one.scope.name, one.name, tuple(one.attributes)): one for one in spans}.values())


class Sealed(Span):
    """A span whose attributes may not be asked for."""

    @property
    def attributes(self) -> Any:
        raise AssertionError(f"the attributes of {self!r} were decoded")


DIALECTS = [*BUILT_IN.dialects, documented()]


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.name)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


def test_every_dialect_is_registered_under_a_name_of_its_own() -> None:
    assert modules().keys() == {dialect.name for dialect in BUILT_IN.dialects}


def test_every_dialect_opens_with_what_it_recognises_and_where_things_hide() -> None:
    short = {
        name for name, module in modules().items() if len((module.__doc__ or "").split("\n\n")) < 2
    }
    assert not short


def test_no_span_that_a_dialect_speaks_is_kept_from_it_by_the_gate(dialect: Dialect) -> None:
    registry = Registry([dialect])
    kept_back = [
        one
        for one in captured_spans()
        if dialect.matches(one) and dialect not in registry.classify(one)[1]
    ]
    assert not kept_back


def test_every_built_in_dialect_reads_a_real_capture() -> None:
    read_by = {
        one["dialect"]
        for path in CAPTURES.glob("*/*/invocations.json")
        for one in json.loads(path.read_text())
    }
    assert {dialect.name for dialect in BUILT_IN.dialects} - read_by == WITHOUT_CAPTURE


WITHOUT_CAPTURE = {"claude-code"}
"""Dialects that are read from made-up spans alone."""


def test_anchors_are_told_without_decoding_attributes(dialect: Dialect) -> None:
    registry = Registry([dialect])
    for one in captured_spans():
        registry.may_be_entry(Sealed(one.raw, one.resource, one.scope))


def test_spans_of_http_clients_and_databases_are_never_decoded() -> None:
    request = span(
        "1",
        "GET /orders",
        {"http.request.method": "GET", "url.path": "/orders"},
        scope="opentelemetry.instrumentation.httpx",
    )
    query = span(
        "2",
        "SELECT orders",
        {"db.system.name": "postgresql"},
        scope="opentelemetry.instrumentation.psycopg",
    )
    for one in (request, query):
        BUILT_IN.may_be_entry(Sealed(one.raw, one.resource, one.scope))
    assert BUILT_IN.classify(Sealed(query.raw, query.resource, query.scope)) == ("other", ())


values: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats()
    | st.text(max_size=5)
    | st.just([])
    | st.just([None])
    | st.just({})
)
keys = sorted({key for one in captured_spans() for key in one.attributes})


@given(
    attributes=st.dictionaries(st.sampled_from(keys), values, max_size=6),
    name=st.text(max_size=12),
    scope=st.data(),
)
def test_no_value_makes_a_dialect_raise(
    attributes: dict[str, Any], name: str, scope: st.DataObject
) -> None:
    scopes = sorted({"", *(prefix for one in DIALECTS for prefix in one.scopes)})
    one = span("1", name, attributes, scope=scope.draw(st.sampled_from(scopes)))
    for dialect in DIALECTS:
        if dialect.matches(one):
            assert dialect.kind(one) in {None, *KINDS}
            assert isinstance(dialect.name_of(one) if dialect.name_of else None, str | None)
            assert isinstance(dialect.failure(one) if dialect.failure else None, str | None)


def test_the_documented_dialect_reads_its_framework() -> None:
    def step(
        id: str, kind: str, start: float, more: dict[str, Any], parent: str | None = "run"
    ) -> Span:
        return span(
            id,
            f"acme {kind}",
            {"acme.step": kind, **more},
            parent=parent,
            start=start,
            end=start + 1,
            scope="acme.agents",
        )

    prompt = json.dumps([{"role": "user", "content": "where is A-1?"}])
    asks = json.dumps(
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "function": {"name": "find", "arguments": '{"id": "A-1"}'}}],
        }
    )
    spans = (
        step("run", "run", 0, {"acme.agent": "desk", "acme.thread": "t1"}, parent=None),
        step(
            "m1",
            "llm",
            1,
            {
                "acme.prompt": prompt,
                "acme.completion": asks,
                "acme.tokens.in": 5,
                "acme.tokens.out": 2,
                "acme.model": "m",
            },
        ),
        step(
            "t1",
            "call",
            2,
            {"acme.tool": "find", "acme.input": '{"id": "A-1"}', "acme.output": '{"at": "home"}'},
        ),
        step(
            "m2",
            "llm",
            3,
            {
                "acme.completion": "At home.",
                "acme.tokens.in": 9,
                "acme.tokens.out": 3,
                "acme.model": "m",
            },
        ),
    )
    [invocation] = read(
        Trace("", trace_id("trace"), spans), registry=Registry([documented(), *BUILT_IN.dialects])
    )
    [call] = invocation.tool_calls
    assert (invocation.dialect, invocation.agent, invocation.conversation_id) == (
        "acme",
        "desk",
        "t1",
    )
    assert (invocation.user_input, invocation.final_response) == ("where is A-1?", "At home.")
    assert (invocation.input_tokens, invocation.output_tokens, invocation.model) == (14, 5, "m")
    assert (call.name, call.arguments, call.result) == ("find", {"id": "A-1"}, {"at": "home"})

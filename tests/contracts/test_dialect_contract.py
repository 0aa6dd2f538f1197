"""What the reader and redaction require of every dialect: the built-in ones, and the example of the
page for people who write one.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import pytest
from hypothesis import given, strategies as st

import pathgauge.collector.core.invocations.dialects
from pathgauge import Dialect, Fields, Invocation, Kind, LogRecord, Span, ToolCall, span
from pathgauge.collector.core.invocations.dialects import Registry
from pathgauge.collector.core.invocations.dialects.field_paths import (
    Derived,
    Flattened,
    InEvent,
    JsonMember,
)
from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.core.redaction import Redactor, Rules
from pathgauge.collector.core.redaction.needed_keys import NeededKeys
from pathgauge.collector.offline.trace_files import read_path
from support.dialects import INSTALLED, read
from support.repository import CAPTURES, ROOT
from support.thinning import thinned

PAGE = ROOT / "docs" / "adding-a-dialect.md"
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
    """One span of each scope, name and set of attributes."""
    spans = (
        one
        for path in sorted({p.parent for p in CAPTURES.glob("*/*/invocations.json")})
        for one in read_path(path).spans
    )
    return list({(one.scope.name, one.name, tuple(one.attributes)): one for one in spans}.values())


class Sealed(Span):
    """A span whose attributes must not be decoded."""

    @property
    def attributes(self) -> Any:
        raise AssertionError(f"the attributes of {self!r} were decoded")


DIALECTS = [*INSTALLED.dialects, documented()]
EVERY_DIALECT = Registry([documented(), *INSTALLED.dialects])


@pytest.fixture(params=DIALECTS, ids=lambda dialect: dialect.name)
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


def test_every_built_in_dialect_is_in_the_registry() -> None:
    assert modules().keys() == {dialect.name for dialect in INSTALLED.dialects}


def test_the_module_of_a_dialect_documents_recognition_and_pitfalls() -> None:
    short = {
        name for name, module in modules().items() if len((module.__doc__ or "").split("\n\n")) < 2
    }
    assert not short


def test_the_scopes_names_and_key_prefixes_let_every_matching_span_pass(dialect: Dialect) -> None:
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
    assert {dialect.name for dialect in INSTALLED.dialects} <= read_by


def test_entry_spans_are_recognised_without_decoding_attributes(dialect: Dialect) -> None:
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
        INSTALLED.may_be_entry(Sealed(one.raw, one.resource, one.scope))
    assert INSTALLED.classify(Sealed(query.raw, query.resource, query.scope)) == ("other", ())


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
keys = st.deferred(
    lambda: st.sampled_from(sorted({key for one in captured_spans() for key in one.attributes}))
)


@given(
    attributes=st.dictionaries(keys, values, max_size=6),
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


# Declared keys: what redaction keeps when content is not kept


class Recording(Mapping[str, Any]):
    """Attributes that record which keys are read. Iteration is not recorded."""

    def __init__(self, attributes: Mapping[str, Any]) -> None:
        self._attributes = attributes
        self.read: set[str] = set()

    def __getitem__(self, key: str) -> Any:
        self.read.add(key)
        return self._attributes[key]

    def __contains__(self, key: object) -> bool:
        self.read.add(str(key))
        return key in self._attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)


class Watched(Span):
    """A span that records the attributes that are read."""

    def __init__(self, one: Span) -> None:
        super().__init__(one.raw, one.resource, one.scope)
        self.recording = Recording(one.attributes)

    @property
    def attributes(self) -> Any:
        return self.recording


CONTENT = {
    "arguments",
    "result",
    "input_messages",
    "output_messages",
    "step_input",
    "step_output",
    "agent_input",
    "agent_output",
    "final_response",
    "tool_definitions",
    "tool_schema",
}
"""Fields that `content: false` removes."""

READ_AS_CONTENT: Mapping[str, set[str]] = {
    "claude-code": {"error"},
    "haystack": {"haystack.agent.step.tool.output"},
    "langfuse": {
        "langfuse.observation.status_message",
        "langfuse.observation.metadata.tags",
    },
    "langwatch": {"langwatch.output"},
    "openinference": {"input.value", "output.value"},
    "quarkus-langchain4j": {"gen_ai.tool.call.result"},
}
"""Attributes that dialects read outside of `Fields` and must not declare: texts of errors, results
of tools, tags of users, and the calls in the input of LangGraph's tools node.
"""


def read_by_hooks(dialect: Dialect) -> set[str]:
    """The keys that the hooks and the functions of names, numbers and ids read."""
    hooks: list[Callable[[Span], Any]] = [dialect.kind]
    hooks += [hook for hook in (dialect.name_of, dialect.failure) if hook is not None]
    for field in fields(Fields):
        if field.name not in CONTENT:
            paths = getattr(dialect.fields, field.name)
            hooks += [path.derive for path in paths if isinstance(path, Derived)]
    found = set()
    for one in (*captured_spans(), *example_spans()):
        watched = Watched(one)
        if dialect.matches(watched):
            for hook in hooks:
                hook(watched)
            found |= watched.recording.read
    return found


def declared_keys(dialects: Iterable[Dialect]) -> set[str]:
    """The keys that dialects declare, without those of content."""
    found = set()
    for dialect in dialects:
        paths = [path for path in dialect.reads]
        for field in fields(Fields):
            if field.name not in CONTENT:
                for path in getattr(dialect.fields, field.name):
                    paths += path.reads if isinstance(path, Derived) else [path]
        for path in paths:
            if isinstance(path, str | JsonMember):
                found.add(path if isinstance(path, str) else path.key)
    return found


def test_a_dialect_declares_all_keys_that_its_hooks_read(dialect: Dialect) -> None:
    conventions = INSTALLED.dialects[-1]
    known = declared_keys([dialect, conventions]) | READ_AS_CONTENT.get(dialect.name, set())
    assert sorted(read_by_hooks(dialect) - known) == []


def test_an_undeclared_key_is_noticed() -> None:
    assert "acme.step" in read_by_hooks(documented()) - declared_keys(
        [replace(documented(), reads=())]
    )


def test_only_what_redaction_needs_is_declared() -> None:
    needed = NeededKeys(EVERY_DIALECT, ())
    kept = needed.needed | needed.members.keys()
    assert declared_keys(EVERY_DIALECT.dialects) <= kept


def without_content(
    registry: Registry, spans: Iterable[Span], logs: Iterable[LogRecord] = ()
) -> tuple[tuple[Span, ...], tuple[LogRecord, ...]]:
    redactor = Redactor(Rules(content=False), {}, b"salt", registry)
    return redactor.spans(tuple(spans)).records, redactor.logs(tuple(logs)).records


def invocations(
    registry: Registry, spans: Iterable[Span], logs: Iterable[LogRecord] = ()
) -> list[Invocation]:
    by_trace: dict[str, tuple[list[Span], list[LogRecord]]] = defaultdict(lambda: ([], []))
    for one in spans:
        by_trace[one.trace_id][0].append(one)
    for log in logs:
        by_trace[log.trace_id][1].append(log)
    return [
        invocation
        for trace_id, (own, own_logs) in by_trace.items()
        for invocation in read(Trace("", trace_id, tuple(own), tuple(own_logs)), registry=registry)
    ]


def structure(invocation: Invocation) -> Any:
    """The invocation without content: texts, arguments, results, schemas, and the flags and ids
    that depend on them.
    """
    calls = tuple((call.name, call.kind, call.agent, call.group) for call in invocation.tool_calls)
    runs = tuple(
        (run.span_id, run.agent, run.parent, run.via, run.error is not None)
        for run in invocation.sub_agents
    )
    models = tuple(replace(call, error=call.error and "error") for call in invocation.model_calls)
    rest = replace(
        invocation,
        user_input=None,
        final_response=None,
        tool_calls=(),
        sub_agents=(),
        model_calls=(),
        tool_schemas={},
        flags=frozenset(),
    )
    return rest, calls, runs, models


CASES = sorted(
    path.parent.relative_to(CAPTURES).as_posix() for path in CAPTURES.glob("*/*/invocations.json")
)


@pytest.mark.parametrize("case", thinned(CASES, 48))
def test_without_content_a_capture_has_the_same_invocations(case: str) -> None:
    files = read_path(CAPTURES / case)
    expected = invocations(EVERY_DIALECT, files.spans, files.logs)
    found = invocations(EVERY_DIALECT, *without_content(EVERY_DIALECT, files.spans, files.logs))
    assert list(map(structure, found)) == list(map(structure, expected))
    pairs = zip(calls_of(expected), calls_of(found), strict=True)
    assert [after for before, after in pairs if bool(before.error) < bool(after.error)] == []


@pytest.mark.parametrize("case", thinned(CASES, 48))
def test_without_content_a_failed_tool_call_stays_failed(case: str) -> None:
    """Unless only its result, which is content, says that it failed."""
    files = read_path(CAPTURES / case)
    before = calls_of(invocations(EVERY_DIALECT, files.spans, files.logs))
    kept = without_content(EVERY_DIALECT, files.spans, files.logs)
    after = calls_of(invocations(EVERY_DIALECT, *kept))
    lost = [one for one, other in zip(before, after, strict=True) if one.error and not other.error]
    assert [one for one in lost if str(one.error) not in str(one.result)] == []


def calls_of(found: Iterable[Invocation]) -> list[ToolCall]:
    return [call for one in found for call in one.tool_calls]


def test_without_content_the_documented_dialect_has_the_same_invocations() -> None:
    expected = invocations(EVERY_DIALECT, example_spans())
    found = invocations(EVERY_DIALECT, *without_content(EVERY_DIALECT, example_spans()))
    assert [len(one.tool_calls) for one in found] == [1]
    assert list(map(structure, found)) == list(map(structure, expected))
    assert {call.arguments for one in found for call in one.tool_calls} == {None}
    assert {(one.user_input, one.final_response) for one in found} == {(None, None)}


def test_without_content_an_undeclared_key_loses_the_invocation() -> None:
    registry = Registry([replace(documented(), reads=()), *INSTALLED.dialects])
    assert len(invocations(registry, example_spans())) == 1
    assert invocations(registry, *without_content(registry, example_spans())) == []


def test_without_content_every_kind_of_field_path_is_kept() -> None:
    """Of a third-party dialect: an event, a flattened list, a JSON member, a derived value."""

    def answer(one: Span) -> Any:
        name = one.attributes.get("acme.asks")
        return {"role": "assistant", "content": "text", "tool_calls": [{"name": name}]}

    acme = replace(
        documented(),
        fields=replace(
            documented().fields,
            agent_name=(InEvent("acme.started", "agent"),),
            conversation_id=(JsonMember("acme.state", ("thread",)),),
            finish_reasons=(Flattened("acme.reasons"),),
            input_tokens=(Derived(lambda one: one.attributes.get("acme.n"), reads=("acme.n",)),),
            output_messages=(Derived(answer),),
        ),
    )
    registry = Registry([acme, *INSTALLED.dialects])
    started = [("acme.started", {"agent": "desk", "secret": "x"})]
    state = {"acme.step": "run", "acme.state": '{"thread": "t", "secret": "x"}'}
    model = {"acme.step": "llm", "acme.n": 7, "acme.asks": "find", "acme.reasons.0": "tool_calls"}
    spans = (
        span("run", "acme run", state, scope="acme.agents", events=started),
        span("m", "acme llm", model, scope="acme.agents", parent="run"),
    )
    kept, _ = without_content(registry, spans)
    [invocation] = invocations(registry, kept)
    assert (invocation.agent, invocation.conversation_id) == ("desk", "t")
    assert (invocation.input_tokens, [call.name for call in invocation.tool_calls]) == (7, ["find"])
    assert kept[1].attributes["acme.reasons.0"] == "tool_calls"
    assert not any(b"secret" in one.raw or b"text" in one.raw for one in kept)


def example_spans() -> tuple[Span, ...]:
    """A run of the framework that the documented dialect reads."""

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
    return (
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


def test_the_documented_dialect_reads_the_documented_trace(tmp_path: Path) -> None:
    trace = tmp_path / "traces.json"
    trace.write_text(PAGE.read_text().partition("```json\n")[2].partition("```")[0])
    [invocation] = invocations(EVERY_DIALECT, read_path(trace).spans)
    [call] = invocation.tool_calls
    assert (invocation.dialect, invocation.agent) == ("acme", "help_desk")
    assert (call.name, call.arguments) == ("find_order", {"id": "A-1"})
    assert call.result == {"status": "shipped"}


def test_the_documented_dialect_reads_its_framework() -> None:
    [invocation] = invocations(EVERY_DIALECT, example_spans())
    [call] = invocation.tool_calls
    assert (invocation.dialect, invocation.agent, invocation.conversation_id) == (
        "acme",
        "desk",
        "t1",
    )
    assert (invocation.user_input, invocation.final_response) == ("where is A-1?", "At home.")
    assert (invocation.input_tokens, invocation.output_tokens, invocation.model) == (14, 5, "m")
    assert (call.name, call.arguments, call.result) == ("find", {"id": "A-1"}, {"at": "home"})

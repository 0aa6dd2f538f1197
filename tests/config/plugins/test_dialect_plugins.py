"""Dialects of other packages: found by their entry points, asked before the built-in ones, refused
by name when they cannot be used.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathgauge.collector.cli import app
from pathgauge.collector.config.plugins.dialects import DIALECTS, installed_dialects
from pathgauge.collector.config.plugins.registry import PluginError, in_order
from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.testing import span
from support.dialects import INSTALLED
from support.packages import install

ACME = """
from pathgauge import Dialect

DIALECT = Dialect(
    name="acme",
    scopes=("acme.",),
    matches=lambda span: span.scope.name == "acme.agents",
    kind=lambda span: "agent",
)
MISSPELLED = Dialect(
    name="acme",
    scopes=("acme.",),
    matches=lambda span: span.scope.name == "acme.agents",
    kind=lambda span: "agnet",
)
OF_NO_SPAN = Dialect(name="acme", matches=lambda span: True, kind=lambda span: "agent")
TEXT = "acme"
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where packages are installed; `acme_dialect` is a module there."""
    (tmp_path / "acme_dialect.py").write_text(ACME)
    (tmp_path / "acme_broken.py").write_text("1 / 0")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "acme_dialect", raising=False)
    return tmp_path


def test_a_dialect_is_asked_before_those_that_it_names() -> None:
    dialects = in_order(DIALECTS.all())
    asked = list(dialects)
    for name, dialect in dialects.items():
        assert all(asked.index(name) < asked.index(later) for later in dialect.before)


def test_the_conventions_are_asked_last() -> None:
    assert installed_dialects().dialects[-1].name == "genai"


def test_a_dialect_of_another_package_is_asked_first(acme: Path) -> None:
    install(acme, "dialects", acme="acme_dialect:DIALECT")
    registry = installed_dialects()
    assert [dialect.name for dialect in registry.dialects] == [
        "acme",
        *(dialect.name for dialect in INSTALLED.dialects),
    ]
    kind, speaking = registry.classify(
        span("1", "chat", {"gen_ai.operation.name": "chat"}, scope="acme.agents")
    )
    assert (kind, [dialect.name for dialect in speaking]) == ("agent", ["acme", "genai"])


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (
            "acme_dialect:TEXT",
            "'acme_dialect:TEXT' is no dialect: found str, expected a pathgauge.Dialect",
        ),
        ("acme_dialect:GONE", "the module 'acme_dialect' has no 'GONE'"),
        ("acme_gone:DIALECT", "no module 'acme_gone'"),
        (
            "acme_broken:DIALECT",
            "importing the module 'acme_broken' failed: ZeroDivisionError: division by zero",
        ),
    ],
)
def test_a_dialect_that_cannot_be_used_stops_the_start_with_its_name(
    acme: Path, reference: str, message: str
) -> None:
    install(acme, "dialects", acme=reference)
    with pytest.raises(PluginError) as raised:
        installed_dialects()
    message = f"the dialect 'acme' of the installed package acme: {message}"
    assert str(raised.value) == message
    refused = CliRunner().invoke(app, ["invocations", str(acme / "acme_dialect.py")])
    assert (refused.exit_code, refused.stderr) == (2, f"pathgauge: {message}\n")


def test_a_dialect_that_would_see_no_span_stops_the_start(acme: Path) -> None:
    install(acme, "dialects", acme="acme_dialect:OF_NO_SPAN")
    refused = CliRunner().invoke(app, ["invocations", str(acme / "acme_dialect.py")])
    assert (refused.exit_code, refused.stderr) == (
        2,
        "pathgauge: the dialect acme: found no scopes, names and key_prefixes, expected one of"
        " them: it would see no span\n",
    )


def test_a_dialect_with_a_kind_that_does_not_exist_is_named_with_the_trace(acme: Path) -> None:
    install(acme, "dialects", acme="acme_dialect:MISSPELLED")
    misread = span("1", "run", scope="acme.agents")
    (acme / "traces").write_bytes(encode_request([misread]))
    result = CliRunner().invoke(app, ["invocations", str(acme / "traces")])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith(
        f'pathgauge: {acme / "traces"}: trace {misread.trace_id} could not be read: ValueError("the'
        " dialect acme returned the kind 'agnet', expected None or one of agent, workflow, model,"
    )


FAILING = """
from dataclasses import replace

from pathgauge import Derived, Dialect, Fields


def kind(span):
    return {"run": "agent", "call": "tool"}.get(span.name)


GOOD = Dialect(name="acme", scopes=("acme.",), matches=lambda span: True, kind=kind)


def fail(*arguments):
    raise KeyError("acme.step")


MATCHES = replace(GOOD, matches=fail)
KIND = replace(GOOD, kind=fail)
KINDS = replace(GOOD, kind=lambda span: ["agent"])
NAME = replace(GOOD, name_of=lambda span: 5)
RESULT = replace(GOOD, fields=Fields(result=("out",)), unwrap_result=lambda value: value)
DERIVED = replace(GOOD, fields=Fields(agent_name=(Derived(fail),)))
EXITS = replace(GOOD, kind=lambda span: exit(3))
"""


@pytest.mark.parametrize(
    ("dialect", "problem"),
    [
        ("MATCHES", "matches raised KeyError: 'acme.step'"),
        ("KIND", "kind raised KeyError: 'acme.step'"),
        ("KINDS", "kind returned list, expected str or None"),
        ("NAME", "name_of returned int, expected str or None"),
        ("RESULT", "unwrap_result returned str, expected tuple"),
        ("DERIVED", "agent_name raised KeyError: 'acme.step'"),
        ("EXITS", "kind raised SystemExit: 3"),
    ],
)
def test_a_dialect_that_fails_is_named_with_its_function_and_other_traces_are_read(
    acme: Path, dialect: str, problem: str
) -> None:
    (acme / "acme_failing.py").write_text(FAILING)
    install(acme, "dialects", acme=f"acme_failing:{dialect}")
    run = span("1", "run", scope="acme.agents")
    call = span("2", "call", {"out": "done"}, parent="1", scope="acme.agents")
    other = span("3", "run", {"gen_ai.operation.name": "invoke_agent"}, trace="2")
    (acme / "traces").write_bytes(encode_request([run, call, other]))
    result = CliRunner().invoke(app, ["invocations", str(acme / "traces")])
    assert (result.exit_code, result.stdout.count('"dialect": "genai"')) == (0, 1)
    assert result.stderr == (
        f"pathgauge: {acme / 'traces'}: trace {run.trace_id} could not be read: the dialect acme:"
        f" {problem}\n"
    )

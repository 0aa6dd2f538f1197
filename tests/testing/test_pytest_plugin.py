"""The plug-in as a user's tests see it: each test here runs a small project with pytest."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from opentelemetry.exporter.otlp.proto.http import trace_exporter

from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.offline.trace_files import read_path
from pathgauge.collector.testing import received_traces
from support.repository import CAPTURES

pytest_plugins = ["pytester"]

IMPORTED = (trace_exporter, received_traces)
"""After each run in this process, pytester forgets the modules that it has imported first. Those of
OpenTelemetry must not be imported twice, so they are imported here.
"""

WITH_LOGS = CAPTURES / "google-adk-native" / "S1-capture-true"
"""Its content is in log records."""

AGENT = """
import json
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter


def run(provider, *tools, agent="my_agent"):
    tracer = provider.get_tracer("tests")
    about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": agent}
    with tracer.start_as_current_span(f"invoke_agent {agent}", attributes=about):
        for tool in tools:
            about = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool}
            with tracer.start_as_current_span(f"execute_tool {tool}", attributes=about):
                pass


def exporting():
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider
"""
REFERENCES = """
- {scenario: refund, expected_tools: [{name: lookup}, {name: pay}]}
- {scenario: parcel, expected_tools: [{name: track}]}
"""
START = """
import pathgauge
import pytest
from agent import *
TRAJECTORY = {"tool_trajectory_f1": 1.0}
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project with an agent and two references."""
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    pytester.makepyfile(agent=AGENT)
    pytester.makeini("[pytest]\naddopts = --strict-markers -p no:asyncio\n")
    (pytester.mkdir("references") / "all.yaml").write_text(REFERENCES)
    return pytester


def run(project: pytest.Pytester, test: str, *arguments: str) -> pytest.RunResult:
    project.makepyfile(test_agent=START + test)
    return project.runpytest_inprocess("-p", "no:cacheprovider", *arguments)


def test_spans_of_a_provider_of_the_process_are_received(project: pytest.Pytester) -> None:
    test = """
def test_attached(pathgauge_traces):
    provider = TracerProvider()
    for _ in range(2):
        pathgauge_traces.attach(provider)
    run(provider, "lookup", "pay")
    [invocation] = pathgauge_traces.invocations()
    assert [call.name for call in invocation.tool_calls] == ["lookup", "pay"]
    assert len(invocation.spans) == 3

def test_processor_with_scenario(pathgauge_traces):
    provider = TracerProvider()
    provider.add_span_processor(pathgauge_traces.span_processor)
    with pathgauge.scenario("refund", turn=0):
        run(provider, "lookup", "pay")
    [invocation] = pathgauge_traces.invocations()
    assert invocation.scenario_id == "refund"
    pathgauge_traces.assert_passes("references/all.yaml", TRAJECTORY)
"""
    run(project, test).assert_outcomes(passed=2)


def test_spans_that_are_not_sampled_or_have_no_form_in_otlp_do_no_harm(
    project: pytest.Pytester,
) -> None:
    test = """
from opentelemetry.sdk.trace.sampling import Decision, StaticSampler

def test_unsampled(pathgauge_traces):
    for provider in (TracerProvider(sampler=StaticSampler(Decision.RECORD_ONLY)), TracerProvider()):
        pathgauge_traces.attach(provider)
        provider.get_tracer("tests").start_span("\\ud800").end()
    run(provider, "lookup")
    assert len(pathgauge_traces.invocations()) == 1
    pathgauge_traces.assert_passes((), {"failure": 0.0})
    with pytest.raises(AssertionError, match="note: rejected 1 span as invalid OTLP"):
        pathgauge_traces.assert_passes((), {"max_tool_calls": {"limit": 0, "threshold": 1.0}})
"""
    run(project, test).assert_outcomes(passed=1)


def test_spans_that_are_exported_over_otlp_are_received(project: pytest.Pytester) -> None:
    test = """
def test_exported(pathgauge_traces, pathgauge_endpoint, monkeypatch):
    assert pathgauge_traces.endpoint == pathgauge_endpoint
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    provider = exporting()
    run(provider, "lookup")  # a batching exporter, which nobody flushes
    [invocation] = pathgauge_traces.invocations()
    assert [call.name for call in invocation.tool_calls] == ["lookup"]
    provider.shutdown()
"""
    run(project, test).assert_outcomes(passed=1)


def test_the_variables_of_opentelemetry_are_those_of_before_after_the_test(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://production:4318/v1/traces")
    monkeypatch.setenv("NO_PROXY", "internal")
    before = {name: value for name, value in os.environ.items() if "PYTEST" not in name}
    test = """
import os

def test_inside(pathgauge_traces):
    assert os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] == pathgauge_traces.endpoint
    assert "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" not in os.environ
    assert os.environ["NO_PROXY"] == "internal,127.0.0.1"
    assert os.environ["OTEL_BSP_SCHEDULE_DELAY"] == "200"
"""
    run(project, test).assert_outcomes(passed=1)
    assert {name: value for name, value in os.environ.items() if "PYTEST" not in name} == before


def test_a_test_sees_only_its_own_spans(project: pytest.Pytester) -> None:
    test = """
provider = TracerProvider()

@pytest.mark.parametrize("tool", ["lookup", "pay", "track"])
def test_own(pathgauge_traces, tool):
    assert pathgauge_traces.invocations(at_least=0) == []
    pathgauge_traces.attach(provider)
    run(provider, tool)
    [invocation] = pathgauge_traces.invocations()
    assert [call.name for call in invocation.tool_calls] == [tool]
"""
    run(project, test).assert_outcomes(passed=3)


def test_too_few_invocations_fail_after_the_timeout(project: pytest.Pytester) -> None:
    test = """
def test_one_of_two(pathgauge_traces):
    provider = TracerProvider()
    pathgauge_traces.attach(provider)
    run(provider, "lookup")
    assert len(pathgauge_traces.invocations(at_least=2, timeout=0.05)) == 1
    pathgauge_traces.assert_passes((), {"failure": 0.0}, at_least=2, timeout=0.05)

def test_none(pathgauge_traces):
    pathgauge_traces.assert_passes((), {"failure": 0.0}, timeout=0.05)
"""
    result = run(project, test)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            "E*1 complete invocation arrived within 0.05 s, expected 2",
            "E*0 complete invocations arrived within 0.05 s, expected 1",
            "E*- Nothing was compared with a threshold*",
            "E*note: the traces of this test: found no agent invocation in 0 spans*",
        ]
    )


def test_agents_whose_own_span_is_open_are_waited_for(project: pytest.Pytester) -> None:
    test = """
import threading

def test_late(pathgauge_traces):
    provider = TracerProvider()
    pathgauge_traces.attach(provider)
    tracer = provider.get_tracer("tests")
    about = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "slow"}
    span = tracer.start_span("invoke_agent slow", attributes=about)
    from opentelemetry.trace import set_span_in_context
    chat = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "gpt"}
    tracer.start_span("chat", context=set_span_in_context(span), attributes=chat).end()
    [headless] = pathgauge_traces.invocations(timeout=0.0)
    assert "missing_root" in headless.flags
    threading.Timer(0.1, span.end).start()
    [invocation] = pathgauge_traces.invocations()
    assert (invocation.agent, "missing_root" in invocation.flags) == ("slow", False)
"""
    run(project, test).assert_outcomes(passed=1)


def test_what_was_received_can_be_saved_and_read(project: pytest.Pytester) -> None:
    test = """
def test_saved(pathgauge_traces, tmp_path):
    provider = TracerProvider()
    pathgauge_traces.attach(provider)
    run(provider, "lookup")
    pathgauge_traces.save(tmp_path / "traces.binpb")
    assert pathgauge.read_traces(tmp_path / "traces.binpb") == pathgauge_traces.invocations()
"""
    run(project, test).assert_outcomes(passed=1)


def test_log_records_are_received_and_saved_too(project: pytest.Pytester) -> None:
    files = read_path(WITH_LOGS)
    (project.path / "traces").write_bytes(encode_request(files.spans))
    (project.path / "logs").write_bytes(encode_request(files.logs))
    test = """
import urllib.request
from pathlib import Path

def test_posted(pathgauge_traces, tmp_path):
    for signal in ("traces", "logs"):
        url = f"{pathgauge_traces.endpoint}/v1/{signal}"
        headers = {"Content-Type": "application/x-protobuf"}
        request = urllib.request.Request(url, Path(signal).read_bytes(), headers)
        urllib.request.urlopen(request).close()
    pathgauge_traces.save(tmp_path / "saved")
    [received] = pathgauge_traces.invocations()
    assert pathgauge.read_traces(tmp_path / "saved") == [received]
    assert received.final_response
    assert pathgauge.read_traces("traces")[0].final_response is None
"""
    run(project, test).assert_outcomes(passed=1)


PARAMETRISED = """
@pytest.mark.pathgauge(references={references})
def test_scenario(scenario, pathgauge_traces):
    provider = TracerProvider()
    pathgauge_traces.attach(provider)
    run(provider, "lookup", "pay")
    pathgauge_traces.assert_passes(scenario, TRAJECTORY)
"""


@pytest.mark.parametrize(
    "references", ["'references/*.yaml'", "['references/all.yaml']", "'references/../references/*'"]
)
def test_a_marked_test_runs_once_for_each_scenario(
    project: pytest.Pytester, references: str
) -> None:
    result = run(project, PARAMETRISED.format(references=references), "-v")
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*::test_scenario[[]refund[]] PASSED*",
            "*::test_scenario[[]parcel[]] FAILED*",
            "E*- tool_trajectory_f1 for my_agent Failed. Expected 1, but got 0. [[]parcel[]]",
        ]
    )


def test_references_are_found_from_any_working_directory(
    project: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.mkdir("elsewhere"))
    test = PARAMETRISED.format(references="'references/*.yaml'")
    project.makepyfile(test_agent=START + test)
    result = project.runpytest_inprocess(str(project.path / "test_agent.py"), "-k", "refund")
    result.assert_outcomes(passed=1, deselected=1)


@pytest.mark.parametrize(
    ("references", "line"),
    [
        ("'nowhere/*.yaml'", "*nowhere/[*].yaml: found no reference, expected at least one"),
        ("'missing.yaml'", "*missing.yaml: found no such file"),
    ],
)
def test_references_that_do_not_exist_are_an_error_of_the_collection(
    project: pytest.Pytester, references: str, line: str
) -> None:
    result = run(project, PARAMETRISED.format(references=references))
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([line])
    result.stdout.no_fnmatch_line("*Traceback*")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("reference='references/*.yaml'", "found 'reference', expected references"),
        ("", "found no file, expected such as references='references/[*].yaml'"),
        ("references=[]", "found no file, expected such as references='references/[*].yaml'"),
        ("references=5", "found 5, expected paths or patterns of reference files"),
    ],
)
def test_a_marker_that_is_written_wrong_is_named_with_its_test(
    project: pytest.Pytester, arguments: str, text: str
) -> None:
    test = PARAMETRISED.replace("references={references}", arguments)
    result = run(project, test)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([f"*test_agent.py::test_scenario: marker pathgauge: {text}"])


def test_tests_without_the_marker_keep_their_own_argument_scenario(
    project: pytest.Pytester,
) -> None:
    test = """
@pytest.fixture
def scenario():
    return "mine"

def test_own(scenario):
    assert scenario == "mine"

@pytest.mark.pathgauge(references="references/*.yaml")
def test_marked_without_the_argument():
    pass
"""
    run(project, test).assert_outcomes(passed=2)


def test_the_plug_in_loads_nothing_until_it_is_used() -> None:
    code = (
        "import sys, pathgauge.collector.testing.pytest_plugin;"
        "print(*sorted(name for name in sys.modules if name.startswith(('pathgauge.', 'open',"
        " 'google', 'pydantic', 'rich'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert [name for name in done.stdout.split() if not name.startswith("pathgauge.")] == []
    assert done.stdout.split() == [
        "pathgauge.collector",
        "pathgauge.collector.testing",
        "pathgauge.collector.testing.pytest_plugin",
    ]

"""`pathgauge invocations`: its output for every format, and its errors."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span as SpanProto
from typer.testing import Result

from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.testing import span
from support.exports import grafana_json, jaeger_json, tempo_json, tempo_v2_json
from support.repository import CAPTURES
from support.turns import otlp, otlp_json, script, turn

Run = Callable[..., Result]

CAPTURE = CAPTURES / "google-adk-native" / "S2"

TURNS = (turn(script("refund", "lookup", "refund")), turn(script("parcel", "track")))


def delimited(*messages: bytes) -> bytes:
    return b"".join(len(message).to_bytes(4) + message for message in messages)


FORMATS = {
    "protobuf": otlp(*TURNS),
    "delimited protobuf": delimited(*map(otlp, TURNS)),
    "delimited protobuf with an empty request": delimited(otlp(TURNS[0]), b"", otlp(TURNS[1])),
    "JSON": otlp_json(*TURNS),
    "JSON array": b"[" + b",".join(map(otlp_json, TURNS)) + b"]",
    "JSON lines": b"\n".join(map(otlp_json, TURNS)) + b"\n\n",
    "JSON lines with metrics among them": b"\n".join(
        [otlp_json(TURNS[0]), b'{"resourceMetrics": []}', otlp_json(TURNS[1])]
    ),
    "Jaeger": jaeger_json(*map(otlp, TURNS)),
    "Tempo": tempo_json(*map(otlp, TURNS)),
    "Tempo v2": tempo_v2_json(*map(otlp, TURNS)),
    "Grafana": grafana_json(*map(otlp, TURNS)),
    "one format a line": b"\n".join([jaeger_json(otlp(TURNS[0])), tempo_json(otlp(TURNS[1]))]),
}


def objects(result: Result) -> list[dict[str, Any]]:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    return [json.loads(line, parse_constant=refuse) for line in result.stdout.splitlines()]


def export(*spans: Span) -> bytes:
    return ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[one.proto for one in spans])])]
    ).SerializeToString()


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_detected_from_its_content(
    name: str, compress: Callable[[bytes], bytes], run: Run, folder: Path
) -> None:
    (folder / "traces").write_bytes(compress(FORMATS[name]))
    result = run("invocations", "traces")
    assert (result.exit_code, result.stderr) == (0, "")
    assert [
        (
            one["source"],
            one["agent"],
            one["scenario_id"],
            [call["name"] for call in one["tool_calls"]],
        )
        for one in objects(result)
    ] == [
        ("traces", "my_agent", "refund", ["lookup", "refund"]),
        ("traces", "my_agent", "parcel", ["track"]),
    ]


def test_a_directory_is_one_stream_and_skipped_files_are_reported(run: Run) -> None:
    result = run("invocations", CAPTURE)
    [expected] = json.loads((CAPTURE / "invocations.json").read_text())
    assert objects(result) == [{"source": str(CAPTURE), **expected}]
    assert result.exit_code == 0
    assert (
        result.stderr == f"pathgauge: skipped {CAPTURE}/invocations.json: found a JSON object with"
        " 'trace_id', 'span_id', 'dialect', 'agent', 'agent_version' and more, expected OTLP"
        " protobuf or JSON, the JSON of Jaeger or Tempo, or a table with the column"
        " predicted_trajectory\n"
    )


def test_every_path_is_read_separately_and_shown_as_given(run: Run, folder: Path) -> None:
    (folder / "a.bin").write_bytes(otlp(TURNS[0]))
    (folder / "deep").mkdir()
    (folder / "deep" / "b.json").write_bytes(otlp_json(TURNS[1]))
    result = run("invocations", "deep", "a.bin", "deep/b.json")
    assert [(one["source"], one["scenario_id"]) for one in objects(result)] == [
        ("deep", "parcel"),
        ("a.bin", "refund"),
        ("deep/b.json", "parcel"),
    ]


NOT_OTLP = {
    "empty": (b"", "found an empty file, expected OTLP protobuf or JSON"),
    "text": (b"hello world\n", "found neither JSON nor OTLP protobuf"),
    "text that is valid protobuf of something else": (
        b"2 " + b"a" * 32,
        "found neither JSON nor OTLP protobuf",
    ),
    "random": (bytes(range(1, 256)), "found neither JSON nor OTLP protobuf"),
    "JSON of something else": (
        b'{"a": 1}',
        (
            "found a JSON object with 'a', expected OTLP protobuf or JSON, the JSON of Jaeger or"
            " Tempo, or a table with the column predicted_trajectory"
        ),
    ),
    "JSON number": (
        b"[1]",
        (
            "found a number in JSON, expected OTLP protobuf or JSON, the JSON of Jaeger or Tempo,"
            " or a table with the column predicted_trajectory"
        ),
    ),
    "broken JSON": (b'{"resourceSpans": [', "line 1: found no JSON"),
    "a broken line": (otlp_json(TURNS[0]) + b"\n{broken\n", "line 2: found no JSON"),
    "JSON of the wrong shape": (
        b'{"resourceSpans": 7}',
        "resourceSpans: found a number, expected an array",
    ),
    "cut gzip": (gzip.compress(otlp(*TURNS))[:-20], "found broken gzip data"),
    "gzip in name only": (b"\x1f\x8bnothing", "found broken gzip data"),
    "cut protobuf": (otlp(*TURNS)[:-20], "found neither JSON nor OTLP protobuf"),
}


@pytest.mark.parametrize("name", NOT_OTLP)
def test_a_file_without_otlp_is_an_error_that_says_what_was_found(
    name: str, run: Run, folder: Path
) -> None:
    data, problem = NOT_OTLP[name]
    (folder / "traces").write_bytes(data)
    result = run("invocations", "traces")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"pathgauge: traces: {problem}")
    assert result.stderr.count("\n") == 1


def test_a_directory_without_otlp_is_an_error(run: Run, folder: Path) -> None:
    (folder / "notes").mkdir()
    (folder / "notes" / "readme.txt").write_text("hello world\n")
    result = run("invocations", "notes")
    assert (result.exit_code, result.stdout) == (2, "")
    assert (
        result.stderr
        == "pathgauge: notes: found no trace file among its files, expected OTLP protobuf or"
        " JSON, the JSON of Jaeger or Tempo, or a table with the column predicted_trajectory\n"
    )
    (folder / "empty").mkdir()
    result = run("invocations", "empty")
    assert result.stderr.startswith("pathgauge: empty: found an empty folder, expected OTLP")


def test_a_yaml_file_among_the_traces_leads_to_the_missing_quotes(run: Run, folder: Path) -> None:
    for name in ("a.yaml", "b.YML"):
        (folder / name).write_text("scenario: refund\n")
        result = run("score", name)
        assert result.exit_code == 2
        assert result.stderr.endswith(
            "; if it comes from a pattern of --references, the pattern needs quotes\n"
        )


def test_a_path_that_does_not_exist_is_an_error(run: Run) -> None:
    result = run("invocations", "nowhere.json")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "nowhere.json" in result.stderr


def test_traces_without_an_agent_print_no_line_but_a_note(run: Run, folder: Path) -> None:
    (folder / "traces").write_bytes(export(span("a", "GET /"), span("b", "SELECT", parent="a")))
    result = run("invocations", "traces")
    assert (result.exit_code, result.stdout) == (0, "")
    assert (
        result.stderr
        == "pathgauge: traces: found no agent invocation in 2 spans and 0 log records\n"
    )


def test_a_scope_that_no_dialect_understands_is_named(run: Run, folder: Path) -> None:
    (folder / "traces").write_bytes(export(span("a", "call tool", {"acme.tool.name": "lookup"})))
    result = run("invocations", "traces")
    assert (result.exit_code, result.stdout) == (0, "")
    assert (
        result.stderr
        == "pathgauge: traces: no dialect understands 1 span of the scope 'unnamed', about"
        " agents, models or tools\n"
        "pathgauge: traces: found no agent invocation in 1 span and 0 log records\n"
    )


def test_tool_calls_of_an_agent_whose_own_span_never_arrived_are_named(
    run: Run, folder: Path
) -> None:
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "lookup"}
    killed = span("a", "execute_tool lookup", tool, parent="gone")
    (folder / "traces").write_bytes(export(killed))
    result = run("invocations", "traces")
    assert (result.exit_code, result.stdout) == (0, "")
    assert (
        result.stderr
        == "pathgauge: traces: 1 trace with tool calls, but without a span of an agent, which is"
        f" exported when the agent ends: {killed.trace_id}\n"
        "pathgauge: traces: found no agent invocation in 1 span and 0 log records\n"
    )


def test_rejected_spans_are_counted(run: Run, folder: Path) -> None:
    good = otlp(TURNS[0])
    bad = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=[SpanProto(name="no ids")])])]
    )
    (folder / "traces").write_bytes(good + bad.SerializeToString())
    result = run("invocations", "traces")
    assert [one["scenario_id"] for one in objects(result)] == ["refund"]
    assert result.stderr == "pathgauge: traces: rejected 1 record as invalid OTLP\n"


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ({"ratio": float("nan")}, {"ratio": None}),
        ({"ratio": float("inf")}, {"ratio": None}),
        ("{(1, 2): 3}", {"(1, 2)": 3}),
        ('{"big": 123456789012345678901234567890}', {"big": 1.2345678901234568e29}),
        ('{"half": "\\ud83d"}', {"half": "?"}),
        ("{'half': '\\ud83d'}", {"half": "?"}),
        ('{"text": "São Paulo 🛫"}', {"text": "São Paulo 🛫"}),
        ('{"a":' * 150 + "1" + "}" * 150, json.loads('{"a":' * 150 + "1" + "}" * 150)),
        ('{"a":' * 151 + "1" + "}" * 151, '{"a":' * 151 + "1" + "}" * 151),
        ({"bytes": b"\x00\xff"}, {"bytes": "b'\\x00\\xff'"}),
    ],
    ids=[
        "not a number",
        "infinite",
        "keys that are no text",
        "big number",
        "half a character",
        "half a character in a repr",
        "any script",
        "deep",
        "too deep",
        "bytes",
    ],
)
def test_any_arguments_are_printed_as_json(
    arguments: object, printed: object, run: Run, folder: Path
) -> None:
    agent = span(
        "agent",
        "invoke_agent a",
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"},
    )
    tool = span(
        "tool",
        "execute_tool t",
        {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "t",
            "gen_ai.tool.call.arguments": arguments,
        },
        parent="agent",
    )
    (folder / "traces").write_bytes(export(agent, tool))
    result = run("invocations", "traces")
    assert (result.exit_code, result.stderr) == (0, "")
    [one] = objects(result)
    assert [call["arguments"] for call in one["tool_calls"]] == [printed]


def test_the_test_run_is_printed_and_the_schemas_of_tools_are_not(run: Run, folder: Path) -> None:
    tools = json.dumps([{"name": "t", "parameters": {"type": "object", "properties": {}}}])
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.tool.definitions": tools,
        "test.suite.run.id": "2026-11-21",
    }
    (folder / "traces").write_bytes(export(span("agent", "invoke_agent a", attributes)))
    result = run("invocations", "traces")
    assert [one["run_id"] for one in objects(result)] == ["2026-11-21"]
    assert "properties" not in result.stdout


def test_scenario_keys_come_from_the_configuration(run: Run, folder: Path) -> None:
    agent = span(
        "agent",
        "invoke_agent a",
        {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a", "my.case": "refund"},
    )
    (folder / "traces").write_bytes(export(agent))
    (folder / "pathgauge.yaml").write_text("scenario: {keys: [my.case]}\n")
    assert [one["scenario_id"] for one in objects(run("invocations", "traces"))] == [None]
    assert [
        one["scenario_id"] for one in objects(run("invocations", "traces", "-c", "pathgauge.yaml"))
    ] == ["refund"]

"""`FileSpanExporter` writes files that every command reads, whatever happens to the process."""

from __future__ import annotations

import gzip
import json
import logging
import math
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, TraceState
from opentelemetry.trace.span import SpanContext
from opentelemetry.util.types import AnyValue
from typer.testing import CliRunner

from pathgauge import FileSpanExporter, read_references, read_traces
from pathgauge.collector.cli import app
from pathgauge.collector.core import otlp
from pathgauge.collector.offline.trace_files import read_path
from support.turns import script, turn

ATTRIBUTES: dict[str, AnyValue] = {
    "text": 'quotes " and é and \x00\x1b',
    "empty": "",
    "yes": True,
    "whole": -(2**63),
    "number": 1e308,
    "not a number": math.nan,
    "infinite": -math.inf,
    "bytes": b"\xff\x00",
    "nothing": None,
    "list": ["a", 1, None, [True], {"key": b"x"}],
    "map": {"inner": {"deep": [1.5, "x"]}, "none": {}},
    "no items": [],
}
LINKED = SpanContext(2**127 + 5, 2**63 + 7, is_remote=True, trace_state=TraceState([("a", "1")]))


def rich_spans() -> list[ReadableSpan]:
    """Spans with everything that the SDK can express."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(resource=Resource({"service.name": "é", "list": ["a", "b"]}))
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    one = provider.get_tracer("library", "1.0", "https://schema", {"scope": "attribute"})
    other = provider.get_tracer("another")
    with one.start_as_current_span(
        "parent", kind=SpanKind.SERVER, attributes=ATTRIBUTES, links=[Link(LINKED, ATTRIBUTES)]
    ) as parent:
        parent.add_event("event", ATTRIBUTES, timestamp=1)
        parent.add_event("bare")
        parent.set_status(Status(StatusCode.ERROR, "it failed"))
        with other.start_as_current_span("child", kind=SpanKind.CLIENT) as child:
            child.set_status(StatusCode.OK)
            child.add_link(LINKED)
    return list(exporter.get_finished_spans())


def records(spans: list[ReadableSpan]) -> list[object]:
    """What the collector decodes of the spans when they arrive over OTLP."""
    decoded = otlp.decode_traces(encode_spans(spans).SerializeToString()).records
    return [(span.proto, span.resource.attributes, span.scope) for span in decoded]


def written(path: Path) -> list[object]:
    found = read_path(path)
    assert found.notes == []
    return [(span.proto, span.resource.attributes, span.scope) for span in found.spans]


@contextmanager
def exporting(path: Path) -> Iterator[FileSpanExporter]:
    exporter = FileSpanExporter(path)
    try:
        yield exporter
    finally:
        exporter.shutdown()


@pytest.mark.parametrize("name", ["traces.jsonl", "traces.jsonl.gz", "folder/traces"])
def test_what_is_read_is_what_would_arrive_over_otlp(tmp_path: Path, name: str) -> None:
    spans = rich_spans()
    with exporting(tmp_path / name) as exporter:
        assert exporter.export(spans) is SpanExportResult.SUCCESS
        assert exporter.export([]) is SpanExportResult.SUCCESS
        assert str(written(tmp_path / name)) == str(records(spans))  # NaN equals nothing


def test_the_json_is_that_of_otlp(tmp_path: Path) -> None:
    with exporting(tmp_path / "traces.jsonl") as exporter:
        exporter.export(rich_spans())
    [line] = (tmp_path / "traces.jsonl").read_text().splitlines()
    scopes = json.loads(line)["resourceSpans"][0]["scopeSpans"]
    [child], [parent] = (scope["spans"] for scope in scopes)
    assert child["parentSpanId"] == parent["spanId"]
    assert child["traceId"] == parent["traceId"]
    assert (len(child["traceId"]), len(child["spanId"])) == (32, 16)
    for span in (child, parent):
        [link] = span["links"]
        assert (link["traceId"], link["spanId"]) == (f"{2**127 + 5:032x}", f"{2**63 + 7:016x}")
    assert (parent["kind"], parent["status"]["code"], "parentSpanId" in parent) == (2, 2, False)


def test_only_a_name_that_ends_with_gz_is_compressed(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl.gz"):
        with exporting(tmp_path / name) as exporter:
            exporter.export(rich_spans())
            exporter.export(rich_spans())
    assert len((tmp_path / "a.jsonl").read_bytes().splitlines()) == 2
    assert len(gzip.decompress((tmp_path / "b.jsonl.gz").read_bytes()).splitlines()) == 2


def test_commands_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "traces.jsonl.gz"
    with exporting(path) as exporter:
        exporter.export(turn(script("refund", "lookup", "pay")))
    [invocation] = read_traces(path)
    assert [call.name for call in invocation.tool_calls] == ["lookup", "pay"]
    reference = tmp_path / "refund.yaml"
    runner = CliRunner()
    recorded = runner.invoke(app, ["record", str(path), "-o", str(reference)])
    assert recorded.exit_code == 0
    assert [one.scenario_id for one in read_references(reference)] == ["refund"]
    scored = runner.invoke(app, ["score", str(path), "-r", str(reference)])
    assert scored.exit_code == 0


def test_an_existing_file_is_continued(tmp_path: Path) -> None:
    spans = rich_spans()
    for _ in range(2):
        with exporting(tmp_path / "traces.jsonl") as exporter:
            exporter.export(spans)
    assert len(written(tmp_path / "traces.jsonl")) == 2 * len(spans)


@pytest.mark.slow
def test_threads_and_forked_processes_write_whole_batches(tmp_path: Path) -> None:
    path, spans = tmp_path / "traces.jsonl", rich_spans()
    exporter = FileSpanExporter(path)

    def export() -> None:
        for _ in range(20):
            exporter.export(spans)

    threads = [threading.Thread(target=export) for _ in range(4)]
    for thread in threads:
        thread.start()
    children = []
    for _ in range(4):
        child = os.fork()
        if child == 0:
            signal.alarm(30)  # a child that waits for ever ends with another status
            export()
            os._exit(0)
        children.append(child)
    for thread in threads:
        thread.join()
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    exporter.shutdown()
    assert len(written(path)) == 8 * 20 * len(spans)


IN_A_PROCESS = """
import os, resource, sys
from pathgauge import FileSpanExporter
from support.turns import script, turn

if sys.argv[2:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
exporter = FileSpanExporter(sys.argv[1])
spans = turn(script("refund"))
print(*[exporter.export(spans).name for _ in range(3)], flush=True)
os._exit(1)
"""


def in_a_process(*arguments: object) -> list[str]:
    """The results of three exports in a process that then ends without a shutdown."""
    command = [sys.executable, "-c", IN_A_PROCESS, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    return done.stdout.split()


@pytest.mark.parametrize("name", ["traces.jsonl", "traces.jsonl.gz"])
def test_a_crash_loses_nothing_that_was_exported(tmp_path: Path, name: str) -> None:
    assert in_a_process(tmp_path / name) == ["SUCCESS"] * 3
    assert len(written(tmp_path / name)) == 3 * len(turn(script("refund")))


def test_a_full_disk_leaves_a_file_that_can_be_read_and_continued(tmp_path: Path) -> None:
    path, spans = tmp_path / "traces.jsonl", turn(script("refund"))
    with exporting(path) as exporter:
        exporter.export(spans)
    limit = path.stat().st_size * 5 // 2
    assert in_a_process(path, limit) == ["SUCCESS", "FAILURE", "FAILURE"]
    assert len(written(path)) == 2 * len(spans)
    with exporting(path) as exporter:
        exporter.export(spans)
    assert len(written(path)) == 3 * len(spans)


def test_spans_without_a_form_in_otlp_are_logged_and_the_others_written(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    memory = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    for name in ("one", "\ud800", "two"):
        provider.get_tracer("tests").start_span(name).end()
    path = tmp_path / "traces.jsonl"
    with exporting(path) as exporter, caplog.at_level(logging.ERROR):
        assert exporter.export(memory.get_finished_spans()) is SpanExportResult.FAILURE
    assert caplog.messages == [f"{path}: 1 spans have no form in OTLP"]
    assert [span.name for span in read_path(path).spans] == ["one", "two"]


def test_after_the_shutdown_spans_are_refused_and_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    exporter = FileSpanExporter(tmp_path / "traces.jsonl")
    assert exporter.force_flush()
    exporter.shutdown()
    exporter.shutdown()
    assert exporter.force_flush()
    assert exporter.export(rich_spans()) is SpanExportResult.FAILURE
    assert caplog.messages == [f"{tmp_path}/traces.jsonl: 2 spans came after the shutdown"]


def test_a_path_that_cannot_be_written_is_an_error_at_once(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        FileSpanExporter(tmp_path)

"""Tables of ClickHouse: log records belong to their traces, and a table that is missing is never
taken for an empty one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import orjson
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from pathgauge.collector.core.invocations import read
from pathgauge.collector.core.otlp.spans import LogRecord, Trace, encode_attributes
from pathgauge.collector.offline.trace_files import read_path
from pathgauge.collector.service.backfill.history import PastTrace, Source, SourceError
from pathgauge.collector.service.backfill.sources.address import open_source
from pathgauge.scorers.types import Invocation
from support.dialects import INSTALLED
from support.past import SECOND, Archive, Past
from support.repository import CAPTURES
from support.trace_servers import Respond, Server, clickhouse, trace_server

IN_LOGS = CAPTURES / "openai-otelv2-2.1b0-manual" / "S2-nomanual-outer"
"""A capture whose messages are in log records."""
LATER_COLUMNS = {"ScopeName", "ScopeVersion", "EventName"}
"""Those that the first versions of the exporter did not have."""


@contextmanager
def opened(respond: Respond, options: str = "") -> Iterator[tuple[Source, Server]]:
    with trace_server(respond) as server:
        address = f"clickhouse://127.0.0.1:{server.port}/otel{options}"
        source = open_source(address, Path("unused"), environment={})
        yield source, server
        source.close()


def kept(folder: Path) -> tuple[Archive, list[LogRecord]]:
    """The trace of a capture, and its log records."""
    files = read_path(folder)
    request = ExportTraceServiceRequest()
    for span in files.spans:
        group = request.resource_spans.add()
        group.resource.attributes.extend(encode_attributes(span.resource.attributes))
        scope = group.scope_spans.add(spans=[span.proto])
        scope.scope.name, scope.scope.version = span.scope.name, span.scope.version
    [trace_id] = {span.trace_id for span in files.spans}
    start = min(span.start_ns for span in files.spans)
    return Archive([Past(start, trace_id, "", "", request.SerializeToString())]), files.logs


def read_all(source: Source, of: Archive) -> PastTrace:
    [only] = of.traces
    [found] = source.read(only.start, only.start + SECOND, 10).traces
    return found


def invocations(trace: PastTrace) -> list[Invocation]:
    return read(Trace("", trace.trace_id, tuple(trace.spans), tuple(trace.logs)), INSTALLED)


def test_messages_in_log_records_are_read_as_those_that_were_sent() -> None:
    past, logs = kept(IN_LOGS)
    files = read_path(IN_LOGS)
    sent = PastTrace(past.traces[0].trace_id, 0, 0, files.spans, files.logs)
    with opened(clickhouse(past, logs)) as (source, _):
        found = read_all(source, past)
    assert len(found.logs) == len(logs) > 0
    assert invocations(found) == invocations(sent)
    without_logs = PastTrace(sent.trace_id, 0, 0, found.spans)
    assert [one.user_input for one in invocations(without_logs)] == [None]


def test_log_records_of_exporters_that_had_fewer_columns_are_read() -> None:
    past, logs = kept(IN_LOGS)
    respond = clickhouse(past, logs)

    def of_former(path: str, query: Mapping[str, str]) -> tuple[int, bytes]:
        status, body = respond(path, query)
        rows = [orjson.loads(line) for line in body.splitlines()]
        if query["param_table"] == "otel_logs":
            rows = [{key: row[key] for key in row.keys() - LATER_COLUMNS} for row in rows]
        return status, b"\n".join(map(orjson.dumps, rows))

    with opened(of_former) as (source, _):
        found = read_all(source, past)
    assert {log.scope.name for log in found.logs} == {""}
    # This instrumentation writes the name of an event as an attribute, too.
    assert {log.event_name for log in found.logs} == {log.event_name for log in logs}


def test_without_a_table_of_log_records_traces_are_read_and_the_operator_is_told() -> None:
    past, _ = kept(IN_LOGS)
    [only] = past.traces
    with opened(clickhouse(past)) as (source, server):
        found = source.read(only.start, only.start + SECOND, 10)
        again = source.read(only.start, only.start + SECOND, 10)
    assert [len(trace.logs) for trace in found.traces] == [0]
    assert found.notes == again.notes
    assert found.notes == ("there is no table otel_logs: no log records were read",)
    asked = [query["param_table"] for _, query in server.asked]
    assert asked.count("otel_logs") == 1


def test_the_table_of_log_records_may_have_another_name() -> None:
    past, logs = kept(IN_LOGS)
    respond = clickhouse(past, logs)

    def renamed(path: str, query: Mapping[str, str]) -> tuple[int, bytes]:
        name = query["param_table"]
        return respond(path, {**query, "param_table": "otel_logs" if name == "events" else name})

    with opened(renamed, "?logs_table=events") as (source, server):
        assert len(read_all(source, past).logs) == len(logs)
    assert {query["param_table"] for _, query in server.asked} == {"otel_traces", "events"}


@pytest.mark.parametrize(
    ("options", "answer", "message"),
    [
        ("?table=spans", None, "Table otel.spans does not exist"),
        ("", "Code: 47. Unknown expression identifier 'SpanKind'", "identifier 'SpanKind'"),
    ],
)
def test_a_table_that_cannot_be_read_is_no_empty_one(
    options: str, answer: str | None, message: str
) -> None:
    past, logs = kept(IN_LOGS)
    respond = clickhouse(past, logs)
    if answer is not None:
        text = answer.encode()
        respond = lambda path, query: (404, text)  # noqa: E731
    with opened(respond, options) as (source, _), pytest.raises(SourceError, match=message):
        read_all(source, past)


def test_columns_of_log_records_that_are_missing_are_an_error() -> None:
    past, logs = kept(IN_LOGS)
    respond = clickhouse(past, logs)

    def other(path: str, query: Mapping[str, str]) -> tuple[int, bytes]:
        status, body = respond(path, query)
        return status, body.replace(b'"LogAttributes"', b'"Labels"')

    with opened(other) as (source, _), pytest.raises(SourceError, match="found other columns"):
        read_all(source, past)

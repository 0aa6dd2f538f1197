"""The debug log of a whole process after invalid telemetry and requests of every kind contains
nothing that was sent.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from signal import SIGHUP
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs, ScopeLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

import pathgauge.collector as collector_package
from pathgauge.collector.testing import log
from support.packages import install
from support.running import Collector, until

COLLECTOR = Path(collector_package.__file__).parent
MODULES = [module for module in sorted(COLLECTOR.rglob("*.py")) if "_log." in module.read_text()]

MARKER = "quetzalcoatlus"
TOKEN = f"token-of-{MARKER}-0123"

CODE = '''
from dataclasses import dataclass
from typing import ClassVar

from pathgauge.collector.core.invocations.dialects import Dialect


def fail(span):
    if span.name.startswith("unreadable"):
        raise ValueError(f"nobody foresaw {span.attributes}")
    return "agent"


def fail_at_once(span):
    if span.name.startswith("unfeedable"):
        raise ValueError(f"nobody foresaw {span.attributes}")
    return True


DIALECT = Dialect(
    name="acme",
    scopes=("acme",),
    matches=lambda span: True,
    kind=fail,
    may_be_entry=fail_at_once,
)


@dataclass(frozen=True)
class Broken:
    """A scorer that quotes what it cannot judge."""

    name: ClassVar[str] = "broken"
    version: ClassVar[str] = "1"
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0
    higher_is_better: ClassVar[bool] = True
    needs_reference: ClassVar[bool] = False

    def score(self, actual, expected):
        raise ValueError(f"cannot judge {actual}")
'''


@pytest.fixture
def collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """A collector with a third-party dialect and a third-party scorer that both fail."""
    packages = tmp_path / "packages"
    install(packages, "dialects", acme="acme_code:DIALECT")
    (packages / "acme_code.py").write_text(CODE)
    (tmp_path / "token").write_text(TOKEN)
    monkeypatch.setenv("PYTHONPATH", str(packages))
    settings: dict[str, Any] = {
        "auth": {"tenants": {"team-a": {"token_file": "token"}}},
        "criteria": {"broken": {"scorer": "acme_code:Broken"}, "failure": None},
        "logging": {"level": "debug", "format": "json"},
        "store": {"path": "data"},
    }
    with Collector(tmp_path, **settings) as running:
        yield running


def spans(name: str, trace: int, **ids: bytes) -> bytes:
    """A span with the marker in all its fields."""
    attributes = [
        KeyValue(key=key, value=AnyValue(string_value=MARKER))
        for key in (MARKER, "gen_ai.agent.name", "gen_ai.input.messages")
    ]
    one = Span(
        trace_id=ids.get("trace_id", trace.to_bytes(16)),
        span_id=ids.get("span_id", trace.to_bytes(8)),
        name=f"{name} {MARKER}",
        trace_state=f"{MARKER}=1",
        attributes=attributes,
        events=[Span.Event(name=MARKER, attributes=attributes)],
        links=[Span.Link(attributes=attributes)],
        status=Status(code=Status.STATUS_CODE_ERROR, message=MARKER),
    )
    scope = ScopeSpans(
        scope=InstrumentationScope(name=f"acme.{MARKER}", version=MARKER, attributes=attributes),
        spans=[one],
    )
    return ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(resource=Resource(attributes=attributes), scope_spans=[scope])
        ]
    ).SerializeToString()


def records() -> bytes:
    one = log(MARKER, {MARKER: MARKER}, body=MARKER, trace="a trace").proto
    return ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=[one])])]
    ).SerializeToString()


def over_http(collector: Collector) -> list[int]:
    """Send every kind of request over HTTP; returns the statuses of the answers."""
    protobuf, as_json = "application/x-protobuf", "application/json"
    broken = json.dumps({"resourceSpans": MARKER}).encode()
    half = json.dumps(
        {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": MARKER, "name": MARKER}]}]}]}
    ).encode()
    requests = [
        ("/v1/traces", spans("readable", 1), protobuf),
        ("/v1/traces", spans("unreadable", 2), protobuf),
        ("/v1/traces", spans("unfeedable", 3), protobuf),
        ("/v1/traces", spans("without ids", 4, trace_id=b"", span_id=b""), protobuf),
        (
            "/v1/traces",
            spans("strange ids", 5, trace_id=MARKER.encode(), span_id=MARKER.encode()),
            protobuf,
        ),
        ("/v1/logs", records(), protobuf),
        ("/v1/traces", b"\xff" + MARKER.encode(), protobuf),
        ("/v1/traces", broken, as_json),
        ("/v1/traces", half, as_json),
        ("/v1/traces", b"{" + MARKER.encode(), as_json),
        ("/v1/traces", spans("of no type", 6), f"text/{MARKER}"),
        (f"/v1/{MARKER}", spans("of no signal", 7), protobuf),
        (f"/v1/traces/{MARKER}?{MARKER}={MARKER}", spans("of no signal", 8), protobuf),
    ]
    authorization = f"Bearer {TOKEN}"
    answers = [
        collector.post(path, body, kind, authorization=authorization)
        for path, body, kind in requests
    ]
    odd = (
        {"authorization": f"Bearer {MARKER}-token-0123"},
        {"authorization": authorization, "content_encoding": MARKER},
        {MARKER: MARKER},
    )
    answers += [
        collector.post("/v1/traces", spans("refused", 9), protobuf, **headers) for headers in odd
    ]
    return [status for status, _ in answers]


def over_grpc(collector: Collector) -> list[str]:
    """The same over gRPC; returns the codes of the answers."""
    codes = []
    with grpc.insecure_channel(f"127.0.0.1:{collector.ports['grpc']}") as channel:
        for service, body, token in (
            ("trace.v1.TraceService", spans("readable", 11), TOKEN),
            ("trace.v1.TraceService", b"\xff" + MARKER.encode(), TOKEN),
            ("trace.v1.TraceService", spans("refused", 12), f"{MARKER}-token-0123"),
            (f"trace.v1.{MARKER}", spans("of no service", 13), TOKEN),
        ):
            export: Any = channel.unary_unary(f"/opentelemetry.proto.collector.{service}/Export")
            try:
                export(body, metadata=(("authorization", f"Bearer {token}"),), timeout=10)
                codes.append("OK")
            except grpc.RpcError as error:
                codes.append(error.code().name)
    return codes


@pytest.mark.parametrize("module", MODULES, ids=lambda module: str(module.relative_to(COLLECTOR)))
def test_every_event_is_a_text_that_never_changes_with_values_of_its_own_keys(module: Path) -> None:
    calls = [
        node
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Call) and is_logging(node.func)
    ]
    events = [call.args[0] for call in calls]
    assert [ast.unparse(event) for event in events if not is_fixed(event)] == []
    assert [ast.unparse(call) for call in calls if len(call.args) != 1] == []


def is_logging(function: ast.expr) -> bool:
    return isinstance(function, ast.Attribute) and ast.unparse(function.value) == "_log"


def is_fixed(event: ast.expr) -> bool:
    """The value of a literal or of a module constant."""
    return isinstance(event, ast.Constant) or (isinstance(event, ast.Name) and event.id.isupper())


@pytest.mark.slow
def test_nothing_that_was_sent_is_in_the_log(collector: Collector) -> None:
    assert over_http(collector) == [
        200,
        200,
        200,
        200,
        200,
        200,
        400,
        400,
        200,
        400,
        415,
        404,
        404,
        401,
        415,
        401,
    ]
    assert over_grpc(collector) == ["OK", "INVALID_ARGUMENT", "UNAUTHENTICATED", "UNIMPLEMENTED"]
    collector.get(f"/{MARKER}?{MARKER}")
    assert until(lambda: collector.events("trace could not be read"))
    assert until(lambda: collector.value("pathgauge_invocations_total") == 2)
    collector.configure(criteria={"broken": {"scorer": "acme_code:Broken", "threshold": 2}})
    collector.signal(SIGHUP)
    assert until(
        lambda: collector.events("reload failed, the last good configuration stays active")
    )
    assert collector.stop() == 0

    lines = collector.log()
    assert [line for line in lines if MARKER in json.dumps(line)] == []
    assert all({"event", "level", "timestamp"} <= line.keys() for line in lines)
    assert {"ready", "pipeline step failed", "trace could not be read", "stopping", "stopped"} <= {
        line["event"] for line in lines
    }
    [unreadable] = collector.events("trace could not be read")
    assert (unreadable["trace_id"], unreadable["dialect"], unreadable["function"]) == (
        (2).to_bytes(16).hex(),
        "acme",
        "kind",
    )
    assert "ValueError" in unreadable["exception"]

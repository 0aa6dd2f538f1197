"""A running collector and thousands of secrets: with redaction, none of them is in its files, its
log or its pages; without it, all of them are.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import grpc
import orjson
import pytest
import zstandard
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.receivers.grpc import LOGS_SERVICE, TRACE_SERVICE
from pathgauge.collector.testing import span
from support.planted import KINDS, VALUES, logs, spans
from support.running import Collector, until

pytestmark = pytest.mark.slow

COUNT = 10_000 if os.environ.get("PATHGAUGE_E2E") else 1_300
REQUESTS = 20

LEFT = re.compile(rb"pii\.example|4539[ -]?17|\+49171|SEKRET")
"""Each secret has one of these in it, and nothing else that is sent."""
FRAME = bytes.fromhex("28b52ffd")
"""How compressed data begins."""

AGENT = span(
    "a", "a", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "agent"}
).proto.attributes
REDACTION = {"detectors": {"phone": "hash"}}


def planted(count: int) -> tuple[list[Span], list[LogRecord]]:
    """Agents, one per trace, with every kind of secret in every field of their records."""
    random, sent, logged = Random(20261121), list[Span](), list[LogRecord]()
    secrets = _secrets(random)
    while len(sent) + len(logged) < count:
        trace_id = random.randbytes(16)
        for one in spans(secrets):
            proto = one.proto
            proto.trace_id, proto.span_id = trace_id, random.randbytes(8)
            proto.attributes.extend(AGENT)
            sent.append(Span(proto.SerializeToString(), one.resource, one.scope))
        for record in logs(secrets):
            record.proto.trace_id, record.proto.span_id = trace_id, sent[-1].proto.span_id
            logged.append(
                LogRecord(record.proto.SerializeToString(), record.resource, record.scope)
            )
    return sent, logged


def _secrets(random: Random) -> Iterator[tuple[str, Any]]:
    hiding = [hide for name, hide in VALUES.items() if name != "escaped json"]
    while True:
        secret = random.choice(KINDS)(random)
        yield secret, random.choice(hiding)(secret)


def chunks(records: list[Any]) -> Iterator[list[Any]]:
    size = len(records) // REQUESTS + 1
    return (records[at : at + size] for at in range(0, len(records), size))


def send(collector: Collector, sent: list[Span], logged: list[LogRecord]) -> None:
    """By gRPC, HTTP protobuf and HTTP JSON in turn."""
    requests = [("traces", encode_request(some)) for some in chunks(sent)] + [
        ("logs", encode_request(some)) for some in chunks(logged)
    ]
    with grpc.insecure_channel(f"127.0.0.1:{collector.ports['grpc']}") as channel:
        for number, (signal, body) in enumerate(requests):
            if number % 3 == 0:
                service = TRACE_SERVICE if signal == "traces" else LOGS_SERVICE
                response = (
                    ExportTraceServiceResponse if signal == "traces" else ExportLogsServiceResponse
                )
                export: Any = channel.unary_unary(
                    f"/{service}/Export", response_deserializer=response.FromString
                )
                answer = export(body)
                assert not answer.HasField("partial_success")
            elif number % 3 == 1:
                assert collector.post(f"/v1/{signal}", body)[0] == 200
            else:
                assert (
                    collector.post(f"/v1/{signal}", as_json(signal, body), "application/json")[0]
                    == 200
                )


def as_json(signal: str, body: bytes) -> bytes:
    request = ExportTraceServiceRequest if signal == "traces" else ExportLogsServiceRequest
    return orjson.dumps(_with_hex_ids(MessageToDict(request.FromString(body))))


def _with_hex_ids(value: Any) -> Any:
    if isinstance(value, list):
        return list(map(_with_hex_ids, value))
    if not isinstance(value, dict):
        return value
    ids = {"traceId", "spanId", "parentSpanId"}
    return {key: _hex(item) if key in ids else _with_hex_ids(item) for key, item in value.items()}


def _hex(identifier: str) -> str:
    return base64.b64decode(identifier).hex()


def kept(folder: Path) -> bytes:
    """Every byte of every file below the folder, and what is compressed in them."""
    files = [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]
    return b"\n".join(part for data in files for part in (data, *_decompressed(data)))


def _decompressed(data: bytes) -> Iterator[bytes]:
    for match in re.finditer(re.escape(FRAME), data):
        try:
            yield zstandard.ZstdDecompressor().decompressobj().decompress(data[match.start() :])
        except zstandard.ZstdError:
            continue


@pytest.mark.parametrize("redaction", [REDACTION, False], ids=["redacted", "as sent"])
def test_no_secret_is_kept_anywhere(tmp_path: Path, redaction: Any) -> None:
    sent, logged = planted(COUNT)
    with Collector(tmp_path, redaction=redaction, store={"path": "data"}) as collector:
        send(collector, sent, logged)
        everything = kept(tmp_path)
        assembled = until(lambda: collector.value("pathgauge_spans_assembled_total") == len(sent))
        scored = until(lambda: collector.value("pathgauge_invocations_read_total"))
        everything += kept(tmp_path) + b"".join(
            collector.get(page)[1].encode() for page in ("/metrics", "/healthz", "/readyz")
        )
        collector.stop()
    found = LEFT.findall(everything + kept(tmp_path))
    assert (assembled, scored > 0) == (True, True)
    assert found == [] if redaction else len(found) > COUNT // 2

"""Redaction behind the receivers: the redacted batches, the counts, and that nothing is passed on
if it fails.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import orjson
import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from structlog.testing import capture_logs

from pathgauge.collector.core import otlp
from pathgauge.collector.core.otlp.batch import Origin
from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.core.reading_budget import CpuClock
from pathgauge.collector.core.redaction import Redactor, Rules
from pathgauge.collector.receivers.export import ExportService, ReceiverLimits
from pathgauge.collector.receivers.redact import MAX_CPU_S, RedactingConsumer
from pathgauge.collector.testing import log, span
from support.dialects import INSTALLED
from support.intake import Intake

EMAIL = "alice@example.com"


class Peer(Intake):
    """A service whose batches are redacted."""

    def __init__(self, cpu_clock: CpuClock = lambda: 0.0) -> None:
        super().__init__()
        redactor = Redactor(Rules(), {}, b"salt", INSTALLED)
        redacting = RedactingConsumer(self.accept, redactor, self.telemetry, cpu_clock)
        self.service = ExportService("http", redacting.accept, self.telemetry, ReceiverLimits())

    async def send(self, body: bytes, signal: Any = "traces", encoding: Any = "protobuf") -> str:
        return (await self.service.export(Origin("acme", "http", signal, encoding), body)).code


def as_json(body: bytes) -> bytes:
    request = MessageToDict(ExportTraceServiceRequest.FromString(body))
    for sent in request["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        sent |= {"traceId": "01" * 16, "spanId": "02" * 8}
    return orjson.dumps(request)


async def test_of_records_beyond_the_cpu_time_of_a_request_only_ids_and_times_remain() -> None:
    seconds = count(step=MAX_CPU_S / 3)
    peer = Peer(lambda: float(next(seconds)))
    text = orjson.dumps([EMAIL, "x" * 300_000]).decode()
    spans = [span(str(number), "chat", {"note": text}) for number in range(6)]
    assert await peer.send(encode_request(spans)) == "ok"
    [batch] = peer.batches
    assert [one.span_id for one in batch.spans] == [one.span_id for one in spans]
    kept = ["note" in one.attributes for one in batch.spans]
    assert kept == sorted(kept, reverse=True)
    assert 0 < sum(kept) < len(kept)
    assert peer.telemetry.redacted_values.get("unreadable", "drop") == kept.count(False)
    assert EMAIL.encode() not in batch.body


@pytest.mark.parametrize("text", [EMAIL, f"{EMAIL} " * 5000], ids=["small", "large"])
@pytest.mark.parametrize("encoding", ["protobuf", "json"])
async def test_what_goes_on_is_redacted_and_its_body_says_the_same(
    encoding: str, text: str
) -> None:
    peer = Peer()
    body = encode_request([span("a", "chat", {"note": text})])
    assert await peer.send(as_json(body) if encoding == "json" else body, encoding=encoding) == "ok"
    [batch] = peer.batches
    assert batch.origin == Origin("acme", "http", "traces", "protobuf")
    assert otlp.decode_traces(batch.body, tenant="acme").records == batch.spans
    assert EMAIL.encode() not in batch.body
    assert peer.telemetry.accepted.items() == [(("http", encoding), 1)]
    assert peer.telemetry.redacted_values.items() == [(("email", "mask"), text.count("@"))]


async def test_resources_count_for_the_memory_of_open_traces_as_they_do_without_redaction() -> None:
    peer = Peer()
    body = encode_request(
        [span("a", "chat", resource={"service.name": "shop", "owner": EMAIL, "blob": "x" * 10_000})]
    )
    assert await peer.send(body) == "ok"
    [batch] = peer.batches
    [expected] = otlp.decode_traces(batch.body, tenant="acme").records
    assert [one.resource.size for one in batch.spans] == [expected.resource.size]


async def test_log_records_are_redacted_and_those_without_trace_still_counted() -> None:
    peer = Peer()
    body = encode_request([log("said", body={"content": EMAIL})], without_trace=3)
    assert len(ExportLogsServiceRequest.FromString(body).resource_logs) == 2
    assert await peer.send(body, "logs") == "ok"
    [batch] = peer.batches
    decoded = otlp.decode_logs(batch.body, tenant="acme")
    assert (
        [one.body for one in batch.logs]
        == [one.body for one in decoded.records]
        == [{"content": "[email]"}]
    )
    assert (batch.without_trace, decoded.without_trace, peer.telemetry.logs_dropped.total()) == (
        3,
        3,
        3,
    )


async def test_what_finds_no_room_is_not_counted_as_it_comes_again() -> None:
    peer = Peer()
    peer.answer = False
    assert await peer.send(encode_request([span("a", EMAIL)])) == "busy"
    assert peer.telemetry.redacted_values.total() == 0


async def test_when_redaction_fails_nothing_goes_on_and_the_sender_tries_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any) -> None:
        raise ValueError(EMAIL)

    monkeypatch.setattr(Redactor, "spans", broken)
    peer = Peer()
    with capture_logs():
        assert await peer.send(encode_request([span("a", EMAIL)])) == "failed"
    assert peer.batches == []

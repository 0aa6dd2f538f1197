"""The answers to an HTTP client: status, headers and body for every kind of invalid request."""

from __future__ import annotations

import asyncio
import gzip
import http.client
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import orjson
import pytest
import zstandard
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span
from structlog.testing import capture_logs

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.receivers.export import ReceiverLimits
from pathgauge.collector.receivers.http import HttpReceiver
from support.intake import Intake

LIMITS = ReceiverLimits(max_request_bytes=64 * 1024, body_timeout_s=0.1)
PROTOBUF, JSON = "application/x-protobuf", "application/json"
IDS: dict[str, Any] = {"traceId": "01" * 16, "spanId": "02" * 8}


@dataclass(frozen=True)
class Answer:
    status: int
    content_type: str | None
    body: bytes
    retry_after: str | None = None


class Peer(Intake):
    """A receiver, the batches that it accepted, and a client."""

    def __init__(self) -> None:
        super().__init__()
        self.receiver = HttpReceiver(
            "127.0.0.1:0", self.accept, self.telemetry, LIMITS, retry_after=1.5
        )

    async def post(
        self,
        body: bytes,
        content_type: str = PROTOBUF,
        encoding: str = "",
        path: str = "/v1/traces",
    ) -> Answer:
        headers = {"Content-Type": content_type, "Content-Encoding": encoding}
        return await self.send(
            "POST", path, body, {name: value for name, value in headers.items() if value}
        )

    async def send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        return await asyncio.to_thread(self._send, method, path, body, headers)

    def _send(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.receiver.port, timeout=10)
        connection.request(method, path, body, headers)
        response = connection.getresponse()
        answer = Answer(
            response.status,
            response.getheader("content-type"),
            response.read(),
            response.getheader("retry-after"),
        )
        connection.close()
        return answer


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    started = Peer()
    await started.receiver.start()
    yield started
    await started.receiver.stop(0)


def span(name: str, levels: int = 0) -> Span:
    value = AnyValue(string_value="deep")
    for _ in range(levels):
        value = AnyValue(array_value=ArrayValue(values=[value]))
    return Span(
        trace_id=b"\x01" * 16,
        span_id=b"\x02" * 8,
        name=name,
        attributes=[KeyValue(key="k", value=value)],
    )


def protobuf(*spans: Span) -> bytes:
    return ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])]
    ).SerializeToString()


def json(*spans: dict[str, Any]) -> bytes:
    return orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"stringValue": "deep"}
    for _ in range(levels):
        value = {"arrayValue": {"values": [value]}}
    return {"attributes": [{"key": "k", "value": value}]}


def status(message: str, content_type: str) -> bytes:
    return (
        Status(message=message).SerializeToString()
        if content_type == PROTOBUF
        else b'{"message": "%s"}' % message.encode()
    )


@pytest.mark.parametrize(
    ("body", "content_type", "encoding"),
    [
        pytest.param(protobuf(span("a")), PROTOBUF, "", id="protobuf"),
        pytest.param(
            protobuf(span("a")),
            "Application/X-Protobuf; proto=x",
            "identity",
            id="protobuf with a parameter",
        ),
        pytest.param(gzip.compress(protobuf(span("a"))), PROTOBUF, "gzip", id="protobuf gzip"),
        pytest.param(protobuf(span("a", levels=45)), PROTOBUF, "", id="protobuf nested 45 deep"),
        pytest.param(json(IDS | {"name": "a"}), JSON, "", id="JSON"),
        pytest.param(
            json(IDS | {"name": "a"}),
            "application/json; charset=utf-8",
            "",
            id="JSON with a charset",
        ),
        pytest.param(gzip.compress(json(IDS | {"name": "a"})), JSON, "GZIP", id="JSON gzip"),
        pytest.param(zstandard.compress(protobuf(span("a"))), PROTOBUF, "zstd", id="protobuf zstd"),
        pytest.param(json(IDS | {"name": "a"} | nested(45)), JSON, "", id="JSON nested 45 deep"),
    ],
)
async def test_success_is_an_empty_response_in_the_encoding_of_the_request(
    peer: Peer, body: bytes, content_type: str, encoding: str
) -> None:
    answer = await peer.post(body, content_type, encoding)
    media_type = content_type.partition(";")[0].lower()
    assert answer == Answer(200, media_type, b"{}" if media_type == JSON else b"")
    assert peer.names() == ["a"]
    assert peer.telemetry.accepted.items() == [
        (("http", "json" if media_type == JSON else "protobuf"), 1)
    ]


@pytest.mark.parametrize(("body", "content_type"), [(b"", PROTOBUF), (b"{}", JSON)])
async def test_an_empty_request_is_a_success_that_nobody_needs_to_accept(
    peer: Peer, body: bytes, content_type: str
) -> None:
    peer.answer = False
    assert (await peer.post(body, content_type)).status == 200


async def test_rejected_spans_are_a_partial_success_in_protobuf_and_their_neighbours_arrive(
    peer: Peer,
) -> None:
    body = protobuf(span("before"), span("poison"), Span(name="no ids"), span("after")).replace(
        b"poison", b"\xff" * 6
    )
    answer = await peer.post(body)
    partial = ExportTraceServiceResponse.FromString(answer.body).partial_success
    assert (answer.status, answer.content_type, peer.names()) == (
        200,
        PROTOBUF,
        ["before", "after"],
    )
    assert partial.rejected_spans == 2
    assert (
        partial.error_message
        == "rejected 2: undecodable 1, invalid_id 1; first: not a valid Span message"
    )
    assert peer.telemetry.refused.items() == [
        (("http", "undecodable"), 1),
        (("http", "invalid_id"), 1),
    ]


async def test_rejected_spans_are_a_partial_success_in_json_and_their_neighbours_arrive(
    peer: Peer,
) -> None:
    zeros = {"traceId": "0" * 32, "spanId": "02" * 8}
    answer = await peer.post(
        json(IDS | {"name": "before"}, zeros, IDS | nested(60), IDS | {"name": "after"}), JSON
    )
    partial = orjson.loads(answer.body)["partialSuccess"]
    assert (answer.status, answer.content_type, peer.names()) == (200, JSON, ["before", "after"])
    assert partial["rejectedSpans"] == "2"
    assert partial["errorMessage"].startswith(
        "rejected 2: invalid_id 1, undecodable 1; first: trace id: expected 16 bytes, not all zero"
    )


@pytest.mark.parametrize(
    ("body", "content_type", "encoding", "message"),
    [
        pytest.param(b"\xff" * 30, PROTOBUF, "", "not a protobuf message", id="noise"),
        pytest.param(b"{}", PROTOBUF, "", "not a protobuf message", id="JSON as protobuf"),
        pytest.param(
            b"[]", JSON, "", "found an array, expected a JSON object", id="JSON of another shape"
        ),
        pytest.param(
            b"\xff",
            JSON,
            "",
            "not JSON: str is not valid UTF-8: surrogates not allowed: line 1 column 1 (char 0)",
            id="not UTF-8",
        ),
        pytest.param(
            b"plain",
            JSON,
            "gzip",
            "not gzip: Error -3 while decompressing data: incorrect header check",
            id="no gzip",
        ),
        pytest.param(
            gzip.compress(b"abc")[:-1],
            PROTOBUF,
            "gzip",
            "the gzip stream ends early",
            id="gzip cut off",
        ),
        pytest.param(
            gzip.compress(gzip.compress(b"")),
            PROTOBUF,
            "gzip",
            "not a protobuf message",
            id="gzip twice",
        ),
    ],
)
async def test_a_request_that_cannot_be_read_is_400(
    peer: Peer, body: bytes, content_type: str, encoding: str, message: str
) -> None:
    assert await peer.post(body, content_type, encoding) == Answer(
        400, content_type, status(message, content_type)
    )
    assert peer.telemetry.requests.items() == [(("http", "traces", "undecodable"), 1)]


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
@pytest.mark.parametrize(
    ("body", "encoding", "message"),
    [
        pytest.param(b" " * 70_000, "", "more than 65,536 bytes", id="oversized"),
        pytest.param(
            b" " * 5_000_000, "", "more than 65,536 bytes", id="sent on long after the limit"
        ),
        pytest.param(
            gzip.compress(bytes(50_000_000)),
            "gzip",
            "more than 65,536 bytes when decompressed",
            id="gzip bomb",
        ),
    ],
)
async def test_a_request_that_is_too_large_is_413(
    peer: Peer, body: bytes, content_type: str, encoding: str, message: str
) -> None:
    assert await peer.post(body, content_type, encoding) == Answer(
        413, content_type, status(message, content_type)
    )
    assert peer.telemetry.requests.items() == [(("http", "traces", "too_large"), 1)]


@pytest.mark.parametrize("levels", [100, 1000])
async def test_deep_nesting_never_breaks_more_than_the_request(peer: Peer, levels: int) -> None:
    deep = b'{"arrayValue":{"values":[' * levels + b"]}}" * levels
    body = json(IDS | {"name": "a"}, IDS | {"attributes": [{"key": "k", "value": "DEEP"}]}).replace(
        b'"DEEP"', deep
    )
    answer = await peer.post(body, JSON)
    assert (answer.status, peer.names()) == {100: (200, ["a"]), 1000: (400, [])}[levels]


@pytest.mark.parametrize(
    ("content_type", "encoding", "found"),
    [
        ("text/plain", "", "Content-Type 'text/plain', no Content-Encoding"),
        ("", "", "no Content-Type, no Content-Encoding"),
        ("application/protobuf", "", "Content-Type 'application/protobuf', no Content-Encoding"),
        (PROTOBUF, "br", f"Content-Type '{PROTOBUF}', Content-Encoding 'br'"),
        (JSON, "gzip, gzip", f"Content-Type '{JSON}', Content-Encoding 'gzip, gzip'"),
        (PROTOBUF, "deflate", f"Content-Type '{PROTOBUF}', Content-Encoding 'deflate'"),
    ],
)
async def test_other_media_types_and_encodings_are_415(
    peer: Peer, content_type: str, encoding: str, found: str
) -> None:
    message = (
        f"found {found}; expected Content-Type application/x-protobuf or application/json,"
        " Content-Encoding gzip, zstd or none"
    )
    expected = (
        Answer(415, content_type, status(message, content_type))
        if content_type in (PROTOBUF, JSON)
        else Answer(415, "text/plain; charset=utf-8", f"{message}\n".encode())
    )
    assert await peer.post(protobuf(span("a")), content_type, encoding) == expected
    assert peer.telemetry.requests.items() == [(("http", "traces", "unsupported"), 1)]


async def test_two_headers_that_name_an_encoding_are_two_encodings(peer: Peer) -> None:
    headers = {"Content-Type": PROTOBUF, "Content-Encoding": "gzip", "content-encoding": "gzip"}
    assert (
        await peer.send(
            "POST", "/v1/traces", gzip.compress(gzip.compress(protobuf(span("a")))), headers
        )
    ).status == 415


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [("GET", "/v1/traces", 405), ("PUT", "/v1/logs", 405), ("POST", "/v1/metrics", 404)],
)
async def test_other_methods_and_paths(peer: Peer, method: str, path: str, expected: int) -> None:
    assert (await peer.send(method, path, b"", {"Content-Type": PROTOBUF})).status == expected


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON, "text/html"])
async def test_the_answer_to_another_path_says_which_paths_there_are(
    peer: Peer, content_type: str
) -> None:
    message = "found no path /, expected POST to /v1/traces or /v1/logs"
    expected = (
        Answer(404, content_type, status(message, content_type))
        if content_type in (PROTOBUF, JSON)
        else Answer(404, "text/plain; charset=utf-8", f"{message}\n".encode())
    )
    assert await peer.send("POST", "/?key=1", b"", {"Content-Type": content_type}) == expected


async def test_a_long_path_is_answered_without_its_end(peer: Peer) -> None:
    answer = await peer.send("POST", f"/{'x' * 9_000}", b"", {"Content-Type": PROTOBUF})
    assert (answer.status, len(answer.body) < 300) == (404, True)


@pytest.mark.parametrize("content_type", [PROTOBUF, JSON])
@pytest.mark.parametrize(
    ("answer", "expected", "message"),
    [
        (False, 429, "no capacity at the moment, try again"),
        (RuntimeError("disk on fire"), 503, "internal error, try again"),
    ],
    ids=["busy", "failed"],
)
async def test_trouble_on_our_side_asks_for_a_retry(
    peer: Peer, answer: bool | Exception, expected: int, message: str, content_type: str
) -> None:
    peer.answer = answer
    body = protobuf(span("a")) if content_type == PROTOBUF else json(IDS)
    with capture_logs() as logs:
        assert await peer.post(body, content_type) == Answer(
            expected, content_type, status(message, content_type), retry_after="2"
        )
    assert [line["log_level"] for line in logs] == (["error"] if expected == 503 else [])
    assert peer.telemetry.accepted.total() == 0


async def test_logs_have_their_own_path(peer: Peer) -> None:
    record = {"traceId": "01" * 16, "eventName": "gen_ai.choice"}
    body = orjson.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]})
    assert await peer.post(body, JSON, path="/v1/logs") == Answer(200, JSON, b"{}")
    assert [log.event_name for batch in peer.batches for log in batch.logs] == ["gen_ai.choice"]


@pytest.mark.parametrize("path", ["/v1/traces/", "/v1/logs/"])
async def test_a_slash_at_the_end_is_no_other_path(peer: Peer, path: str) -> None:
    """Exporters do not follow redirects."""
    assert await peer.post(b"{}", JSON, path=path) == Answer(200, JSON, b"{}")


async def test_a_connection_serves_many_requests(peer: Peer) -> None:
    def twice() -> list[int]:
        connection = http.client.HTTPConnection("127.0.0.1", peer.receiver.port, timeout=10)
        statuses = []
        for _ in range(2):
            connection.request(
                "POST", "/v1/traces", protobuf(span("a")), {"Content-Type": PROTOBUF}
            )
            response = connection.getresponse()
            statuses.append(response.status)
            response.read()
        connection.close()
        return statuses

    assert await asyncio.to_thread(twice) == [200, 200]


HEAD = (
    b"POST /v1/traces HTTP/1.1\r\nHost: pathgauge\r\nContent-Type:"
    b" application/json\r\nContent-Length: 100\r\n\r\n"
)


async def test_a_body_that_trickles_in_is_cut_off(peer: Peer) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", peer.receiver.port)
    writer.write(HEAD + b"{")
    answer = await asyncio.wait_for(reader.read(), 5)
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert answer.endswith(b'{"message": "the body did not arrive within 0.1 s"}')
    writer.close()
    assert peer.telemetry.requests.items() == [(("http", "traces", "too_slow"), 1)]


async def test_a_sender_that_hangs_up_is_counted_and_hands_nothing_on(peer: Peer) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", peer.receiver.port)
    writer.write(HEAD + b"{")
    await writer.drain()
    writer.close()
    async with asyncio.timeout(5):
        while not peer.telemetry.requests.total():
            await asyncio.sleep(0.001)
    assert peer.telemetry.requests.items() == [(("http", "traces", "disconnected"), 1)]
    assert peer.batches == []


async def test_a_port_in_use_is_an_error_that_names_the_endpoint(peer: Peer) -> None:
    endpoint = f"127.0.0.1:{peer.receiver.port}"
    second = HttpReceiver(endpoint, peer.accept, InternalTelemetry())
    with pytest.raises(OSError, match=f"cannot listen on {endpoint}: Address already in use"):
        await second.start()
    await second.stop(0)

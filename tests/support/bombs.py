"""Small requests that would grow large, each with the answer that OTLP has for it."""

from __future__ import annotations

import gzip
import http.client
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from support import http2
from support.running import PATIENCE_S
from support.wire import attribute, field, group, nested, span

PROTOBUF, JSON = "application/x-protobuf", "application/json"
MILLIONS = 2_000_000

STATUS = {
    ("grpc", "partial_success"): 0,
    ("grpc", "undecodable"): 3,
    ("grpc", "too_large"): 8,
    ("http", "ok"): 200,
    ("http", "partial_success"): 200,
    ("http", "undecodable"): 400,
    ("http", "too_large"): 413,
    ("http", "unsupported"): 415,
}
"""How the transports say what the collector counts; none of them asks to try again."""


class Answer(NamedTuple):
    """Status of the transport, and what the sender is told. `rejected` spans are lost for good, the
    others of the request are not.
    """

    status: int
    message: str
    rejected: int = 0
    retry: bool = False


class Way(NamedTuple):
    """How a request is sent."""

    transport: str
    encoding: str = "gzip"
    content_type: str = PROTOBUF


class Told(NamedTuple):
    """What comes of a request; `code` and `reason` are those of the counters, the message is the
    beginning of what is said.
    """

    code: str
    message: str
    reason: str = ""
    rejected: int = 0
    accepted: int = 0


@dataclass(frozen=True)
class Bomb:
    """A request, made when it is sent."""

    name: str
    way: Way
    body: Callable[[], bytes]
    told: Told

    @property
    def answer(self) -> Answer:
        """What the sender must get, the message as far as it is known."""
        return Answer(
            STATUS[self.way.transport, self.told.code], self.told.message, self.told.rejected
        )

    def send(self, ports: dict[str, int]) -> Answer:
        """Send it to the receivers at the ports `grpc` and `http`."""
        body = self.body()
        if self.way.transport == "http":
            return _post(ports["http"], body, self.way)
        with http2.Connection(ports["grpc"]) as connection:
            answer = connection.call(
                http2.message(body, compressed=bool(self.way.encoding)), self.way.encoding
            )
        assert answer.status is not None
        partial = ExportTraceServiceResponse.FromString(answer.response).partial_success
        return Answer(
            answer.status,
            answer.message or partial.error_message,
            partial.rejected_spans,
            answer.says_when_to_retry,
        )


def _post(port: int, body: bytes, way: Way) -> Answer:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request(
            "POST",
            "/v1/traces",
            body,
            {"Content-Type": way.content_type, "Content-Encoding": way.encoding},
        )
        response = connection.getresponse()
        said, retry = response.read(), response.getheader("Retry-After") is not None
    finally:
        connection.close()
    if response.getheader("Content-Type") == JSON:
        answer = json.loads(said)
        partial = answer.get(
            "partialSuccess", {"errorMessage": answer.get("message", ""), "rejectedSpans": 0}
        )
        return Answer(
            response.status, partial["errorMessage"], int(partial["rejectedSpans"]), retry
        )
    if response.getheader("Content-Type") != PROTOBUF:
        return Answer(response.status, said.decode(), retry=retry)
    if response.status != 200:
        return Answer(response.status, Status.FromString(said).message, retry=retry)
    done = ExportTraceServiceResponse.FromString(said).partial_success
    return Answer(response.status, done.error_message, done.rejected_spans, retry)


def _undecodable(message: str) -> Told:
    return Told("undecodable", message)


def _rejected(reason: str, message: str, n: int = 1, accepted: int = 2) -> Told:
    return Told(
        "partial_success", f"rejected {n}: {reason} {n}; first: {message}", reason, n, accepted
    )


def _zipped(body: Callable[[], bytes]) -> Callable[[], bytes]:
    return lambda: gzip.compress(body(), 1)


def _zeros(size: int) -> bytes:
    """gzip of `size` zeros. Compresses one block and repeats it."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    block = packer.compress(bytes(1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return gzip.compress(b"")[:10] + block * (size >> 20) + b"\x03\0" + bytes(8)


def _empty_spans() -> bytes:
    return field(1, field(2, b"\x12\x00" * MILLIONS))


def _beside(poisoned: bytes) -> bytes:
    return group(span("before"), poisoned, span("after"))


def _attributes_of_resource(value: bytes) -> bytes:
    return group(span(), span(), resource=field(1, field(1, b"key") + field(2, value)))


def _json(*spans: str) -> bytes:
    return b'{"resourceSpans":[{"scopeSpans":[{"spans":[%s]}]}]}' % ",".join(spans).encode()


def _json_span(value: str = "{}", start: str = '"1"') -> str:
    ids = f'"traceId":"{"01" * 16}","spanId":"{"02" * 8}"'
    return f'{{{ids},"startTimeUnixNano":{start},"attributes":[{{"key":"key","value":{value}}}]}}'


GRPC, GRPC_PLAIN, HTTP, HTTP_JSON = (
    Way("grpc"),
    Way("grpc", ""),
    Way("http"),
    Way("http", content_type=JSON),
)
HTTP_TWICE = Way("http", "gzip, gzip")

TOO_MANY_GROUPS = _undecodable("more than 200,000 groups and records")
TOO_MANY_TOKENS = _undecodable("more than 1,500,000 JSON strings, commas and brackets")
TOO_MANY_ATTRIBUTES = _rejected(
    "too_many_attributes", "more than 8,192 attributes, events and links"
)
TOO_MANY_VALUES = _rejected(
    "too_many_attributes", "more than 65,536 attributes, events, links and values inside them"
)
NOT_A_SPAN = _rejected("undecodable", "not a valid Span")
NO_PROTOBUF = _undecodable("not a protobuf message")
TOO_LARGE = Told("too_large", "Decompressed message larger than max")
TOO_LARGE_BY_HTTP = Told("too_large", "more than 16,777,216 bytes when decompressed")

BOMBS = (
    Bomb("2M empty spans", GRPC, _zipped(_empty_spans), TOO_MANY_GROUPS),
    Bomb(
        "2M empty scopes", GRPC, _zipped(lambda: field(1, b"\x12\x00" * MILLIONS)), TOO_MANY_GROUPS
    ),
    Bomb(
        "2M empty attributes",
        GRPC,
        _zipped(lambda: _beside(span(more=b"\x4a\x00" * MILLIONS))),
        TOO_MANY_ATTRIBUTES,
    ),
    Bomb(
        "2M values",
        GRPC,
        _zipped(lambda: _beside(span(more=attribute(field(5, b"\x0a\x00" * MILLIONS))))),
        TOO_MANY_VALUES,
    ),
    Bomb(
        "2M keys",
        GRPC,
        _zipped(lambda: _beside(span(more=attribute(field(6, b"\x0a\x00" * MILLIONS))))),
        TOO_MANY_VALUES,
    ),
    Bomb(
        "2M attributes of an event",
        GRPC,
        _zipped(lambda: _beside(span(more=field(11, b"\x1a\x00" * MILLIONS)))),
        TOO_MANY_VALUES,
    ),
    Bomb(
        "a resource of 2 MB",
        GRPC,
        _zipped(lambda: _attributes_of_resource(field(5, b"\x0a\x00" * 1_000_000))),
        _rejected("too_large", "2,000,017 bytes, at most 262,144 are read", n=2, accepted=0),
    ),
    Bomb("nested 60 deep", GRPC_PLAIN, lambda: _beside(span(more=nested(60))), NOT_A_SPAN),
    Bomb("nested 10,000 deep", GRPC_PLAIN, lambda: _beside(span(more=nested(10_000))), NOT_A_SPAN),
    Bomb(
        "a name that is not UTF-8",
        GRPC_PLAIN,
        lambda: _beside(span(more=field(5, b"\xff"))),
        NOT_A_SPAN,
    ),
    Bomb(
        "a trace id of zeros",
        GRPC_PLAIN,
        lambda: _beside(span(trace_id=bytes(16))),
        _rejected("invalid_id", f"trace id: expected 16 bytes, not all zero, found '{'0' * 32}'"),
    ),
    Bomb("64 MiB of zeros", GRPC, lambda: _zeros(64 << 20), TOO_LARGE),
    Bomb("512 MiB of zeros", GRPC, lambda: _zeros(512 << 20), TOO_LARGE),
    Bomb("gzip in gzip", GRPC, lambda: gzip.compress(_zeros(64 << 20)), NO_PROTOBUF),
    Bomb("HTTP: 2M empty spans", HTTP, _zipped(_empty_spans), TOO_MANY_GROUPS),
    Bomb("HTTP: 64 MiB of zeros", HTTP, lambda: _zeros(64 << 20), TOO_LARGE_BY_HTTP),
    Bomb("HTTP: 512 MiB of zeros", HTTP, lambda: _zeros(512 << 20), TOO_LARGE_BY_HTTP),
    Bomb("HTTP: gzip in gzip", HTTP, lambda: gzip.compress(_zeros(64 << 20)), NO_PROTOBUF),
    Bomb(
        "HTTP: gzip in gzip that says so",
        HTTP_TWICE,
        lambda: gzip.compress(_zeros(64 << 20)),
        Told(
            "unsupported",
            f"found Content-Type '{PROTOBUF}', Content-Encoding 'gzip, gzip'; expected ",
        ),
    ),
    Bomb(
        "JSON: 3M strings",
        HTTP_JSON,
        _zipped(lambda: b'["ab"' + b',"ab"' * 3_000_000 + b"]"),
        TOO_MANY_TOKENS,
    ),
    Bomb(
        "JSON: 5M numbers",
        HTTP_JSON,
        _zipped(lambda: b"[1" + b",1" * 5_000_000 + b"]"),
        TOO_MANY_TOKENS,
    ),
    Bomb("JSON: 2M spans", HTTP_JSON, _zipped(lambda: _json(*["{}"] * MILLIONS)), TOO_MANY_TOKENS),
    Bomb(
        "JSON: 700,000 unknown keys",
        HTTP_JSON,
        _zipped(lambda: b"{%s}" % b",".join(b'"%x":0' % key for key in range(700_000))),
        Told("ok", ""),
    ),
    Bomb(
        "JSON: 100,000 values",
        HTTP_JSON,
        _zipped(
            lambda: _json(
                _json_span('{"arrayValue":{"values":[{}' + ",{}" * 100_000 + "]}}"), _json_span()
            )
        ),
        TOO_MANY_VALUES._replace(accepted=1),
    ),
    Bomb(
        "JSON: nested 10,000 deep",
        HTTP_JSON,
        _zipped(lambda: _json(_json_span('{"arrayValue":{"values":[' * 10_000 + "]}}" * 10_000))),
        _undecodable("not JSON: "),
    ),
    Bomb(
        "JSON: a start of 5,000 digits",
        HTTP_JSON,
        _zipped(lambda: _json(_json_span(start="9" * 5_000))),
        _undecodable("not JSON: "),
    ),
    Bomb(
        "JSON: a start of 5,000 digits in quotes",
        HTTP_JSON,
        _zipped(lambda: _json(_json_span(start=f'"{"9" * 5_000}"'), _json_span())),
        NOT_A_SPAN._replace(accepted=1),
    ),
)

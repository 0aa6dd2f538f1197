"""OTLP over HTTP/1.1: POST /v1/traces and /v1/logs, protobuf or JSON, plain or gzip.

Senders retry only after 429, 502, 503 and 504. So failures of the collector are answered with 429
or 503, never with 500. Answers have the encoding of the request, or are plain text if that is
unknown.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from functools import partial

import structlog
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from google.rpc.status_pb2 import Status
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp import Encoding, Signal
from pathgauge.collector.core.otlp.batch import Consumer, Origin
from pathgauge.collector.receivers.auth.tenants import (
    Authenticate,
    Credentials,
    RefusedError,
    anonymous,
)
from pathgauge.collector.receivers.export import Code, ExportResult, ExportService, ReceiverLimits
from pathgauge.collector.receivers.http_body import BodyError, BodyReader, Compression
from pathgauge.collector.receivers.refused_requests import RefusedRequests, Sender
from pathgauge.collector.receivers.server.asgi_server import HttpServer
from pathgauge.collector.receivers.server.connections import Terms
from pathgauge.scorers.matching.wording import cut

_SIGNALS: tuple[Signal, ...] = ("traces", "logs")
_ENCODINGS: dict[str, Encoding] = {"application/x-protobuf": "protobuf", "application/json": "json"}
_NOT_RECEIVED = frozenset({"/v1/metrics", "/v1development/profiles"})
"""Paths of other signals. Many agents send them to the same endpoint, and no score needs them."""
_MAX_SHOWN_PATH = 100
_LOGGED_SEGMENTS = frozenset(
    {"api", "logs", "metrics", "opentelemetry", "otel", "otlp", "public", "traces", "v1"}
)
"""Parts of paths that exporters and their documentation use. Others may be keys."""
_COMPRESSIONS: dict[str, Compression] = {
    "": "none",
    "identity": "none",
    "gzip": "gzip",
    "zstd": "zstd",
}
_MEDIA_TYPES = {encoding: media_type for media_type, encoding in _ENCODINGS.items()}
_STATUS: dict[Code, int] = {
    "ok": 200,
    "partial_success": 200,
    "undecodable": 400,
    "disconnected": 400,
    "too_slow": 408,
    "too_large": 413,
    "unsupported": 415,
    "busy": 429,
    "failed": 503,
}
_RETRYABLE = frozenset({429, 503})
_REFUSED = {"unauthenticated": 401, "forbidden": 403}

_log = structlog.get_logger(__name__)


class HttpReceiver:
    """Serves OTLP/HTTP on one endpoint."""

    def __init__(
        self,
        endpoint: str,
        accept: Consumer,
        telemetry: InternalTelemetry,
        limits: ReceiverLimits | None = None,
        retry_after: float = 1.0,
        *,
        authenticate: Authenticate = anonymous,
        terms: Terms | None = None,
    ) -> None:
        """`endpoint` is `host:port`; port 0 selects a free one. `retry_after` is in seconds."""
        self._server = HttpServer(
            http_app(accept, telemetry, limits or ReceiverLimits(), retry_after, authenticate),
            endpoint,
            terms,
        )

    @property
    def port(self) -> int:
        """The open port; before `start` the configured one."""
        return self._server.port

    async def start(self) -> None:
        """Listen. Raises OSError, naming the endpoint, when the address is unavailable."""
        await self._server.start()

    async def stop(self, grace: float) -> None:
        """Accept no more connections; active requests have `grace` seconds to finish."""
        await self._server.stop(grace)


def http_app(
    accept: Consumer,
    telemetry: InternalTelemetry,
    limits: ReceiverLimits,
    retry_after: float,
    authenticate: Authenticate,
) -> Starlette:
    """The receiver as an ASGI application."""
    exports = _Exports(
        ExportService("http", accept, telemetry, limits),
        BodyReader(limits),
        retry_after,
        authenticate,
    )
    # With and without a trailing slash, because exporters do not follow redirects.
    return Starlette(
        routes=[
            Route(path, exports.endpoint(signal), methods=["POST"])
            for signal in _SIGNALS
            for path in (f"/v1/{signal}", f"/v1/{signal}/")
        ],
        exception_handlers={404: _UnknownPaths().answer},
    )


class _Exports:
    """Turns HTTP requests into exports, and their results into HTTP responses."""

    def __init__(
        self,
        service: ExportService,
        bodies: BodyReader,
        retry_after: float,
        authenticate: Authenticate,
    ) -> None:
        self._service = service
        self._bodies = bodies
        self._retry_after = str(math.ceil(retry_after))
        self._authenticate = authenticate

    def endpoint(self, signal: Signal) -> Callable[[Request], Awaitable[Response]]:
        """The handler of one path."""

        async def export(request: Request) -> Response:
            encoding = _ENCODINGS.get(_media_type(request))
            sender = partial(_sender, request)
            try:
                tenant = self._authenticate(_credentials(request))
            except RefusedError as refusal:
                self._service.count(signal, "unauthenticated", sender)
                return _deny(refusal, encoding)
            compression = _COMPRESSIONS.get(_content_encoding(request).strip().lower())
            if encoding is None or compression is None:
                self._service.count(signal, "unsupported", sender, tenant)
                return _unsupported(request, encoding)
            origin = Origin(tenant, "http", signal, encoding)
            try:
                async with self._bodies.read(request.stream(), compression) as body:
                    return self._answer(encoding, await self._service.export(origin, body, sender))
            except BodyError as error:
                return self._refuse(origin, error.code, str(error), sender)
            except ClientDisconnect:
                return self._refuse(origin, "disconnected", "the body ends early", sender)
            except Exception:
                _log.exception(
                    "request body could not be read; the sender is asked to retry", signal=signal
                )
                return self._refuse(origin, "failed", "internal error, try again", sender)

        return export

    def _refuse(
        self, origin: Origin, code: Code, message: str, sender: Callable[[], Sender]
    ) -> Response:
        self._service.count(origin.signal, code, sender, origin.tenant)
        response = self._answer(origin.encoding, ExportResult(code, message))
        response.headers["Connection"] = "close"  # part of the body may still be on its way
        return response

    def _answer(self, encoding: Encoding, result: ExportResult) -> Response:
        status = _STATUS[result.code]
        headers = {"Retry-After": self._retry_after} if status in _RETRYABLE else None
        content = _encode(result.response or Status(message=result.message), encoding)
        return Response(content, status, headers, _MEDIA_TYPES[encoding])


class _UnknownPaths:
    """Answers requests to other paths, and logs who sends them: exporters often lack the path of
    their signal, and what they send is lost.
    """

    def __init__(self) -> None:
        self._refused = RefusedRequests("http")

    async def answer(self, request: Request, _: Exception) -> Response:
        """The answer names the paths that there are."""
        path = request.url.path
        if request.method == "POST" and path not in _NOT_RECEIVED:  # probes use GET
            self._refused.note(_sender(request), "not_found", path=_logged(path))
        expected = " or ".join(f"/v1/{signal}" for signal in _SIGNALS)
        return _refusal(
            f"found no path {cut(path, _MAX_SHOWN_PATH)}, expected POST to {expected}",
            _ENCODINGS.get(_media_type(request)),
            404,
        )


def _logged(path: str) -> str:
    """The path with `*` in place of what may be secret."""
    segments = cut(path, _MAX_SHOWN_PATH).split("/")
    return "/".join(one if not one or one in _LOGGED_SEGMENTS else "*" for one in segments)


def _encode(message: Message, encoding: Encoding) -> bytes:
    if encoding == "json":
        return MessageToJson(message, indent=None).encode()
    return message.SerializeToString()


def _sender(request: Request) -> Sender:
    peer = request.client.host if request.client is not None else ""
    return Sender(peer, request.headers.get("user-agent", ""))


def _credentials(request: Request) -> Credentials:
    names: tuple[str, ...] | None = request.scope.get("state", {}).get("client_names")
    return Credentials(tuple(request.headers.getlist("authorization")), names)


def _deny(refusal: RefusedError, encoding: Encoding | None) -> Response:
    status = _REFUSED[refusal.kind]
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else None
    return _refusal(str(refusal), encoding, status, headers)


def _refusal(
    message: str, encoding: Encoding | None, status: int, headers: dict[str, str] | None = None
) -> Response:
    if encoding is None:
        return PlainTextResponse(f"{message}\n", status, headers)
    return Response(
        _encode(Status(message=message), encoding), status, headers, _MEDIA_TYPES[encoding]
    )


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _content_encoding(request: Request) -> str:
    """The values of all headers of this name, as one list."""
    return ", ".join(request.headers.getlist("content-encoding"))


def _unsupported(request: Request, encoding: Encoding | None) -> Response:
    found = (
        f"{_named('Content-Type', request.headers.get('content-type'))},"
        f" {_named('Content-Encoding', _content_encoding(request))}"
    )
    expected = f"Content-Type {' or '.join(_ENCODINGS)}, Content-Encoding gzip, zstd or none"
    return _refusal(f"found {found}; expected {expected}", encoding, 415)


def _named(header: str, value: str | None) -> str:
    return f"{header} {value!r}" if value else f"no {header}"

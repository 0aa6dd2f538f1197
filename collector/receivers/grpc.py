"""OTLP over gRPC: the trace and the log service, and the standard health service.

Requests are handled as bytes, because the generated decoder would reject a whole request for one
bad span. Senders never retry after UNKNOWN or INTERNAL, and after RESOURCE_EXHAUSTED only if they
understand the delay that comes with it. So failures of the collector are answered with UNAVAILABLE
and a delay.

The asyncio server of gRPC silently stops for good when somebody calls a method whose name is not
UTF-8. So the server is watched and replaced by a new one. Active calls continue, and senders
reconnect.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

import grpc
import structlog
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from pathgauge.collector.core.documents.quantities import parse_endpoint
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp import Signal
from pathgauge.collector.core.otlp.batch import Consumer, Origin
from pathgauge.collector.receivers.auth.tenants import (
    Authenticate,
    Credentials,
    RefusedError,
    anonymous,
)
from pathgauge.collector.receivers.export import ExportResult, ExportService, ReceiverLimits
from pathgauge.collector.receivers.grpc_calls import STATUS, Calls, Context, Turns, address
from pathgauge.collector.receivers.grpc_health import Health
from pathgauge.collector.receivers.http_body import BodyError
from pathgauge.collector.receivers.refused_requests import Sender
from pathgauge.collector.receivers.server.connections import HANDSHAKE_TIMEOUT_S
from pathgauge.collector.receivers.server.listen import listen
from pathgauge.collector.store.essential import essential_task

TRACE_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
LOGS_SERVICE = "opentelemetry.proto.collector.logs.v1.LogsService"

_SERVICES: dict[str, Signal] = {TRACE_SERVICE: "traces", LOGS_SERVICE: "logs"}
_DETAILS_KEY = "grpc-status-details-bin"
_PYTHON_EXPORTER_RETRY_KEY = "google.rpc.retryinfo-bin"
"""Where the Python exporter reads the delay. The OpenTelemetry Collector and the Java and Go SDKs
read the status details.
"""

_REFUSED = {
    "unauthenticated": grpc.StatusCode.UNAUTHENTICATED,
    "forbidden": grpc.StatusCode.PERMISSION_DENIED,
}

MAX_CONNECTIONS = 512
"""Each needs a file descriptor. gRPC closes further connections at once, without reporting them. It
has no limit per address.
"""
WATCH_S = 0.25
"""How often the server is checked."""
DRAIN_S = 5.0
"""Time for the active calls of a server that stopped by itself."""

_OPTIONS = (
    # Otherwise a second collector on the same port would silently get half of the traffic.
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", 100),
    ("grpc.max_metadata_size", 16 * 1024),
    # Otherwise megabytes of a message would arrive before it is read. A message that is being read
    # arrives completely anyway.
    ("grpc.http2.bdp_probe", 0),
    # Client certificates are checked again at a new connection. Senders lose no request by it.
    ("grpc.max_connection_age_ms", 600_000),
    ("grpc.max_connection_age_grace_ms", 60_000),
    # Finds peers that vanished.
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # Senders behind load balancers ping this often.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
)

_Metadata: TypeAlias = tuple[tuple[str, bytes], ...]
_Handler: TypeAlias = Callable[[AsyncIterator[bytes], Context], Awaitable[bytes]]


_log = structlog.get_logger(__name__)


class GrpcReceiver:
    """Serves OTLP/gRPC on one endpoint. Safe to stop twice, or without a start."""

    def __init__(
        self,
        endpoint: str,
        accept: Consumer,
        telemetry: InternalTelemetry,
        limits: ReceiverLimits | None = None,
        retry_after: float = 1.0,
        *,
        authenticate: Authenticate = anonymous,
        credentials: grpc.ServerCredentials | None = None,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        """`endpoint` is `host:port`; port 0 selects a free one. `retry_after` is in seconds.
        Without `credentials` there is no TLS.

        Raises ValueError for a bad endpoint.
        """
        self._endpoint = parse_endpoint(endpoint)
        self._port = self._endpoint.port
        self._limits = limits or ReceiverLimits()
        self._service = ExportService("grpc", accept, telemetry, self._limits)
        self._retry_after = retry_after
        self._authenticate = authenticate
        self._credentials = credentials
        self._options = (
            *_OPTIONS,
            ("grpc.max_receive_message_length", self._limits.max_request_bytes),
            ("grpc.max_allowed_incoming_connections", max_connections),
            ("grpc.server_handshake_timeout_ms", round(HANDSHAKE_TIMEOUT_S * 1000)),
        )
        turns = Turns(self._limits.body_grace_s, self._limits.max_arriving)
        self._calls = Calls(self._limits, turns, self._limits.memory)
        self._health = Health(self._limits, turns)
        self._server: grpc.aio.Server | None = None
        self._watch: asyncio.Task[None] | None = None
        self._draining: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The open port; before `start` the configured one."""
        return self._port

    async def start(self) -> None:
        """Listen. Raises OSError, naming the endpoint, when the address is unavailable."""
        self._server = await self._start_server()
        self._watch = essential_task(self._restart_when_stopped(self._server), "gRPC")

    async def _start_server(self) -> grpc.aio.Server:
        server = grpc.aio.server(options=self._options)
        for service, signal in _SERVICES.items():
            export: grpc.RpcMethodHandler[bytes, bytes] = grpc.stream_unary_rpc_method_handler(
                self._handler(signal)
            )
            server.add_generic_rpc_handlers(
                (grpc.method_handlers_generic_handler(service, {"Export": export}),)
            )
            await self._health.serving(service)
        self._health.add_to(server)
        self._port = self._listen(server, self._port)
        await server.start()
        return server

    async def stop(self, grace: float) -> None:
        """Report NOT_SERVING and accept no more requests; active ones have `grace` seconds to
        finish.
        """
        if self._watch is not None:
            self._watch.cancel()
        await self._health.stop()
        if self._server is not None:
            await asyncio.gather(self._server.stop(grace), *self._draining)

    async def _restart_when_stopped(self, server: grpc.aio.Server) -> None:
        """Replace a server that stopped by itself."""
        while True:
            try:
                while await server.wait_for_termination(WATCH_S):
                    pass
                return
            except Exception:
                _log.warning("the gRPC server stopped by itself, starting another", port=self._port)
            draining = asyncio.create_task(server.stop(DRAIN_S))
            self._draining.add(draining)
            draining.add_done_callback(self._draining.discard)
            self._server = server = await self._start_next_server()

    async def _start_next_server(self) -> grpc.aio.Server:
        while True:
            try:
                return await self._start_server()
            except OSError:  # the listening socket of the last server is still open
                await asyncio.sleep(WATCH_S)

    def _listen(self, server: grpc.aio.Server, port: int) -> int:
        endpoint = self._endpoint._replace(port=port)
        for listener in listen(endpoint):  # raises the reason, which gRPC would only print
            listener.close()
        try:
            if self._credentials is not None:
                return server.add_secure_port(str(endpoint), self._credentials)
            return server.add_insecure_port(str(endpoint))
        except RuntimeError as error:
            raise OSError(f"cannot listen on {endpoint}") from error

    def _handler(self, signal: Signal) -> _Handler:
        async def export(_: AsyncIterator[bytes], context: Context) -> bytes:
            try:
                tenant = self._authenticate(_credentials(context))
            except RefusedError as refusal:
                self._service.count(
                    signal, "unauthenticated", partial(_sender, context, context.peer())
                )
                await context.abort(_REFUSED[refusal.kind], str(refusal))
            result = await self._export(Origin(tenant, "grpc", signal, "protobuf"), context)
            if result.response is not None:
                return result.response.SerializeToString()
            if result.code in STATUS:
                await context.abort(STATUS[result.code], result.message)
            await context.abort(
                grpc.StatusCode.UNAVAILABLE,
                result.message,
                _retry_metadata(result.message, self._retry_after),
            )

        return export

    async def _export(self, origin: Origin, context: Context) -> ExportResult:
        sender = partial(_sender, context, context.peer())  # unknown when gRPC has refused it
        try:
            with self._calls.admitted(context):
                message = await self._calls.message(context)
                return await self._service.export(origin, message, sender)
        except BodyError as error:
            self._service.count(origin.signal, error.code, sender, origin.tenant)
            return ExportResult(error.code, str(error))


def _sender(context: Context, peer: str) -> Sender:
    metadata = context.invocation_metadata() or ()
    agents = (_text(value) for key, value in metadata if key == "user-agent")
    return Sender(address(peer), next(agents, ""))


def _credentials(context: Context) -> Credentials:
    authorization = tuple(
        _text(value) for key, value in context.invocation_metadata() or () if key == "authorization"
    )
    peer: Any = context.auth_context()
    if "x509_pem_cert" not in peer:
        return Credentials(authorization)
    names = (name for kind in ("peer_dns", "peer_uri") for name in peer.get(kind, ()))
    return Credentials(authorization, tuple(map(_text, names)))


def _text(value: str | bytes) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _retry_metadata(message: str, retry_after: float) -> _Metadata:
    retry = RetryInfo()
    retry.retry_delay.FromMilliseconds(round(retry_after * 1000))
    status = Status(code=grpc.StatusCode.UNAVAILABLE.value[0], message=message)
    status.details.add().Pack(retry)
    return (_DETAILS_KEY, status.SerializeToString()), (
        _PYTHON_EXPORTER_RETRY_KEY,
        retry.SerializeToString(),
    )

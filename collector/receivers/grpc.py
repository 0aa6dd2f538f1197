"""OTLP over gRPC: the trace and the log service, and the standard health service.

Requests reach us as bytes, because a decoder generated for the service would refuse a whole request for one bad span.
Senders never retry UNKNOWN or INTERNAL, and RESOURCE_EXHAUSTED only when they understand the delay beside it, so whatever
goes wrong on our side is answered UNAVAILABLE with a delay.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

import grpc
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health, health_pb2_grpc
from grpc_health.v1.health_pb2 import HealthCheckResponse

from collector.documents.quantities import parse_endpoint
from collector.listening import listen
from collector.receivers.export import ExportService, ReceiverLimits, Signal
from collector.receivers.intake import Accept
from collector.telemetry import Ledger

TRACE_SERVICE = "opentelemetry.proto.collector.trace.v1.TraceService"
LOGS_SERVICE = "opentelemetry.proto.collector.logs.v1.LogsService"

_SERVICES: dict[str, Signal] = {TRACE_SERVICE: "traces", LOGS_SERVICE: "logs"}
_DETAILS_KEY = "grpc-status-details-bin"
_PYTHON_EXPORTER_RETRY_KEY = "google.rpc.retryinfo-bin"
"""Where the Python exporter looks for the delay; the OpenTelemetry Collector and the Java and Go SDKs read the details."""

_OPTIONS = (
    ("grpc.so_reuseport", 0),  # or a second collector on the same port would silently take half of the traffic
    ("grpc.max_concurrent_streams", 100),
    ("grpc.max_metadata_size", 16 * 1024),
    ("grpc.keepalive_time_ms", 60_000),  # notices peers that vanished
    ("grpc.keepalive_timeout_ms", 20_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),  # senders behind load balancers ping that often
)

_Metadata: TypeAlias = tuple[tuple[str, bytes], ...]
_Handler: TypeAlias = Callable[[bytes, "grpc.aio.ServicerContext[bytes, bytes]"], Awaitable[bytes]]


class GrpcReceiver:
    """Serves OTLP/gRPC on one endpoint. Safe to stop twice, or without a start."""

    def __init__(
        self, endpoint: str, accept: Accept, ledger: Ledger, limits: ReceiverLimits | None = None, retry_after: float = 1.0
    ) -> None:
        """`endpoint` is `host:port`; port 0 takes a free one. `retry_after` is in seconds. Raises ValueError on a bad endpoint."""
        self._endpoint = parse_endpoint(endpoint)
        self._port = self._endpoint.port
        self._limits = limits or ReceiverLimits()
        self._service = ExportService("grpc", accept, ledger, self._limits)
        self._retry_after = retry_after
        self._health = health.aio.HealthServicer()
        self._server: grpc.aio.Server | None = None

    @property
    def port(self) -> int:
        """The port listened on; before `start` the configured one."""
        return self._port

    async def start(self) -> None:
        """Listen. Raises OSError, naming the endpoint, when the address cannot be had."""
        size = ("grpc.max_receive_message_length", self._limits.max_request_bytes)
        server = grpc.aio.server(options=(*_OPTIONS, size))
        for service, signal in _SERVICES.items():
            export: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(self._handler(signal))
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {"Export": export}),))
            await self._health.set(service, HealthCheckResponse.SERVING)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, server)
        self._port = self._listen(server)
        self._server = server
        await server.start()

    async def stop(self, grace: float) -> None:
        """Report NOT_SERVING and accept no more requests; those under way have `grace` seconds to finish."""
        await self._health.enter_graceful_shutdown()
        if self._server is not None:
            await self._server.stop(grace)

    def _listen(self, server: grpc.aio.Server) -> int:
        listen(self._endpoint).close()  # tells why an address cannot be had, which gRPC writes on standard error instead
        try:
            return server.add_insecure_port(str(self._endpoint))
        except RuntimeError as error:
            raise OSError(f"cannot listen on {self._endpoint}") from error

    def _handler(self, signal: Signal) -> _Handler:
        async def export(body: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
            outcome = await self._service.export(signal, "protobuf", body)
            if outcome.response is not None:
                return outcome.response.SerializeToString()
            if outcome.code == "undecodable":
                await context.abort(grpc.StatusCode.INVALID_ARGUMENT, outcome.message)
            await context.abort(grpc.StatusCode.UNAVAILABLE, outcome.message, _retry_metadata(outcome.message, self._retry_after))

        return export


def _retry_metadata(message: str, retry_after: float) -> _Metadata:
    retry = RetryInfo()
    retry.retry_delay.FromMilliseconds(round(retry_after * 1000))
    status = Status(code=grpc.StatusCode.UNAVAILABLE.value[0], message=message)
    status.details.add().Pack(retry)
    return (_DETAILS_KEY, status.SerializeToString()), (_PYTHON_EXPORTER_RETRY_KEY, retry.SerializeToString())

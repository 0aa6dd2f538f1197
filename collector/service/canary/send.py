"""Builds the export request of a canary, and sends it to a receiver.

The exporters of the OpenTelemetry SDK are not used here. They read proxies, headers and credentials
from environment variables that are meant for other programs, and they retry, which would hide the
failures that the canary is to find.
"""

from __future__ import annotations

import asyncio
import http.client
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping

import grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from pathgauge.collector.config import Protocols
from pathgauge.collector.core.documents.quantities import Endpoint
from pathgauge.collector.core.otlp.batch import Origin
from pathgauge.collector.core.otlp.spans import encode_attributes
from pathgauge.collector.receivers.export import ExportService

AGENT = "pathgauge-canary"
TIMEOUT_S = 10.0
"""Time limit for the answer; the default of OpenTelemetry exporters."""

_EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_ANY_HOST = {"0.0.0.0": "127.0.0.1", "::": "::1"}

Send = Callable[[bytes], Awaitable[str | None]]
"""Sends an export request; returns `None` when it was acknowledged, else the reason."""


def export_request(trace_id: bytes) -> bytes:
    """A trace of an agent that called one tool just now, without any content."""
    agent = _span("invoke_agent", {"gen_ai.agent.name": AGENT}, trace_id)
    tool = _span("execute_tool", {"gen_ai.tool.name": "canary"}, trace_id, agent.span_id)
    resource = Resource(attributes=encode_attributes({"service.name": AGENT}))
    return ExportTraceServiceRequest(
        resource_spans=[
            ResourceSpans(resource=resource, scope_spans=[ScopeSpans(spans=[agent, tool])])
        ]
    ).SerializeToString()


def over_socket(protocols: Protocols, ports: Mapping[str, int], token: str) -> Send | None:
    """Sends to a plain-text receiver that listens on one of the `ports`. `None` when all receivers
    use TLS: the collector has no client certificates.
    """
    for_grpc, for_http = protocols.grpc, protocols.http
    if for_grpc is not None and for_grpc.tls is None:
        return over_grpc(for_grpc.endpoint._replace(port=ports["grpc"]), token)
    if for_http is not None and for_http.tls is None:
        return over_http(for_http.endpoint._replace(port=ports["http"]), token)
    return None


def over_grpc(endpoint: Endpoint, token: str) -> Send:
    """Opens a new connection for each request."""

    async def send(request: bytes) -> str | None:
        async with grpc.aio.insecure_channel(
            _reachable(endpoint), options=[("grpc.enable_http_proxy", 0)]
        ) as channel:
            export: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(_EXPORT)
            try:
                await export(
                    request, timeout=TIMEOUT_S, metadata=(("authorization", f"Bearer {token}"),)
                )
            except grpc.aio.AioRpcError as error:
                return f"{error.code().name}: {error.details()}"
        return None

    return send


def over_http(endpoint: Endpoint, token: str) -> Send:
    """Opens a new connection for each request."""
    host = _ANY_HOST.get(endpoint.host, endpoint.host)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/x-protobuf"}

    def send(request: bytes) -> str | None:
        connection = http.client.HTTPConnection(host, endpoint.port, timeout=TIMEOUT_S)
        try:
            connection.request("POST", "/v1/traces", request, headers)
            answer = connection.getresponse()
            if answer.status != 200:
                return f"{answer.status} {answer.reason}"
        except (OSError, http.client.HTTPException) as error:
            return str(error) or type(error).__name__
        finally:
            connection.close()
        return None

    return lambda request: asyncio.to_thread(send, request)


def within(service: ExportService, tenant: str) -> Send:
    """Calls the export service of a receiver directly, without a socket."""
    origin = Origin(tenant, service.transport, "traces", "protobuf")

    async def send(request: bytes) -> str | None:
        result = await service.export(origin, request)
        if result.code == "ok":
            return None
        return f"{result.code}: {result.message}"

    return send


def _reachable(endpoint: Endpoint) -> str:
    return str(endpoint._replace(host=_ANY_HOST.get(endpoint.host, endpoint.host)))


def _span(
    operation: str, attributes: dict[str, str], trace_id: bytes, parent_id: bytes = b""
) -> Span:
    now = time.time_ns()
    return Span(
        trace_id=trace_id,
        span_id=secrets.token_bytes(8),
        parent_span_id=parent_id,
        name=operation,
        start_time_unix_nano=now,
        end_time_unix_nano=now,
        attributes=encode_attributes({"gen_ai.operation.name": operation, **attributes}),
    )

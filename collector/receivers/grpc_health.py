"""The standard gRPC health service. It is open to everybody who can connect.

The health servicer of gRPC keeps the request of a `Watch` as long as that is open, whatever its
size, and has no time limit for its arrival. So requests are read here, and only small ones reach
it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import grpc
from google.protobuf.message import DecodeError
from grpc_health.v1 import health
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from pathgauge.collector.receivers.export import ReceiverLimits
from pathgauge.collector.receivers.grpc_calls import STATUS, Calls, Context, Turns
from pathgauge.collector.receivers.http_body import BodyError

MAX_REQUEST_BYTES = 256
"""Enough for the name of a service."""


class Health:
    """The health of the services of one receiver. An open `Watch` counts as an active call, but
    only against the limit of watches.
    """

    def __init__(self, limits: ReceiverLimits, turns: Turns) -> None:
        self._servicer = health.aio.HealthServicer()
        self._checks = Calls(limits, turns)
        self._watches = Calls(limits, turns)

    def add_to(self, server: grpc.aio.Server) -> None:
        """Serve `Check` and `Watch`."""
        methods: dict[str, grpc.RpcMethodHandler[bytes, HealthCheckResponse]] = {
            "Check": grpc.stream_unary_rpc_method_handler(
                self._check, None, HealthCheckResponse.SerializeToString
            ),
            "Watch": grpc.stream_stream_rpc_method_handler(
                self._watch, None, HealthCheckResponse.SerializeToString
            ),
        }
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(health.SERVICE_NAME, methods),)
        )

    async def serving(self, service: str) -> None:
        """Report a service as SERVING."""
        await self._servicer.set(service, HealthCheckResponse.SERVING)

    async def stop(self) -> None:
        """Report all services as NOT_SERVING from now on, also to open watches."""
        await self._servicer.enter_graceful_shutdown()

    async def _check(self, _: AsyncIterator[bytes], context: Context) -> HealthCheckResponse:
        try:
            with self._checks.admitted(context):
                request = await _request(self._checks, context)
        except BodyError as error:
            await _refuse(error, context)
        return await self._servicer.Check(request, context)

    async def _watch(self, _: AsyncIterator[bytes], context: Context) -> None:
        try:
            with self._watches.admitted(context):
                await self._servicer.Watch(await _request(self._watches, context), context)
        except BodyError as error:
            await _refuse(error, context)


async def _request(calls: Calls, context: Context) -> HealthCheckRequest:
    """Read a request. Raises `BodyError`."""
    body = await calls.message(context)
    if len(body) > MAX_REQUEST_BYTES:
        raise BodyError("undecodable", f"found {len(body):,} bytes, expected the name of a service")
    try:
        return HealthCheckRequest.FromString(body)
    except DecodeError as error:
        raise BodyError("undecodable", "not a HealthCheckRequest message") from error


async def _refuse(error: BodyError, context: Context) -> None:
    # Its frames hold the request, and the exception of `abort` would keep them until the next
    # garbage collection.
    error.__traceback__ = None
    await context.abort(STATUS.get(error.code, grpc.StatusCode.UNAVAILABLE), str(error))

"""The standard gRPC health service, for everybody who can connect: the name of a service in,
whether it is served out.

The servicer of gRPC keeps the request of a watch as long as that is open, whatever its size, and
lets a request take for ever to arrive. So requests are read here, and it sees those that are small.
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

LONGEST_REQUEST = 256
"""Bytes; what is asked for is the name of a service."""


class Health:
    """The health of the services of one receiver. A watch is under way as long as it is open, and
    in the way of no other call.
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
        """Say that a service is served."""
        await self._servicer.set(service, HealthCheckResponse.SERVING)

    async def stop(self) -> None:
        """Say NOT_SERVING of all services from now on, to those that watch as well."""
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
    """What is asked. Raises `BodyError`."""
    body = await calls.message(context)
    if len(body) > LONGEST_REQUEST:
        raise BodyError("undecodable", f"found {len(body):,} bytes, expected the name of a service")
    try:
        return HealthCheckRequest.FromString(body)
    except DecodeError as error:
        raise BodyError("undecodable", "not a HealthCheckRequest message") from error


async def _refuse(error: BodyError, context: Context) -> None:
    # its frames hold the request, and what `abort` raises would keep them until the next collection
    error.__traceback__ = None
    await context.abort(STATUS.get(error.code, grpc.StatusCode.UNAVAILABLE), str(error))

"""gRPC stops its server when a method name is not UTF-8. The receiver continues, and no active call
is lost.
"""

from __future__ import annotations

import asyncio

import grpc

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.receivers import grpc as receivers_grpc
from pathgauge.collector.receivers.grpc import TRACE_SERVICE, GrpcReceiver
from support import http2
from support.wire import group, span

BAD_METHOD = http2.hello() + http2.headers().replace(b"Export", b"Exp\xffrt")


def give_up(port: int) -> None:
    with http2.Connection(port) as connection:
        connection.send(BAD_METHOD)
        connection.finish()
        list(connection.frames())


async def export(port: int) -> bytes:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            f"/{TRACE_SERVICE}/Export"
        )
        return await call(group(span()), wait_for_ready=True, timeout=10)


async def test_the_receiver_goes_on_and_answers_what_is_under_way() -> None:
    entered, room = asyncio.Event(), asyncio.Event()

    async def accept(batch: Batch) -> bool:
        entered.set()
        return await room.wait()

    receiver = GrpcReceiver("127.0.0.1:0", accept, InternalTelemetry())
    await receiver.start()
    port = receiver.port
    try:
        under_way = asyncio.create_task(export(port))
        await entered.wait()
        for _ in range(2):
            await asyncio.to_thread(give_up, port)
            await asyncio.sleep(2 * receivers_grpc.WATCH_S)
        later = asyncio.create_task(export(port))
        room.set()
        assert (await under_way, await later, receiver.port) == (b"", b"", port)
    finally:
        await receiver.stop(1)

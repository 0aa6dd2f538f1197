"""The gRPC health service: its answers, and the limits on its requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest, HealthCheckResponse

from pathgauge.collector.receivers import grpc_calls
from pathgauge.collector.receivers.export import ReceiverLimits
from pathgauge.collector.receivers.grpc import LOGS_SERVICE, TRACE_SERVICE, GrpcReceiver
from support.intake import Intake
from support.running import PATIENCE_S, Collector

CHECK, WATCH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
SERVING, NOT_SERVING = (
    HealthCheckResponse(status=HealthCheckResponse.SERVING),
    HealthCheckResponse(status=HealthCheckResponse.NOT_SERVING),
)
UNKNOWN = HealthCheckResponse(status=HealthCheckResponse.SERVICE_UNKNOWN)
MESSAGE_S = 0.5
CALLS = 20
LARGE = 15_900_000
MAX_GROWTH = 256 << 20


class Client:
    """A receiver, and a client of its health service."""

    def __init__(self, message_s: float = PATIENCE_S) -> None:
        """`message_s` is the time limit for a message."""
        self.intake = Intake()
        self.receiver = GrpcReceiver(
            "127.0.0.1:0",
            self.intake.accept,
            self.intake.telemetry,
            ReceiverLimits(body_timeout_s=message_s),
        )

    async def start(self) -> None:
        await self.receiver.start()
        self.channel = grpc.aio.insecure_channel(f"127.0.0.1:{self.receiver.port}")
        self.health: Any = health_pb2_grpc.HealthStub(self.channel)

    def watch(self, service: str = "") -> Any:
        return self.health.Watch(HealthCheckRequest(service=service))

    async def check(self, service: str = "") -> HealthCheckResponse | grpc.StatusCode:
        try:
            answer: HealthCheckResponse = await self.health.Check(
                HealthCheckRequest(service=service)
            )
        except grpc.aio.AioRpcError as error:
            return error.code()
        return answer


@asynccontextmanager
async def running(client: Client) -> AsyncIterator[Client]:
    await client.start()
    yield client
    await client.channel.close()
    await client.receiver.stop(0)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with running(Client()) as started:
        yield started


@pytest.fixture
async def hurried() -> AsyncIterator[Client]:
    """Messages must arrive soon."""
    async with running(Client(MESSAGE_S)) as started:
        yield started


@pytest.mark.parametrize("service", ["", TRACE_SERVICE, LOGS_SERVICE])
async def test_health_is_serving_until_the_stop(client: Client, service: str) -> None:
    watch = client.watch(service)
    assert (await watch.read(), await client.check(service)) == (SERVING, SERVING)
    stop = asyncio.create_task(client.receiver.stop(0.05))
    assert await watch.read() == NOT_SERVING
    await stop


async def test_a_service_that_nobody_knows_is_told_apart(client: Client) -> None:
    assert (await client.watch("nobody").read(), await client.check("nobody")) == (
        UNKNOWN,
        grpc.StatusCode.NOT_FOUND,
    )


@pytest.mark.parametrize("method", [CHECK, WATCH])
@pytest.mark.parametrize(
    "body",
    [HealthCheckRequest(service="x" * 300).SerializeToString(), b"\xff"],
    ids=["long", "noise"],
)
async def test_what_names_no_service_is_refused(client: Client, method: str, body: bytes) -> None:
    begin: Any = client.channel.stream_stream(method)
    assert await begin(iter([body])).code() == grpc.StatusCode.INVALID_ARGUMENT


@pytest.mark.parametrize("method", [CHECK, WATCH])
async def test_a_request_that_does_not_arrive_is_cut_off(hurried: Client, method: str) -> None:
    call: Any = hurried.channel.stream_stream(method)()
    assert await asyncio.wait_for(call.code(), PATIENCE_S) == grpc.StatusCode.DEADLINE_EXCEEDED


async def test_a_watch_outlives_the_time_for_its_request(hurried: Client) -> None:
    watch = hurried.watch()
    assert await watch.read() == SERVING
    await asyncio.wait([asyncio.ensure_future(watch.code())], timeout=2 * MESSAGE_S)
    assert not watch.done()


async def test_watches_are_in_the_way_of_watches_alone_and_give_back_their_places(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_calls, "MAX_ACTIVE_OF_PEER", 2)
    watches = [client.watch() for _ in range(2)]
    assert [await watch.read() for watch in watches] == [SERVING, SERVING]
    assert await asyncio.wait_for(client.watch().code(), PATIENCE_S) == grpc.StatusCode.UNAVAILABLE
    export: Any = client.channel.unary_unary(f"/{TRACE_SERVICE}/Export")
    assert (await client.check(), await export(b"")) == (SERVING, b"")
    watches[0].cancel()
    async with asyncio.timeout(PATIENCE_S):
        while await (again := client.watch()).read() != SERVING:
            assert await again.code() == grpc.StatusCode.UNAVAILABLE


@pytest.mark.slow
def test_requests_as_large_as_they_may_be_cost_little_memory(tmp_path: Path) -> None:
    options = [("grpc.max_send_message_length", -1)]
    with Collector(tmp_path) as collector:
        with grpc.insecure_channel(
            f"127.0.0.1:{collector.ports['grpc']}", options, grpc.Compression.Gzip
        ) as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            assert health.Check(HealthCheckRequest()) == SERVING
            before = collector.peak_memory()
            for number in range(CALLS):
                watch = health.Watch(
                    HealthCheckRequest(service=f"{number}" + "x" * LARGE), timeout=PATIENCE_S
                )
                assert watch.code() == grpc.StatusCode.INVALID_ARGUMENT
        assert collector.peak_memory() - before < MAX_GROWTH

"""Near the memory limit, receivers refuse requests before they take memory, and ask for a retry."""

from __future__ import annotations

import asyncio
import gc
import http.client
import mmap
from collections.abc import AsyncIterator
from contextlib import ExitStack
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from grpc_health.v1 import health_pb2_grpc
from grpc_health.v1.health_pb2 import HealthCheckRequest

from pathgauge.collector.core.otlp import DecodeLimits
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.receivers.export import ExportService, ReceiverLimits
from pathgauge.collector.receivers.grpc import TRACE_SERVICE, GrpcReceiver
from pathgauge.collector.receivers.http import HttpReceiver
from pathgauge.collector.receivers.http_body import BodyError, BodyReader
from pathgauge.collector.receivers.memory_guard import (
    Ceiling,
    Kind,
    MemoryGuard,
    MemoryUse,
    NoMemoryError,
)
from support.intake import Intake
from support.wire import group, span

MiB = 1 << 20
BODY = group(span("a"))


class Machine:
    """A process that uses as much memory as it is told, and a guard of it."""

    def __init__(self, *ceilings: Ceiling, freed_by_trim: int = 0) -> None:
        self.used: dict[Kind, int] = dict.fromkeys(("resident", "address_space"), 0)
        self.refused = self.trimmed = 0
        self.now = 0.0
        self._freed_by_trim = freed_by_trim
        self.guard = MemoryGuard(
            ceilings or [Ceiling("resident", 100)],
            self.used.__getitem__,
            self._refuse,
            trim=self._trim,
            now=lambda: self.now,
        )

    def _refuse(self) -> None:
        self.refused += 1

    def _trim(self) -> None:
        self.trimmed += 1
        self.used["resident"] -= self._freed_by_trim


def test_what_fits_below_the_ceiling_is_admitted() -> None:
    machine = Machine()
    machine.used["resident"] = 60
    machine.guard.check(40)
    with pytest.raises(NoMemoryError):
        machine.guard.check(41)
    assert (machine.guard.fits(), machine.refused) == (True, 1)
    machine.used["resident"] = 101
    assert not machine.guard.fits()


def test_every_ceiling_counts() -> None:
    machine = Machine(Ceiling("resident", 100), Ceiling("address_space", 300))
    machine.used |= {"resident": 10, "address_space": 290}
    assert (machine.guard.fits(10), machine.guard.fits(11)) == (True, False)
    machine.used |= {"resident": 95, "address_space": 0}
    assert (machine.guard.fits(5), machine.guard.fits(6)) == (True, False)


def test_without_a_ceiling_everything_fits() -> None:
    guard = MemoryGuard()
    with guard.reserved(1 << 60):
        guard.check(1 << 60)


def test_what_is_reserved_is_left_to_its_request_until_that_ends() -> None:
    machine = Machine()
    with machine.guard.reserved(60):
        assert (machine.guard.fits(40), machine.guard.fits(41)) == (True, False)
        with pytest.raises(NoMemoryError), machine.guard.reserved(41):
            raise AssertionError("it does not fit")
        with pytest.raises(KeyError), machine.guard.reserved(40):
            raise KeyError
        assert machine.guard.fits(40)
    assert machine.guard.fits(100)


def test_free_memory_is_returned_to_the_system_before_a_refusal_but_not_all_the_time() -> None:
    machine = Machine(freed_by_trim=5)
    machine.used["resident"] = 98
    machine.guard.check(5)
    assert (machine.used["resident"], machine.refused, machine.trimmed) == (93, 0, 1)
    for now, trimmed in ((0.9, 1), (1.0, 2), (1.9, 2)):
        machine.now = now
        machine.used["resident"] = 200
        with pytest.raises(NoMemoryError):
            machine.guard.check(0)
        assert machine.trimmed == trimmed
    assert machine.refused == 3


def test_the_memory_of_this_process_is_measured_in_bytes() -> None:
    use = MemoryUse()
    kinds: tuple[Kind, ...] = ("resident", "address_space", "data")
    gc.disable()
    try:
        before = {kind: use(kind) for kind in kinds}
        with ExitStack() as stack:
            used = stack.enter_context(mmap.mmap(-1, 64 * MiB, mmap.MAP_PRIVATE))
            used.write(bytes(64 * MiB))
            stack.enter_context(mmap.mmap(-1, 256 * MiB, mmap.MAP_PRIVATE))
            growth = {kind: (use(kind) - before[kind]) / MiB for kind in kinds}
    finally:
        gc.enable()
    assert growth["resident"] == pytest.approx(64, abs=8)
    assert growth["address_space"] == pytest.approx(320, abs=8)
    assert growth["data"] == pytest.approx(320, abs=8)


class Receivers:
    """Both receivers of a process near its limit."""

    def __init__(self) -> None:
        self.intake, self.machine = Intake(), Machine(Ceiling("resident", 100 * MiB))
        limits = ReceiverLimits(max_request_bytes=MiB, memory=self.machine.guard)
        self.http = HttpReceiver("127.0.0.1:0", self.intake.accept, self.intake.telemetry, limits)
        self.grpc = GrpcReceiver("127.0.0.1:0", self.intake.accept, self.intake.telemetry, limits)

    async def post(self, body: bytes) -> tuple[int, str | None]:
        """Status and `Retry-After`."""

        def post() -> tuple[int, str | None]:
            connection = http.client.HTTPConnection("127.0.0.1", self.http.port, timeout=5)
            headers = {"Content-Type": "application/x-protobuf"}
            connection.request("POST", "/v1/traces", body, headers)
            answer = connection.getresponse()
            answer.read()
            connection.close()
            return answer.status, answer.getheader("Retry-After")

        return await asyncio.to_thread(post)

    async def call(self, body: bytes) -> tuple[grpc.StatusCode, float | None]:
        """Code and retry delay."""
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self.grpc.port}") as channel:
            export: Any = channel.unary_unary(f"/{TRACE_SERVICE}/Export")
            try:
                await export(body)
            except grpc.aio.AioRpcError as error:
                trailers = dict(error.trailing_metadata())
                [detail] = Status.FromString(trailers["grpc-status-details-bin"]).details
                retry = RetryInfo()
                detail.Unpack(retry)
                return error.code(), retry.retry_delay.ToMilliseconds() / 1000
        return grpc.StatusCode.OK, None

    async def is_healthy(self) -> bool:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{self.grpc.port}") as channel:
            health: Any = health_pb2_grpc.HealthStub(channel)
            answer = await health.Check(HealthCheckRequest())
            return bool(answer.status == answer.SERVING)


@pytest.fixture(name="receivers")
async def _receivers() -> AsyncIterator[Receivers]:
    started = Receivers()
    await started.http.start()
    await started.grpc.start()
    yield started
    await started.http.stop(0)
    await started.grpc.stop(0)


async def test_near_the_limit_senders_are_told_to_retry_until_memory_is_free_again(
    receivers: Receivers,
) -> None:
    receivers.machine.used["resident"] = 100 * MiB
    assert await receivers.post(BODY) == (429, "1")
    assert await receivers.call(BODY) == (grpc.StatusCode.UNAVAILABLE, 1.0)
    assert await receivers.is_healthy()
    assert receivers.intake.names() == []
    requests = receivers.intake.telemetry.requests
    assert dict(requests.items()) == {
        ("http", "traces", "busy"): 1,
        ("grpc", "traces", "busy"): 1,
    }
    assert receivers.machine.refused == 2
    receivers.machine.used["resident"] = 0
    assert await receivers.post(BODY) == (200, None)
    assert await receivers.call(BODY) == (grpc.StatusCode.OK, None)
    assert receivers.machine.guard.fits(100 * MiB)


async def test_a_grpc_message_of_unknown_size_needs_memory_for_the_largest_one(
    receivers: Receivers,
) -> None:
    receivers.machine.used["resident"] = 98 * MiB
    assert (await receivers.call(BODY))[0] == grpc.StatusCode.OK
    receivers.machine.used["resident"] += 1
    assert (await receivers.call(BODY))[0] == grpc.StatusCode.UNAVAILABLE
    assert (await receivers.post(BODY))[0] == 200


async def test_a_body_is_refused_while_it_arrives() -> None:
    machine, taken = Machine(), []

    async def chunks() -> AsyncIterator[bytes]:
        for number in range(4):
            machine.used["resident"] = 30 * number
            taken.append(number)
            yield bytes(30)

    reader = BodyReader(ReceiverLimits(memory=machine.guard, max_held_bytes=120))
    with pytest.raises(BodyError, match="the memory limit is near, try again") as caught:
        async with reader.read(chunks()):
            raise AssertionError("it was read")
    assert (caught.value.code, machine.refused, taken) == ("busy", 1, [0, 1, 2, 3])
    machine.used["resident"] = 0
    async with reader.read(chunks_of(bytes(90))) as body:
        assert len(body) == 90


async def chunks_of(body: bytes) -> AsyncIterator[bytes]:
    yield body


GRPC, JSON = Origin("", "grpc", "traces", "protobuf"), Origin("", "http", "traces", "json")


@pytest.mark.parametrize(
    ("origin", "body", "needed"),
    [
        pytest.param(
            GRPC, group(span("n" * 1000)), 4 * len(group(span("n" * 1000))), id="protobuf"
        ),
        pytest.param(JSON, b"{}" + b" " * 98, 2000, id="JSON"),
        pytest.param(JSON, b"{}" + b" " * 1998, 160 * 50, id="JSON that may not have more tokens"),
    ],
)
async def test_decoding_reserves_the_memory_that_it_may_need(
    origin: Origin, body: bytes, needed: int
) -> None:
    machine, intake = Machine(Ceiling("resident", needed)), Intake()
    limits = ReceiverLimits(memory=machine.guard, records=DecodeLimits(max_json_tokens=50))
    service = ExportService("grpc", intake.accept, intake.telemetry, limits)
    assert (await service.export(origin, body)).code == "ok"
    machine.used["resident"] = 1
    assert (await service.export(origin, body)).code == "busy"
    assert (machine.refused, machine.guard.fits(needed - 1)) == (1, True)


async def test_nothing_stays_reserved_while_a_request_becomes_durable() -> None:
    machine = Machine(Ceiling("resident", 10 * MiB))
    entered, leave = asyncio.Event(), asyncio.Event()

    async def accept(_: Batch) -> bool:
        entered.set()
        return await leave.wait()

    service = ExportService(
        "grpc", accept, Intake().telemetry, ReceiverLimits(memory=machine.guard)
    )
    export = asyncio.create_task(service.export(GRPC, BODY))
    await entered.wait()
    assert machine.guard.fits(10 * MiB)
    leave.set()
    assert (await export).code == "ok"


async def test_undecodable_requests_give_their_memory_back() -> None:
    machine, intake = Machine(Ceiling("resident", MiB)), Intake()
    service = ExportService(
        "grpc", intake.accept, intake.telemetry, ReceiverLimits(memory=machine.guard)
    )
    assert (await service.export(GRPC, b"\xff" * 100)).code == "undecodable"
    assert machine.guard.fits(MiB)

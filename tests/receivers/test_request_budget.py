"""Requests of one receiver share a memory limit, and small ones do not wait for large ones."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch, Origin
from pathgauge.collector.receivers.export import ExportService, ReceiverLimits
from support.wire import group, span

PROTOBUF, JSON = Origin("", "grpc", "traces", "protobuf"), Origin("", "http", "traces", "json")


class Gate:
    """Accepts batches once it is open."""

    def __init__(self) -> None:
        self.open = asyncio.Event()
        self.waiting = asyncio.Semaphore(0)

    async def accept(self, batch: Batch) -> bool:
        self.waiting.release()
        return await self.open.wait()


def request(size: int) -> bytes:
    """A request of so many bytes with one span."""
    empty = len(group(span("n" * 200)))
    return group(span("n" * (200 + size - empty)))


async def test_requests_share_their_memory_until_they_are_answered() -> None:
    gate, telemetry = Gate(), InternalTelemetry()
    service = ExportService("grpc", gate.accept, telemetry, ReceiverLimits(max_held_bytes=1000))
    held = [asyncio.create_task(service.export(PROTOBUF, request(500))) for _ in range(2)]
    await gate.waiting.acquire()
    await gate.waiting.acquire()
    assert (await service.export(PROTOBUF, request(300))).code == "busy"
    gate.open.set()
    assert [(await task).code for task in held] == ["ok", "ok"]
    assert (await service.export(PROTOBUF, request(1000))).code == "ok"
    assert telemetry.requests.items() == [
        (("grpc", "traces", "busy"), 1),
        (("grpc", "traces", "ok"), 3),
    ]


@pytest.mark.parametrize("body", [request(1001), b"\xff" * 1001], ids=["valid", "undecodable"])
async def test_a_request_alone_always_has_room_and_gives_it_back(body: bytes) -> None:
    gate = Gate()
    gate.open.set()
    service = ExportService(
        "grpc", gate.accept, InternalTelemetry(), ReceiverLimits(max_held_bytes=1000)
    )
    assert "busy" not in [(await service.export(PROTOBUF, body)).code for _ in range(2)]


async def test_a_small_request_in_json_does_not_wait_for_a_large_one() -> None:
    gate = Gate()
    gate.open.set()
    service = ExportService("http", gate.accept, InternalTelemetry(), ReceiverLimits())
    one = {"traceId": "01" * 16, "spanId": "02" * 8, "name": "chat"}
    large, small = (
        orjson.dumps({"resourceSpans": [{"scopeSpans": [{"spans": [one] * number}]}]})
        for number in (5_000, 1)
    )
    first = asyncio.create_task(service.export(JSON, large))
    await asyncio.sleep(0)
    assert (await service.export(JSON, small)).code == "ok"
    assert not first.done()
    assert (await first).code == "ok"

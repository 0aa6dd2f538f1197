"""The answers to a gRPC client, byte by byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span
from structlog.testing import capture_logs

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.receivers import grpc_calls
from pathgauge.collector.receivers.export import ReceiverLimits
from pathgauge.collector.receivers.grpc import LOGS_SERVICE, TRACE_SERVICE, GrpcReceiver
from support.intake import Intake

LIMITS = ReceiverLimits(max_request_bytes=64 * 1024, body_grace_s=0.2)


class Peer(Intake):
    """A receiver, the batches that it accepted, and a client."""

    def __init__(self, max_arriving: int = 64) -> None:
        super().__init__()
        self.receiver = GrpcReceiver(
            "127.0.0.1:0",
            self.accept,
            self.telemetry,
            replace(LIMITS, max_arriving=max_arriving),
            retry_after=1.5,
        )

    async def export(
        self, body: bytes, service: str = TRACE_SERVICE, compression: grpc.Compression | None = None
    ) -> bytes:
        async with self.channel() as channel:
            call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
                f"/{service}/Export"
            )
            return await call(body, compression=compression)

    async def refusal(
        self, body: bytes, compression: grpc.Compression | None = None
    ) -> grpc.aio.AioRpcError:
        with pytest.raises(grpc.aio.AioRpcError) as error:
            await self.export(body, compression=compression)
        return error.value

    def channel(self) -> grpc.aio.Channel:
        return grpc.aio.insecure_channel(f"127.0.0.1:{self.receiver.port}")


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    started = Peer()
    await started.receiver.start()
    yield started
    await started.receiver.stop(0)


def span(name: str) -> Span:
    return Span(trace_id=b"\x01" * 16, span_id=b"\x02" * 8, name=name)


def request(*spans: Span) -> bytes:
    return ExportTraceServiceRequest(
        resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])]
    ).SerializeToString()


async def test_success_is_an_empty_response(peer: Peer) -> None:
    body = request(span("a"), span("b"))
    assert await peer.export(body) == b""
    assert (peer.names(), peer.batches[0].body) == (["a", "b"], body)


async def test_an_empty_request_is_a_success_that_nobody_needs_to_accept(peer: Peer) -> None:
    peer.answer = False
    assert await peer.export(b"") == b""
    assert peer.telemetry.requests.items() == [(("grpc", "traces", "ok"), 1)]


async def test_rejected_spans_are_a_partial_success_and_their_neighbours_arrive(peer: Peer) -> None:
    body = request(span("before"), span("poison"), Span(name="no ids"), span("after")).replace(
        b"poison", b"\xff" * 6
    )
    partial = ExportTraceServiceResponse.FromString(
        await peer.export(body, compression=grpc.Compression.Gzip)
    ).partial_success
    assert peer.names() == ["before", "after"]
    assert partial.rejected_spans == 2
    assert (
        partial.error_message
        == "rejected 2: undecodable 1, invalid_id 1; first: not a valid Span message"
    )
    assert peer.telemetry.accepted.items() == [(("grpc", "protobuf"), 2)]
    assert peer.telemetry.refused.items() == [
        (("grpc", "undecodable"), 1),
        (("grpc", "invalid_id"), 1),
    ]
    assert peer.telemetry.requests.items() == [(("grpc", "traces", "partial_success"), 1)]


async def test_rejected_log_records_are_a_partial_success(peer: Peer) -> None:
    logs = [LogRecord(trace_id=b"\x01" * 16, event_name="good"), LogRecord(event_name="poison")]
    body = ExportLogsServiceRequest(
        resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=logs)])]
    ).SerializeToString()
    response = await peer.export(body.replace(b"poison", b"\xff" * 6), LOGS_SERVICE)
    assert ExportLogsServiceResponse.FromString(response).partial_success.rejected_log_records == 1
    assert [record.event_name for batch in peer.batches for record in batch.logs] == ["good"]
    assert peer.telemetry.accepted_logs.items() == [(("grpc", "protobuf"), 1)]
    assert peer.telemetry.refused_logs.items() == [(("grpc", "undecodable"), 1)]


@pytest.mark.parametrize(
    ("body", "compression", "code", "details"),
    [
        pytest.param(b"\xff" * 30, None, "undecodable", "not a protobuf message", id="noise"),
        pytest.param(b"{}", None, "undecodable", "not a protobuf message", id="JSON"),
        pytest.param(
            request(span("a"))[:-1], None, "undecodable", "not a protobuf message", id="cut off"
        ),
        pytest.param(bytes(70_000), None, "too_large", "larger than max", id="oversized"),
        pytest.param(
            bytes(70_000), grpc.Compression.Gzip, "too_large", "larger than max", id="gzip bomb"
        ),
    ],
)
async def test_what_would_fail_again_is_refused_for_good(
    peer: Peer, body: bytes, compression: grpc.Compression | None, code: str, details: str
) -> None:
    error = await peer.refusal(body, compression)
    assert (
        error.code()
        == {
            "undecodable": grpc.StatusCode.INVALID_ARGUMENT,
            "too_large": grpc.StatusCode.RESOURCE_EXHAUSTED,
        }[code]
    )
    assert details in (error.details() or "")
    assert retry_delays(error) == {}
    assert peer.telemetry.requests.items() == [(("grpc", "traces", code), 1)]


@pytest.mark.parametrize("answer", [False, RuntimeError("disk on fire")], ids=["busy", "failed"])
async def test_trouble_on_our_side_asks_for_a_retry_in_both_places_where_senders_look(
    peer: Peer, answer: bool | Exception
) -> None:
    peer.answer = answer
    error = await peer.refusal(request(span("a"), Span()))
    assert error.code() == grpc.StatusCode.UNAVAILABLE
    assert retry_delays(error) == {"details": 1.5, "python": 1.5}
    assert (peer.telemetry.accepted.total(), peer.telemetry.refused.total()) == (0, 0)


async def test_an_unexpected_error_is_logged_and_counted_and_keeps_its_text_from_the_sender(
    peer: Peer,
) -> None:
    peer.answer = RuntimeError("disk on fire")
    with capture_logs() as logs:
        error = await peer.refusal(request(span("a")))
    assert [(line["log_level"], line["transport"], line["signal"]) for line in logs] == [
        ("error", "grpc", "traces")
    ]
    assert error.details() == "internal error, try again"
    assert peer.telemetry.requests.items() == [(("grpc", "traces", "failed"), 1)]


async def test_requests_beyond_the_limit_are_told_to_retry_before_they_are_read(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_calls, "MAX_ACTIVE", 1)
    async with peer.channel() as channel:
        under_way, busy = await in_the_way(peer, channel)
        assert retry_delays(busy) == {"details": 1.5, "python": 1.5}
        await under_way.write(request(span("under way")))
        await under_way.done_writing()
        assert await under_way == b""
    assert await peer.export(request(span("next"))) == b""
    assert peer.names()[-2:] == ["under way", "next"]


async def test_a_sender_that_hangs_up_leaves_room_for_others(
    peer: Peer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_calls, "MAX_ACTIVE", 1)
    async with peer.channel() as channel:
        call, _ = await in_the_way(peer, channel)
        call.cancel()
        await answered(peer, grpc.StatusCode.OK)


async def in_the_way(peer: Peer, channel: grpc.aio.Channel) -> tuple[Any, grpc.aio.AioRpcError]:
    """An active call that uses up the limit, and the refusal of another. If an export was active
    first, the call itself is refused.
    """
    for _ in range(10):
        call = channel.stream_unary(f"/{TRACE_SERVICE}/Export")()  # type: ignore[var-annotated]
        with suppress(TimeoutError):
            async with asyncio.timeout(1):
                return call, await answered(peer, grpc.StatusCode.UNAVAILABLE)
        call.cancel()
    raise AssertionError("no call was ever in the way of others")


async def answered(peer: Peer, code: grpc.StatusCode) -> grpc.aio.AioRpcError:
    """Export until the answer has this code."""
    async with asyncio.timeout(5):
        while True:
            try:
                await peer.export(b"")
                answer = grpc.aio.AioRpcError(
                    grpc.StatusCode.OK, grpc.aio.Metadata(), grpc.aio.Metadata()
                )
            except grpc.aio.AioRpcError as error:
                answer = error
            if answer.code() == code:
                return answer
            await asyncio.sleep(0.01)


async def test_a_message_that_does_not_arrive_is_cut_off() -> None:
    intake = Intake()
    receiver = GrpcReceiver(
        "127.0.0.1:0", intake.accept, intake.telemetry, ReceiverLimits(body_timeout_s=0.05)
    )
    await receiver.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{receiver.port}") as channel:
        call = channel.stream_unary(f"/{TRACE_SERVICE}/Export")()  # type: ignore[var-annotated]
        assert await asyncio.wait_for(call.code(), 5) == grpc.StatusCode.DEADLINE_EXCEEDED
        assert await call.details() == "the message did not arrive within 0.05 s"
    assert intake.telemetry.requests.items() == [(("grpc", "traces", "too_slow"), 1)]
    await receiver.stop(0)


@pytest.mark.parametrize(
    ("max_arriving", "of_peer"), [(1, 8), (64, 1), (2, 8)], ids=["all", "peer", "half of all"]
)
async def test_messages_wait_their_turn_to_be_read(
    max_arriving: int, of_peer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grpc_calls, "MAX_ARRIVING_OF_PEER", of_peer)
    peer = Peer(max_arriving)
    await peer.receiver.start()
    async with peer.channel() as channel:
        under_way, busy = await in_the_way(peer, channel)
        assert retry_delays(busy) == {"details": 1.5, "python": 1.5}
        waiting = asyncio.create_task(peer.export(request(span("next"))))
        await under_way.write(request(span("under way")))
        assert (await under_way, await waiting) == (b"", b"")
    assert peer.names()[-2:] == ["under way", "next"]
    await peer.receiver.stop(0)


def retry_delays(error: grpc.aio.AioRpcError) -> dict[str, float]:
    """The retry delay in seconds: from the status details, which most clients read, and from where
    the Python exporter reads it.
    """
    trailers = dict(error.trailing_metadata())
    delays = {}
    if details := trailers.get("grpc-status-details-bin"):
        status, retry = Status.FromString(details), RetryInfo()
        assert (status.code, status.message) == (error.code().value[0], error.details())
        assert status.details[0].Unpack(retry)
        delays["details"] = retry.retry_delay.ToMilliseconds() / 1000
    if info := trailers.get("google.rpc.retryinfo-bin"):
        delays["python"] = RetryInfo.FromString(info).retry_delay.ToMilliseconds() / 1000
    return delays


async def test_a_request_under_way_is_answered_before_the_stop() -> None:
    entered, room = asyncio.Event(), asyncio.Event()

    async def accept(batch: Batch) -> bool:
        entered.set()
        return await room.wait()

    receiver = GrpcReceiver("127.0.0.1:0", accept, InternalTelemetry())
    await receiver.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{receiver.port}") as channel:
        call: grpc.aio.UnaryUnaryMultiCallable[bytes, bytes] = channel.unary_unary(
            f"/{TRACE_SERVICE}/Export"
        )
        answer = asyncio.ensure_future(call(request(span("a"))))
        await entered.wait()
        stop = asyncio.create_task(receiver.stop(5))
        done, _ = await asyncio.wait({answer, stop}, timeout=0.05)
        assert done == set()
        room.set()
        assert await answer == b""
        await stop


async def test_a_port_in_use_is_an_error_that_names_the_endpoint(peer: Peer) -> None:
    endpoint = f"127.0.0.1:{peer.receiver.port}"
    second = GrpcReceiver(endpoint, peer.accept, InternalTelemetry())
    with pytest.raises(OSError, match=f"cannot listen on {endpoint}: Address already in use"):
        await second.start()
    await second.stop(0)


async def test_stopping_twice_is_harmless(peer: Peer) -> None:
    await peer.receiver.stop(0)
    await peer.receiver.stop(0)

"""The log says who sends what is refused for good, without anything of its content."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from structlog.testing import capture_logs
from structlog.typing import EventDict

from pathgauge.collector.receivers.auth.tenants import Credentials, RefusedError
from pathgauge.collector.receivers.export import ReceiverLimits
from pathgauge.collector.receivers.grpc import TRACE_SERVICE, GrpcReceiver
from pathgauge.collector.receivers.http import HttpReceiver
from pathgauge.collector.receivers.refused_requests import (
    LOG_INTERVAL_S,
    MAX_KINDS,
    RefusedRequests,
    Sender,
)
from support.intake import Intake

SECRET = b"nothing of this is logged"
LIMITS = ReceiverLimits(max_request_bytes=1000)
KNOWN = {"log_level": "warning", "signal": "traces", "requests": 1}
REFUSED = "export request refused, senders do not retry this"


def acme(credentials: Credentials) -> str:
    if not credentials.authorization:
        raise RefusedError("unauthenticated", "found no credentials")
    return "acme"


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"])
async def test_refused_senders_over_grpc_are_logged_with_address_program_and_tenant(
    host: str,
) -> None:
    intake = Intake()
    receiver = GrpcReceiver(f"{host}:0", intake.accept, intake.telemetry, LIMITS, authenticate=acme)
    await receiver.start()

    async def send(body: bytes, **metadata: str) -> None:
        with pytest.raises(grpc.aio.AioRpcError):
            await call(body, metadata=tuple(metadata.items()))

    options = [("grpc.primary_user_agent", "my-agent/1.0")]
    with capture_logs() as logs:
        async with grpc.aio.insecure_channel(f"{host}:{receiver.port}", options=options) as channel:
            call: Any = channel.unary_unary(f"/{TRACE_SERVICE}/Export")
            for body in (SECRET, SECRET * 100, SECRET):
                await send(body, authorization="Bearer " + SECRET.decode())
            await send(SECRET)
        await receiver.stop(0)
    agents = [str(line.pop("user_agent")) for line in logs]
    assert [agent.partition(" ")[0] for agent in agents] == ["my-agent/1.0"] * 3
    known = {**KNOWN, "event": REFUSED, "transport": "grpc", "peer": host.strip("[]")}
    assert logs == [
        {**known, "code": "undecodable", "tenant": "acme"},
        {**known, "code": "too_large", "tenant": "acme"},
        {**known, "code": "unauthenticated"},
    ]


async def test_refused_senders_over_http_are_logged_with_address_program_and_tenant() -> None:
    intake = Intake()
    receiver = HttpReceiver(
        "127.0.0.1:0", intake.accept, intake.telemetry, LIMITS, authenticate=acme
    )
    await receiver.start()
    with capture_logs() as logs:
        for head, body in (
            ("content-type: application/json", SECRET),
            ("content-type: application/json", SECRET * 100),
            ("content-type: text/plain", SECRET),
            ("content-type: application/x-protobuf", b"\x0a\x04\x12\x02\x12\x00"),
        ):
            await post(receiver.port, f"{head}\r\nauthorization: Bearer {SECRET.decode()}", body)
        await post(receiver.port, "content-type: application/json", SECRET)
        await receiver.stop(0)
    known = {**KNOWN, "transport": "http", "peer": "127.0.0.1", "user_agent": "my-agent/1.0"}
    assert logs == [
        {**known, "event": REFUSED, "code": "undecodable", "tenant": "acme"},
        {**known, "event": REFUSED, "code": "too_large", "tenant": "acme"},
        {**known, "event": REFUSED, "code": "unsupported", "tenant": "acme"},
        {
            **known,
            "event": "records refused, senders do not retry this",
            "code": "partial_success",
            "tenant": "acme",
        },
        {**known, "event": REFUSED, "code": "unauthenticated"},
    ]


async def test_who_posts_to_a_path_that_does_not_exist_is_logged_but_no_probe_and_no_metrics() -> (
    None
):
    intake = Intake()
    receiver = HttpReceiver("127.0.0.1:0", intake.accept, intake.telemetry, LIMITS)
    await receiver.start()
    protobuf = "content-type: application/x-protobuf"
    with capture_logs() as logs:
        for request in (
            "POST /api/%1b[2J/v1/traces?key=1",
            "POST /v1/trace?key=1",
            "GET /",
            "POST /v1/metrics",
        ):
            await post(receiver.port, protobuf, SECRET, request)
        await receiver.stop(0)
    assert logs == [
        {
            "log_level": "warning",
            "event": REFUSED,
            "code": "not_found",
            "path": "/api/*/v1/traces",
            "requests": 1,
            "transport": "http",
            "peer": "127.0.0.1",
            "user_agent": "my-agent/1.0",
        }
    ]


async def post(port: int, head: str, body: bytes, request: str = "POST /v1/traces") -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        f"{request} HTTP/1.1\r\nhost: a\r\nuser-agent: my-agent/1.0\r\n{head}\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n".encode()
    )
    writer.write(body)
    await reader.read()
    writer.close()


def test_senders_without_end_do_not_fill_the_log_and_their_names_are_short_and_printable() -> None:
    now = [0.0]
    refused = RefusedRequests("http", lambda: now[0])

    def lines() -> list[EventDict]:
        with capture_logs() as logs:
            for number in range(2 * MAX_KINDS):
                for _ in range(2):
                    sender = Sender(f"192.0.2.{number}", "\x1b[2J" + "x" * 1000)
                    refused.note(sender, "undecodable", signal="traces")
        return logs

    first = lines()
    assert len(first) == MAX_KINDS
    assert {line["user_agent"] for line in first} == {"?[2J" + "x" * 96}
    now[0] = LOG_INTERVAL_S
    assert [line["requests"] for line in lines()] == [2] * MAX_KINDS

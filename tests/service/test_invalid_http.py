"""Requests that are not valid HTTP, to both HTTP servers of the service."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio

from pathgauge.collector import config
from pathgauge.collector.service.service import Service
from support.running import FREE_PORTS
from support.turns import otlp, script, turn

BODY = otlp(turn(script("")))
POST = (
    b"POST /v1/traces HTTP/1.1\r\nHost: here\r\nContent-Type: application/x-protobuf\r\n"
    b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
    % (len(BODY), len(BODY), BODY)
)
GET = b"GET /readyz HTTP/1.1\nHost: here\n\n"


@pytest_asyncio.fixture(name="service")
async def _service(tmp_path: Path) -> AsyncIterator[Service]:
    path = tmp_path / "pathgauge.yaml"
    path.write_text(json.dumps(FREE_PORTS))
    service = Service(config.load(path), path)
    await service.start()
    yield service
    await service.stop()


async def status(port: int, request: bytes) -> bytes:
    """The status, once the server has closed the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return answer.split()[1]


async def test_an_ambiguous_request_is_refused_by_every_http_server_and_counted(
    service: Service,
) -> None:
    ports = service.ports
    assert [
        await status(port, request)
        for port in (ports["http"], ports["metrics"])
        for request in (POST, GET)
    ] == [b"400"] * 4
    assert dict(service.telemetry.invalid_http_requests.items()) == {
        (server, reason): 1
        for server in ("http", "metrics")
        for reason in ("ambiguous_length", "bare_line_feed")
    }
    assert service.telemetry.accepted.total() == 0

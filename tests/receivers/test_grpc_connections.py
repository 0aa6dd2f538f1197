"""Floods of connections: gRPC keeps only a limited number, and they leave enough files for
everything else.
"""

from __future__ import annotations

import resource
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from pathgauge.collector.receivers import grpc as receivers_grpc
from pathgauge.collector.receivers.grpc import GrpcReceiver
from support import http2
from support.intake import Intake
from support.running import Collector, until

HELLO = http2.PREFACE + http2.frame(http2.SETTINGS)


@asynccontextmanager
async def receiver(max_connections: int) -> AsyncIterator[GrpcReceiver]:
    intake = Intake()
    started = GrpcReceiver(
        "127.0.0.1:0", intake.accept, intake.telemetry, max_connections=max_connections
    )
    await started.start()
    yield started
    await started.stop(0)


def connect(port: int, begin: bytes = HELLO) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 10)
    connection.sendall(begin)
    return connection


def is_served(connection: socket.socket) -> bool:
    """Whether the server sends anything."""
    try:
        return connection.recv(1) != b""
    except ConnectionError:
        return False


async def test_connections_beyond_the_most_are_closed_and_have_their_turn_when_others_end() -> None:
    async with receiver(max_connections=2) as started:
        first, second, third = (connect(started.port) for _ in range(3))
        with first, second, third:
            assert [is_served(connection) for connection in (first, second, third)] == [
                True,
                True,
                False,
            ]
            first.close()

            def fourth() -> bool:
                with connect(started.port) as connection:
                    return is_served(connection)

            assert until(fourth)


@pytest.mark.parametrize("begin", [b"", http2.PREFACE[:10]])
async def test_a_connection_that_never_says_hello_is_closed(
    begin: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receivers_grpc, "HANDSHAKE_TIMEOUT_S", 0.2)
    async with receiver(max_connections=1) as started:
        with connect(started.port, begin) as silent:
            while is_served(silent):
                pass


@contextmanager
def soft_limit(files: int) -> Iterator[None]:
    """Set the limit on open files for processes that are started in this context."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.slow
def test_a_flood_of_grpc_connections_leaves_files_for_pages_and_requests(tmp_path: Path) -> None:
    flood, most = 400, 200
    with soft_limit(256):
        collector = Collector(tmp_path, receivers=_receivers(most), store={"path": "data"})
    with collector, ExitStack() as connections:
        for _ in range(flood):
            connections.enter_context(connect(collector.ports["grpc"]))
        held = [
            collector.get("/readyz")[0],
            collector.get("/metrics")[0],
            collector.post("/v1/traces", b"")[0],
        ]
        assert held == [200, 200, 200]
        limit, _ = resource.prlimit(collector.process.pid, resource.RLIMIT_NOFILE)
        folder = Path(f"/proc/{collector.process.pid}/fd")
        assert until(lambda: most < len(list(folder.iterdir())))
        assert len(list(folder.iterdir())) < limit - 512
        assert [line for line in collector.log() if line["level"] in ("warning", "error")] == []


def _receivers(most: int) -> dict[str, object]:
    grpc, http = {"endpoint": "127.0.0.1:0", "max_connections": most}, {"endpoint": "127.0.0.1:0"}
    return {"otlp": {"protocols": {"grpc": grpc, "http": http}}}

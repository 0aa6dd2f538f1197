"""Hundreds of senders that never finish their requests: all are disconnected in time, and other
senders are not affected.
"""

from __future__ import annotations

import asyncio
import itertools
import resource
import selectors
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from pathgauge.collector.receivers.export import ReceiverLimits
from pathgauge.collector.receivers.grpc import GrpcReceiver
from pathgauge.collector.receivers.grpc_calls import MAX_ARRIVING_OF_PEER
from pathgauge.collector.receivers.http import HttpReceiver
from pathgauge.collector.receivers.server import asgi_server
from pathgauge.collector.receivers.server.connections import Caps, Terms
from support import http2
from support.healthy import SPANS, Healthy
from support.intake import Intake

pytestmark = pytest.mark.slow

CONNECTIONS = 500
PEERS = 8
"""The source addresses of the connections; all of 127.0.0.0/8 is this machine."""
HEAD_TIMEOUT_S = 1.0
LIMITS = ReceiverLimits(body_timeout_s=2.0, body_grace_s=1.0)
ALL_CLOSED_S = 8.0
PAUSE_S = 0.2
"""Seconds between two bytes of a sender."""
LONGEST_WAIT_S = 3.0
"""Time limit for the answer to a well-behaved sender; slow senders and receivers share one process
here.
"""

HEAD = b"POST /v1/traces HTTP/1.1\r\nHost: pathgauge\r\nContent-Type: application/json\r\n"
SLOW = {
    "half-open": b"",
    "head": HEAD + b"X-More: ",
    "body": HEAD + b"Content-Length: 100000\r\n\r\n",
    "chunks": HEAD + b"Transfer-Encoding: chunked\r\n\r\n",
    "answered body": HEAD.replace(b"application/json", b"text/plain")
    + b"Content-Length: 100000\r\n\r\n",
}
"""The first bytes of a slow sender. It continues with single bytes."""
TRICKLE = {"half-open": b"", "chunks": b"1\r\n \r\n"}
ANSWERS = {"half-open": b"", "head": b"", "body": b"408", "chunks": b"408", "answered body": b"415"}
"""The status that it reads before the connection is closed."""


@asynccontextmanager
async def receivers() -> AsyncIterator[tuple[Intake, dict[str, int]]]:
    intake = Intake()
    http = HttpReceiver(
        "127.0.0.1:0",
        intake.accept,
        intake.telemetry,
        LIMITS,
        terms=Terms(Caps(total=CONNECTIONS + 10)),
    )
    rpc = GrpcReceiver("127.0.0.1:0", intake.accept, intake.telemetry, LIMITS)
    await http.start()
    await rpc.start()
    try:
        yield intake, {"http": http.port, "grpc": rpc.port}
    finally:
        await http.stop(0)
        await rpc.stop(0)


@pytest.fixture(autouse=True)
def enough_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * CONNECTIONS
    if soft != resource.RLIM_INFINITY and soft < wanted:
        if hard != resource.RLIM_INFINITY and hard < wanted:
            pytest.skip(f"needs {wanted} open files, allowed are {hard}")
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Slow:
    """The connections of slow senders: `CONNECTIONS` in total, with equal numbers of each kind.
    Runs in a separate thread.
    """

    def __init__(self, port: int) -> None:
        self.ends: Counter[tuple[str, bytes | None]] = Counter()
        """How the connections ended: by kind, the status of the answer; `None` if the server did
        not close it.
        """
        self._port = port
        self._open: dict[socket.socket, tuple[str, bytes]] = {}

    def run(self) -> None:
        """Send a byte at a time until all connections are closed, or `ALL_CLOSED_S` have passed."""
        kinds, peers = (
            itertools.cycle(SLOW),
            itertools.cycle(f"127.0.0.{2 + number}" for number in range(PEERS)),
        )
        for kind, peer, _ in zip(kinds, peers, range(CONNECTIONS), strict=False):
            connection = socket.create_connection(("127.0.0.1", self._port), 10, (peer, 0))
            connection.sendall(SLOW[kind])
            self._open[connection] = kind, b""
        deadline = time.monotonic() + ALL_CLOSED_S
        while self._open and time.monotonic() < deadline:
            time.sleep(PAUSE_S)
            self._read()
            self._trickle()
        for connection, (kind, _) in self._open.items():
            self.ends[kind, None] += 1
            connection.close()

    def _trickle(self) -> None:
        for connection, (kind, _) in self._open.items():
            with suppress(OSError):
                connection.send(TRICKLE.get(kind, b" "))

    def _read(self) -> None:
        with selectors.DefaultSelector() as selector:
            for connection in self._open:
                selector.register(connection, selectors.EVENT_READ)
            ready = {key.fd for key, _ in selector.select(0)}
        for connection in [connection for connection in self._open if connection.fileno() in ready]:
            kind, received = self._open[connection]
            try:
                more = connection.recv(65_536)
            except ConnectionError:
                more = b""
            self._open[connection] = kind, received + more
            if not more:
                self.ends[kind, received.partition(b" ")[2][:3]] += 1
                del self._open[connection]
                connection.close()


async def test_slow_senders_over_http_are_cut_off_and_others_are_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asgi_server, "HEAD_TIMEOUT_S", HEAD_TIMEOUT_S)
    async with receivers() as (intake, ports):
        slow = Slow(ports["http"])
        with Healthy(ports) as healthy:
            await asyncio.to_thread(slow.run)
            await asyncio.to_thread(healthy.stop)
        assert slow.ends == {
            (kind, answer): CONNECTIONS // len(SLOW) for kind, answer in ANSWERS.items()
        }
        assert (healthy.failures, healthy.longest_s < LONGEST_WAIT_S) == ([], True), (
            healthy.longest_s
        )
        assert min(healthy.sent.values()) > 5
        assert len(intake.names()) == SPANS * healthy.sent.total()


def stall(port: int, calls: int, peer: str) -> list[int]:
    """Start so many calls on one connection and finish none of them; returns the calls that the
    server ended.
    """
    ended = []
    with suppress(TimeoutError), http2.Connection(port, ALL_CLOSED_S, peer) as connection:
        connection.send(http2.hello())
        for stream in range(1, 2 * calls, 2):
            begun = http2.message(b"", length=1000) + b" " * 10
            connection.send(
                http2.headers(stream=stream) + http2.frame(http2.DATA, begun, stream=stream)
            )
        for frame in connection.frames():
            if frame.kind == http2.HEADERS and frame.flags & http2.END_STREAM:
                ended.append(frame.stream)
            if len(ended) == calls:
                break
    return sorted(ended)


async def test_slow_calls_over_grpc_are_cut_off_and_others_are_served() -> None:
    connections, calls = 4, 90
    async with receivers() as (intake, ports):
        with Healthy({"grpc": ports["grpc"]}) as healthy:
            ended = await asyncio.gather(
                *(
                    asyncio.to_thread(stall, ports["grpc"], calls, f"127.0.0.{2 + n}")
                    for n in range(connections)
                )
            )
            await asyncio.to_thread(healthy.stop)
        assert ended == [list(range(1, 2 * calls, 2))] * connections
        assert (healthy.failures, healthy.longest_s < LONGEST_WAIT_S) == ([], True), (
            healthy.longest_s
        )
        slow, busy = (
            intake.telemetry.requests.get("grpc", "traces", code) for code in ("too_slow", "busy")
        )
        assert (slow, busy) == (
            connections * MAX_ARRIVING_OF_PEER,
            connections * (calls - MAX_ARRIVING_OF_PEER),
        )
        assert len(intake.names()) == SPANS * healthy.sent.total()

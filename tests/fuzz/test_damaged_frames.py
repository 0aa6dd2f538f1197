"""Wrong bytes on the sockets of a running collector: whatever comes, it stays up, logs no error,
and serves the next sender.
"""

from __future__ import annotations

import gzip
import socket
import struct
from collections.abc import Iterator
from random import Random

import pytest

from support import http2
from support.fuzzing import EXECUTIONS, SEED, damaged
from support.http2 import (
    DATA,
    END_STREAM,
    GOAWAY,
    HEADERS,
    PING,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
    frame,
    headers,
    hello,
    message,
)
from support.running import Collector, until
from support.turns import otlp, script, turn

SHARE = 0.02
"""Of `EXECUTIONS`: each is a connection to another process."""
PATIENCE_S = 5.0
BATCHES = 4

BODY = otlp(turn(script("", "lookup")))
CALL = hello() + headers() + frame(DATA, message(BODY), END_STREAM, 1)
ZIPPED = (
    hello()
    + headers("gzip")
    + frame(DATA, message(gzip.compress(BODY), compressed=True), END_STREAM, 1)
)
POST = (
    b"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type:"
    b" application/x-protobuf\r\nContent-Length: %d\r\n\r\n%s" % (len(BODY), BODY)
)
CHUNKED = (
    b"POST /v1/traces HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Encoding:"
    b" gzip\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n"
    % (len(gzip.compress(b"{}")), gzip.compress(b"{}"))
)

FRAMES = {
    "nothing": b"",
    "noise": b"\xff" * 1000,
    "HTTP/1.1": POST,
    "preface and noise": http2.PREFACE + b"\xff" * 1000,
    "half a preface": http2.PREFACE[:10],
    "half a frame": hello() + headers()[:20],
    "a frame longer than allowed": hello() + frame(DATA, bytes(20_000), stream=1),
    "a frame length that lies": hello() + headers() + frame(DATA, b"abc", stream=1, length=16_000),
    "data before headers": hello() + frame(DATA, message(BODY), stream=1),
    "data on stream 0": hello() + frame(DATA, b"abc"),
    "headers that are not HPACK": hello() + frame(HEADERS, b"\xff" * 100, http2.END_HEADERS, 1),
    "headers of 60,000 bytes": (
        hello() + frame(HEADERS, (b"\0" + b"\x7ea" * 63) * 100, http2.END_HEADERS, 1)
    ),
    "no message": hello() + headers() + frame(DATA, b"", END_STREAM, 1),
    "half a message": hello() + headers() + frame(DATA, message(BODY)[:20], END_STREAM, 1),
    "a message shorter than it says": (
        hello() + headers() + frame(DATA, message(b"abc", length=1000), END_STREAM, 1)
    ),
    "a message of 4 GiB": (
        hello() + headers() + frame(DATA, message(b"abc", length=2**32 - 1), END_STREAM, 1)
    ),
    "two messages": hello() + headers() + frame(DATA, message(BODY) * 2, END_STREAM, 1),
    "compressed, with no encoding": (
        hello() + headers() + frame(DATA, message(BODY, compressed=True), END_STREAM, 1)
    ),
    "compressed, but not gzip": (
        hello() + headers("gzip") + frame(DATA, message(BODY, compressed=True), END_STREAM, 1)
    ),
    "an unknown encoding": (
        hello() + headers("zip") + frame(DATA, message(BODY, compressed=True), END_STREAM, 1)
    ),
    "an unknown method": hello() + headers(path="/a/b") + frame(DATA, message(BODY), END_STREAM, 1),
    "a method that is not UTF-8": (
        hello()
        + headers().replace(b"Export", b"Exp\xffrt")
        + frame(DATA, message(BODY), END_STREAM, 1)
    ),
    "a window of 4 GiB": hello() + frame(WINDOW_UPDATE, b"\x7f\xff\xff\xff") * 3,
    "settings out of range": http2.PREFACE + frame(SETTINGS, struct.pack(">HI", 4, 2**32 - 1)),
    "2,000 settings": hello() + frame(SETTINGS) * 2_000,
    "2,000 pings": hello() + frame(PING, bytes(8)) * 2_000,
    "2,000 calls that are taken back": (
        hello()
        + b"".join(
            headers(stream=stream) + frame(RST_STREAM, bytes(4), stream=stream)
            for stream in range(1, 4_000, 2)
        )
    ),
    "a farewell": CALL[:-10] + frame(GOAWAY, bytes(8)),
}
SEEDS = {
    "grpc": (CALL, ZIPPED, *(sent for sent in FRAMES.values() if 0 < len(sent) < 5_000)),
    "http": (POST, CHUNKED),
}
WORDS = {
    "grpc": (
        http2.PREFACE,
        frame(SETTINGS),
        frame(PING, bytes(8)),
        headers(),
        frame(DATA, b"", END_STREAM, 1),
        b"\0\0\0",
        b"\0\0\0\0\x01",
    ),
    "http": (
        b"\r\n",
        b"Content-Length: 9" * 2,
        b"Transfer-Encoding: chunked\r\n",
        b"0\r\n\r\n",
        b"POST ",
        b"HTTP/1.1",
        b"\xff",
        b": ",
    ),
}


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collector]:
    with Collector(tmp_path_factory.mktemp("collector")) as started:
        yield started


def say(collector: Collector, port: str, data: bytes) -> None:
    """Send the bytes, end, and read until the other side does so, too."""
    with connected(collector.ports[port]) as connection:
        try:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            while connection.recv(65_536):
                pass
        except OSError:
            return


def connected(port: int) -> socket.socket:
    """gRPC's server may be about to be replaced."""

    def connection() -> socket.socket | None:
        try:
            return socket.create_connection(("127.0.0.1", port), PATIENCE_S)
        except ConnectionError:
            return None

    made = until(connection)
    assert made is not None, f"port {port} stays closed"
    return made


def call(port: int) -> int | None:
    """The status of a good call; `None` when the server is being replaced."""
    try:
        with http2.Connection(port, PATIENCE_S) as connection:
            return connection.call(message(BODY)).status
    except OSError:
        return None


def serves(collector: Collector) -> bool:
    called = until(lambda: call(collector.ports["grpc"]) == 0)
    posted, _ = collector.post("/v1/traces", BODY)
    # One line tells of a server that gRPC gave up: its own task, which nobody can wait for.
    errors = [
        line
        for line in collector.log()
        if line["level"] == "error" and "_server_main_loop" not in line.get("exception", "")
    ]
    return (called, posted, errors, collector.process.poll()) == (True, 200, [], None)


@pytest.mark.parametrize("sent", FRAMES.values(), ids=FRAMES)
def test_wrong_frames_harm_nobody_else(sent: bytes, collector: Collector) -> None:
    say(collector, "grpc", sent)
    assert serves(collector)


@pytest.mark.parametrize("batch", range(BATCHES))
@pytest.mark.parametrize("port", SEEDS)
def test_damaged_bytes_harm_nobody_else(port: str, batch: int, collector: Collector) -> None:
    for number in range(round(EXECUTIONS * SHARE) // BATCHES):
        seed = f"{SEED}/{port}/{batch}/{number}"
        sent = damaged(SEEDS[port], WORDS[port], Random(seed))
        try:
            say(collector, port, sent)
            if number % 10 == 0:
                assert serves(collector)
        except Exception as error:
            pytest.fail(f"FUZZ_SEED={SEED}: {seed}: {error!r} after {sent!r}", pytrace=False)
    assert serves(collector), f"FUZZ_SEED={SEED}"

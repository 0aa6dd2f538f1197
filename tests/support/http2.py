"""HTTP/2 by hand, so that it can be wrong: a call comes in as bytes of our making, the answer or
its frames go out.

Only what one gRPC call on one connection needs (RFC 9113). Header names and values are sent as
literals, which HPACK allows.
"""

from __future__ import annotations

import re
import socket
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple, Self
from urllib.parse import unquote

from support.running import PATIENCE_S

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 0, 1, 3, 4, 6, 7, 8
END_STREAM = ACK = 0x1
END_HEADERS = 0x4
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
FIRST_WINDOW = 65_535
LARGEST_FRAME = 16_384


class Answer(NamedTuple):
    """What a call came to; `status` is `None` when the server said nothing."""

    status: int | None
    message: str
    response: bytes
    says_when_to_retry: bool


class Frame(NamedTuple):
    kind: int
    flags: int
    stream: int
    payload: bytes


def frame(
    kind: int, payload: bytes = b"", flags: int = 0, stream: int = 0, length: int | None = None
) -> bytes:
    """The bytes of a frame; `length` may lie."""
    size = len(payload) if length is None else length
    return struct.pack(">I", size)[1:] + struct.pack(">BBI", kind, flags, stream) + payload


def headers(encoding: str = "", path: str = EXPORT, stream: int = 1) -> bytes:
    """The frame that begins a gRPC call."""
    fields = {
        ":method": "POST",
        ":scheme": "http",
        ":path": path,
        ":authority": "test",
        "te": "trailers",
        "content-type": "application/grpc",
    }
    if encoding:
        fields["grpc-encoding"] = encoding
    block = b"".join(b"\0" + _literal(name) + _literal(value) for name, value in fields.items())
    return frame(HEADERS, block, END_HEADERS, stream)


def message(body: bytes, *, compressed: bool = False, length: int | None = None) -> bytes:
    """A gRPC message; `length` may lie."""
    return struct.pack(">BI", compressed, len(body) if length is None else length) + body


def hello() -> bytes:
    """What a client says first."""
    return PREFACE + frame(SETTINGS)


class Connection:
    """A TCP connection to a gRPC server. All waiting ends after `patience` seconds, with
    `TimeoutError`.
    """

    def __init__(self, port: int, patience: float = PATIENCE_S, peer: str = "127.0.0.1") -> None:
        """`peer` is the address that it comes from."""
        self._socket = socket.create_connection(("127.0.0.1", port), patience, (peer, 0))
        self._received = b""
        self._window = self._stream_window = FIRST_WINDOW

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Send bytes as they are."""
        self._socket.sendall(data)

    def finish(self) -> None:
        """Say that nothing more comes."""
        self._socket.shutdown(socket.SHUT_WR)

    def call(self, body: bytes, encoding: str = "") -> Answer:
        """Make a call with these gRPC messages. Stops sending when the answer is complete."""
        self.send(hello() + headers(encoding))
        unsent, head, data = memoryview(body), b"", b""
        frames = self.frames()
        while True:
            unsent = self._send_what_fits(unsent)
            got = next(frames, None)
            if got is None:
                return _answer(head, data)
            head += got.payload if got.kind == HEADERS else b""
            data += got.payload if got.kind == DATA else b""
            if got.kind in (GOAWAY, RST_STREAM) or (got.kind == HEADERS and got.flags & END_STREAM):
                return _answer(head, data)

    def stall(self, body: bytes) -> bool:
        """Make a call with these bytes, and do not end it. Whether the server let all of them in
        before it said anything.
        """
        self.send(hello() + headers())
        unsent, frames = self._send_what_fits(memoryview(body), end=0), self.frames()
        while unsent:
            got = next(frames, None)
            if got is None or got.kind in (GOAWAY, RST_STREAM, HEADERS):
                return False
            unsent = self._send_what_fits(unsent, end=0)
        return True

    def frames(self) -> Iterator[Frame]:
        """The frames of the server until it closes. Acknowledges settings and pings."""
        while (got := self._frame()) is not None:
            if got.kind in (SETTINGS, PING) and not got.flags & ACK:
                with suppress(OSError):  # the server may have closed, and still have said more
                    self.send(frame(got.kind, got.payload if got.kind == PING else b"", ACK))
                self._settle(got)
            elif got.kind == WINDOW_UPDATE:
                more = int.from_bytes(got.payload) & 0x7FFFFFFF
                self._window += 0 if got.stream else more
                self._stream_window += more if got.stream else 0
            yield got

    def _send_what_fits(self, body: memoryview, end: int = END_STREAM) -> memoryview:
        while size := min(len(body), self._window, self._stream_window, LARGEST_FRAME):
            self.send(frame(DATA, bytes(body[:size]), 0 if size < len(body) else end, stream=1))
            self._window -= size
            self._stream_window -= size
            body = body[size:]
        return body

    def _settle(self, got: Frame) -> None:
        for name, value in struct.iter_unpack(">HI", got.payload if got.kind == SETTINGS else b""):
            if name == 4:
                self._stream_window += value - FIRST_WINDOW

    def _frame(self) -> Frame | None:
        head = self._take(9)
        if head is None:
            return None
        kind, flags, stream = struct.unpack(">BBI", head[3:])
        payload = self._take(int.from_bytes(head[:3]))
        return None if payload is None else Frame(kind, flags, stream, payload)

    def _take(self, size: int) -> bytes | None:
        while len(self._received) < size:
            try:
                data = self._socket.recv(65_536)
            except ConnectionError:
                data = b""
            if not data:
                return None
            self._received += data
        taken, self._received = self._received[:size], self._received[size:]
        return taken


def _answer(head: bytes, data: bytes) -> Answer:
    """gRPC's server writes these headers as literals, too, each length in one byte."""
    status = re.search(rb"grpc-status[\x01\x02](\d+)", head)
    text = re.search(rb"grpc-message(.)", head, re.DOTALL)
    said = head[text.end() : text.end() + text[1][0]] if text else b""
    return Answer(
        int(status[1]) if status else None, unquote(said.decode()), data[5:], b"retryinfo" in head
    )


def _literal(text: str) -> bytes:
    raw = text.encode()
    assert len(raw) < 127, text
    return bytes([len(raw)]) + raw

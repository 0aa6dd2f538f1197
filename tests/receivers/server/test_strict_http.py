"""Requests that two servers could read differently are invalid; they are answered with 400, and
the connection is closed.
"""

from __future__ import annotations

import asyncio

import h11
import pytest
from starlette.types import Receive, Scope, Send

from pathgauge.collector.receivers.server.asgi_server import MAX_HEAD_BYTES, HttpServer
from pathgauge.collector.receivers.server.connections import Terms
from pathgauge.collector.receivers.server.strict_http import (
    MESSAGES,
    InvalidRequest,
    StrictConnection,
)

POST = b"POST / HTTP/1.1\r\nHost: here\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKS = b"1\r\nx\r\n0\r\n"
GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"

VALID = {
    "no body": GET,
    "a length": POST + b"Content-Length: 3\r\n\r\na\nb",
    "the same length twice": POST + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
    "chunks": POST + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS + b"\r\n",
    "some tiny chunks": POST
    + b"Transfer-Encoding: chunked\r\n\r\n"
    + b"1\r\nx\r\n" * 1_000
    + b"0\r\n\r\n",
    "many chunks": POST
    + b"Transfer-Encoding: chunked\r\n\r\n"
    + b"%x\r\n%s\r\n" % (64, b"x" * 64) * 3_000
    + b"0\r\n\r\n",
    "chunks with trailers": POST + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS + b"A: b\r\n\r\n",
    "a chunk of line feeds": POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\n\n\r\n0\r\n\r\n",
}
INVALID = {
    "chunks and a length": (
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 11\r\n\r\n" + CHUNKS + b"\r\n",
        "ambiguous_length",
    ),
    "a length and chunks": (
        POST + b"content-length: 0\r\ntransfer-encoding: chunked\r\n\r\n" + CHUNKS + b"\r\n",
        "ambiguous_length",
    ),
    "chunks in HTTP/1.0": (
        POST.replace(b"1.1", b"1.0")
        + b"Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n"
        + CHUNKS
        + b"\r\n",
        "ambiguous_length",
    ),
    "LF everywhere": (GET.replace(b"\r\n", b"\n"), "bare_line_feed"),
    "LF after the request line": (GET.replace(b"\r\n", b"\n", 1), "bare_line_feed"),
    "LF after a header": (b"GET / HTTP/1.1\r\nA: b\nHost: here\r\n\r\n", "bare_line_feed"),
    "LF after the last header": (b"GET / HTTP/1.1\r\nHost: here\n\r\n", "bare_line_feed"),
    "LF as the empty line": (b"GET / HTTP/1.1\r\nHost: here\r\n\n", "bare_line_feed"),
    "LF after a trailer": (
        POST + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS + b"A: b\n\r\n",
        "bare_line_feed",
    ),
    "LF instead of trailers": (
        POST + b"Transfer-Encoding: chunked\r\n\r\n" + CHUNKS + b"\n",
        "bare_line_feed",
    ),
    "LF after the size of a chunk": (
        POST + b"Transfer-Encoding: chunked\r\n\r\n1\nx\r\n0\r\n\r\n",
        "malformed",
    ),
    "LF after a chunk": (
        POST + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\n0\r\n\r\n",
        "malformed",
    ),
    "many tiny chunks": (
        POST + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\nx\r\n" * 2_000 + b"0\r\n\r\n",
        "tiny_chunks",
    ),
    "CR in a header": (b"GET / HTTP/1.1\r\nHost: here\rA: b\r\n\r\n", "malformed"),
    "two lengths": (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx", "malformed"),
    "an unknown encoding of the body": (
        POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        "malformed",
    ),
    "a space before a colon": (POST + b"Content-Length : 1\r\n\r\nx", "malformed"),
    "an empty line first": (b"\n" + GET, "bare_line_feed"),
    "HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "http2"),
    "no HTTP": (b"no HTTP\r\n\r\n", "malformed"),
    "HTTP/1.2": (GET.replace(b"1.1", b"1.2"), "malformed"),
    "a large head": (
        b"GET / HTTP/1.1\r\nHost: here\r\nX: " + b"x" * 17_000 + b"\r\n\r\n",
        "head_too_large",
    ),
    "large trailers": (
        POST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"x" * 17_000 + b"\r\n\r\n",
        "head_too_large",
    ),
    "an enormous head": (b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000, "head_too_large"),
}


def parsed(received: bytes, pieces: int) -> tuple[int, str]:
    """The number of complete requests, and why the next one is invalid; empty if it is valid."""
    connection, requests = StrictConnection(MAX_HEAD_BYTES), 0
    size = -(-len(received) // pieces)
    for start in range(0, len(received), size):
        connection.receive_data(received[start : start + size])
        while True:
            try:
                event = connection.next_event()
            except h11.RemoteProtocolError:
                return requests, connection.invalid
            if event is h11.NEED_DATA:
                break
            if isinstance(event, h11.EndOfMessage):
                requests += 1
                answer(connection)
    return requests, ""


def test_a_large_chunk_before_incomplete_trailers_is_no_large_head() -> None:
    connection = StrictConnection(MAX_HEAD_BYTES)
    begin = b"%s9c40\r\n%s\r\n0\r\nA: " % (CHUNKED, b"x" * 40_000)
    for received in (begin, b"b\r\n\r\n"):
        connection.receive_data(received)
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                break
    assert isinstance(event, h11.EndOfMessage)


def answer(connection: StrictConnection) -> None:
    connection.send(h11.Response(status_code=204, headers=[]))
    connection.send(h11.EndOfMessage())
    connection.start_next_cycle()


PIECES = pytest.mark.parametrize("pieces", [1, 2, 3, 10_000])


@PIECES
@pytest.mark.parametrize("request_bytes", VALID.values(), ids=VALID)
def test_other_requests_may_follow_a_valid_one(request_bytes: bytes, pieces: int) -> None:
    assert parsed(GET + request_bytes + request_bytes, pieces) == (3, "")


@PIECES
@pytest.mark.parametrize(("request_bytes", "reason"), INVALID.values(), ids=INVALID)
def test_a_request_that_can_be_read_differently_is_invalid(
    request_bytes: bytes, reason: str, pieces: int
) -> None:
    assert parsed(request_bytes, pieces) == (0, reason)
    assert parsed(GET + request_bytes, pieces) == (1, reason)


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    headers = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hi"})


@pytest.mark.parametrize("name", ["chunks and a length", "LF after a trailer", "an enormous head"])
async def test_an_invalid_request_is_answered_counted_and_ends_the_connection(name: str) -> None:
    request, reason = INVALID[name]
    invalid: list[InvalidRequest] = []
    server = HttpServer(hello, "127.0.0.1:0", Terms(on_invalid=invalid.append))
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET)
    assert (await reader.readuntil(b"hi")).startswith(b"HTTP/1.1 200 ")
    writer.write(request)
    head, _, body = (await asyncio.wait_for(reader.read(), 5)).partition(b"\r\n\r\n")
    writer.close()
    await server.stop()
    assert (head.split(b"\r\n")[0], invalid) == (b"HTTP/1.1 400 Bad Request", [reason])
    assert b"connection: close" in head
    assert MESSAGES[invalid[0]].encode() in body

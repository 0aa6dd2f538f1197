"""The HTTP server under the metrics page and the OTLP receiver, over real sockets of the loopback interface."""

from __future__ import annotations

import asyncio
import signal
import socket

import pytest
from starlette.types import Receive, Scope, Send

from collector import http_server
from collector.http_server import HttpServer

GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
GET_AND_CLOSE = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"hi"})


async def exchange(port: int, request: bytes) -> bytes:
    """Send `request` and read until the server closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        return await reader.read()
    finally:
        writer.close()


def test_what_is_no_endpoint_is_refused() -> None:
    with pytest.raises(ValueError, match="host:port"):
        HttpServer(hello, "localhost")


async def test_it_serves_on_a_free_port_until_it_is_stopped() -> None:
    server = HttpServer(hello, "127.0.0.1:0")
    await server.start()
    port = server.port
    answer = await exchange(port, GET_AND_CLOSE)
    await server.stop()
    head, _, body = answer.partition(b"\r\n\r\n")
    assert (head.splitlines()[0], body) == (b"HTTP/1.1 200 OK", b"hi")
    assert b"uvicorn" not in head
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", port)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
async def test_it_serves_on_ipv6() -> None:
    server = HttpServer(hello, "[::1]:0")
    await server.start()
    _, writer = await asyncio.open_connection("::1", server.port)
    writer.close()
    await server.stop()


async def test_an_address_in_use_is_an_error_that_names_it() -> None:
    first = HttpServer(hello, "127.0.0.1:0")
    await first.start()
    endpoint = f"127.0.0.1:{first.port}"
    with pytest.raises(OSError, match=f"cannot listen on {endpoint}: Address already in use"):
        await HttpServer(hello, endpoint).start()
    await first.stop()


async def test_stopping_is_safe_without_a_start_and_twice() -> None:
    server = HttpServer(hello, "127.0.0.1:0")
    await server.stop()
    await server.start()
    await server.stop()
    await server.stop()


async def test_a_request_under_way_is_answered_before_the_server_stops() -> None:
    arrived, go_on = asyncio.Event(), asyncio.Event()

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        arrived.set()
        await go_on.wait()
        await hello(scope, receive, send)

    server = HttpServer(slow, "127.0.0.1:0")
    await server.start()
    answer = asyncio.create_task(exchange(server.port, GET))
    await arrived.wait()
    stopping = asyncio.create_task(server.stop(grace=30))
    go_on.set()
    assert (await answer).endswith(b"hi")
    await stopping


async def test_a_request_that_outlives_the_grace_is_cancelled() -> None:
    arrived, cancelled = asyncio.Event(), asyncio.Event()

    async def endless(scope: Scope, receive: Receive, send: Send) -> None:
        arrived.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    server = HttpServer(endless, "127.0.0.1:0")
    await server.start()
    answer = asyncio.create_task(exchange(server.port, GET))
    await arrived.wait()
    await asyncio.wait_for(server.stop(grace=0), 5)
    await asyncio.wait_for(cancelled.wait(), 5)
    await answer


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHo"])
async def test_a_request_head_that_never_ends_is_cut_off(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT_S", 0.05)
    server = HttpServer(hello, "127.0.0.1:0")
    await server.start()
    assert await asyncio.wait_for(exchange(server.port, sent), 5) == b""
    await server.stop()


async def test_a_second_request_head_that_never_ends_is_cut_off_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT_S", 0.05)
    server = HttpServer(hello, "127.0.0.1:0")
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(GET)
    await reader.readuntil(b"hi")
    writer.write(b"GET / HT")
    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    await server.stop()


async def test_signals_are_left_to_the_service() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    server = HttpServer(hello, "127.0.0.1:0")
    await server.start()
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before
    await server.stop()


async def test_a_slow_application_is_not_cut_off_by_the_deadline_for_heads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT_S", 0.01)

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.05)
        await hello(scope, receive, send)

    server = HttpServer(slow, "127.0.0.1:0")
    await server.start()
    assert (await exchange(server.port, GET_AND_CLOSE)).endswith(b"hi")
    await server.stop()


async def test_an_enormous_request_head_is_refused() -> None:
    server = HttpServer(hello, "127.0.0.1:0")
    await server.start()
    answer = await exchange(server.port, b"GET / HTTP/1.1\r\nX: " + b"x" * 20_000)
    assert answer.startswith(b"HTTP/1.1 400")
    await server.stop()


async def test_connections_beyond_the_limit_are_answered_503(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "MAX_CONNECTIONS", 2)
    server = HttpServer(hello, "127.0.0.1:0")
    await server.start()
    _, held = await asyncio.open_connection("127.0.0.1", server.port)
    answer = await exchange(server.port, GET_AND_CLOSE)
    assert answer.startswith(b"HTTP/1.1 503")
    held.close()
    await server.stop()

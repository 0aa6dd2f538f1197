"""The HTTP server under the metrics page and the OTLP receiver, over real sockets of the loopback
interface.
"""

from __future__ import annotations

import asyncio
import signal
import socket
import ssl
import struct
from contextlib import suppress
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send
from structlog.testing import capture_logs

from pathgauge.collector.receivers.server import (
    asgi_server,
    connections,
)
from pathgauge.collector.receivers.server.asgi_server import HttpServer
from pathgauge.collector.receivers.server.connections import Caps, Terms

GET = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n"
TLS_ALERT = b"\x15\x03\x01\x00\x02\x02F"  # of a peer that does not speak TLS
GET_AND_CLOSE = b"GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"


async def hello(scope: Scope, receive: Receive, send: Send) -> None:
    await send(
        {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]}
    )
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


def resolving(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """Every name stands for these addresses."""
    found = [
        (socket.AF_INET6 if ":" in one else socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0))
        for one in addresses
    ]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)


async def test_a_name_is_served_at_all_of_its_addresses_and_one_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving(monkeypatch, "::1", "127.0.0.1", "127.0.0.2", "127.0.0.1")
    server = HttpServer(hello, "localhost:0")
    await server.start()
    monkeypatch.undo()
    for host in ("127.0.0.1", "127.0.0.2", *(["::1"] if socket.has_ipv6 else [])):
        reader, writer = await asyncio.open_connection(host, server.port)
        writer.write(GET_AND_CLOSE)
        assert (await reader.read()).endswith(b"hi")
        writer.close()
    await server.stop()
    for host in ("127.0.0.1", "127.0.0.2"):
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, server.port)


async def test_an_address_that_is_not_of_this_machine_does_not_matter_beside_one_that_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resolving(monkeypatch, "2001:db8::1", "127.0.0.1", "192.0.2.1")
    server = HttpServer(hello, "localhost:0")
    await server.start()
    await server.stop()
    resolving(monkeypatch, "2001:db8::1", "192.0.2.1")
    with pytest.raises(OSError, match="cannot listen on localhost:0: Cannot assign requested"):
        await server.start()


async def test_a_port_that_one_address_uses_is_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.2", 0)) as other:
        resolving(monkeypatch, "127.0.0.1", "127.0.0.2")
        endpoint = f"localhost:{other.getsockname()[1]}"
        with pytest.raises(OSError, match=f"cannot listen on {endpoint}: Address already in use"):
            await HttpServer(hello, endpoint).start()


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
async def test_it_serves_on_ipv6() -> None:
    server = HttpServer(hello, "[::1]:0")
    await server.start()
    _, writer = await asyncio.open_connection("::1", server.port)
    writer.close()
    await server.stop()


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
async def test_all_addresses_of_ipv6_are_those_of_ipv4_too() -> None:
    server = HttpServer(hello, "[::]:0")
    await server.start()
    for host in ("::1", "127.0.0.1"):
        _, writer = await asyncio.open_connection(host, server.port)
        writer.close()
    await server.stop()


async def test_a_mistake_of_a_sender_is_answered_and_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = HttpServer(hello, "127.0.0.1:0")
    await server.start()
    upgrade = (
        b"GET / HTTP/1.1\r\nHost: here\r\nConnection: upgrade, close\r\nUpgrade: websocket\r\n\r\n"
    )
    answers = [await exchange(server.port, request) for request in (upgrade, b"no HTTP\r\n\r\n")]
    await server.stop()
    assert [answer.split()[1] for answer in answers] == [b"200", b"400"]
    assert caplog.messages == []


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
async def test_a_request_head_that_never_ends_is_cut_off(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asgi_server, "HEAD_TIMEOUT_S", 0.05)
    server = HttpServer(hello, "127.0.0.1:0")
    await server.start()
    assert await asyncio.wait_for(exchange(server.port, sent), 5) == b""
    await server.stop()


async def test_a_second_request_head_that_never_ends_is_cut_off_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asgi_server, "HEAD_TIMEOUT_S", 0.5)
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


async def test_a_slow_application_is_not_cut_off_by_the_deadline_for_heads(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asgi_server, "HEAD_TIMEOUT_S", 0.5)

    async def slow(scope: Scope, receive: Receive, send: Send) -> None:
        await asyncio.sleep(0.7)
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


async def answers(port: int, **options: Any) -> bool:
    """Whether a new connection is served."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, **options)
        writer.write(GET_AND_CLOSE)
        answer = await reader.read()
    except ConnectionError:
        return False
    writer.close()
    return answer.endswith(b"hi")


async def freed(port: int) -> None:
    async with asyncio.timeout(5):
        while not await answers(port):
            await asyncio.sleep(0.01)


async def test_connections_beyond_the_cap_are_closed_until_others_leave() -> None:
    refused: list[str] = []
    server = HttpServer(hello, "127.0.0.1:0", Terms(Caps(total=2), on_refused=refused.append))
    await server.start()
    held = [(await asyncio.open_connection("127.0.0.1", server.port))[1] for _ in range(2)]
    assert [await answers(server.port) for _ in range(2)] == [False, False]
    assert refused == ["too_many"] * 2
    held.pop().close()
    await freed(server.port)
    held.pop().close()
    await server.stop()


async def test_one_peer_cannot_take_all_connections() -> None:
    refused: list[str] = []
    server = HttpServer(
        hello, "127.0.0.1:0", Terms(Caps(total=3, per_peer=1), on_refused=refused.append)
    )
    await server.start()
    _, held = await asyncio.open_connection("127.0.0.1", server.port)
    assert not await answers(server.port)
    assert await answers(server.port, local_addr=("127.0.0.2", 0))
    assert refused == ["too_many_of_peer"]
    held.close()
    await freed(server.port)
    await server.stop()


async def test_a_flood_of_connections_is_one_line_in_the_log() -> None:
    server = HttpServer(hello, "127.0.0.1:0", Terms(Caps(total=1)))
    await server.start()
    _, held = await asyncio.open_connection("127.0.0.1", server.port)
    with capture_logs() as logs:
        for _ in range(5):
            assert not await answers(server.port)
    expected = {
        "log_level": "warning",
        "peer": "127.0.0.1",
        "reason": "too_many",
        "detail": "there are 1",
    }
    assert [{key: line[key] for key in expected} for line in logs] == [expected]
    held.close()
    await server.stop()


async def test_a_handshake_that_never_ends_is_cut_off_and_gives_its_place_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "HANDSHAKE_TIMEOUT_S", 0.05)
    refused: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server = HttpServer(hello, "127.0.0.1:0", Terms(Caps(total=1), lambda: context, refused.append))
    await server.start()
    for sent in (b"", b"\x16\x03\x01", GET):
        assert await asyncio.wait_for(exchange(server.port, sent), 5) in (b"", TLS_ALERT)
    async with asyncio.timeout(5):
        while len(refused) < 3:
            await asyncio.sleep(0.01)
    assert refused == ["handshake"] * 3
    await server.stop()


@pytest.mark.parametrize("is_reset", [False, True])
async def test_a_peer_that_leaves_before_its_handshake_is_not_refused_as_probes_of_tcp_do_that(
    is_reset: bool,
) -> None:
    refused: list[str] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server = HttpServer(hello, "127.0.0.1:0", Terms(Caps(total=1), lambda: context, refused.append))
    await server.start()
    with capture_logs() as logs:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        if is_reset:
            probe = writer.get_extra_info("socket")
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.close()
        async with asyncio.timeout(5):
            while (
                "handshake" not in refused
            ):  # that of a peer without TLS, in the place of the probe
                with suppress(ConnectionError):
                    await exchange(server.port, GET)
    await server.stop()
    details = [line["detail"] for line in logs if line["reason"] == "handshake"]
    assert ["http request" in detail for detail in details] == [True]


async def test_a_stop_does_not_wait_for_handshakes() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server = HttpServer(hello, "127.0.0.1:0", Terms(tls=lambda: context))
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    await asyncio.sleep(0)
    await asyncio.wait_for(server.stop(), 5)
    assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()


POST = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 10\r\n\r\n"


async def test_the_rest_of_a_body_that_was_answered_already_is_cut_off(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(asgi_server, "HEAD_TIMEOUT_S", 0.5)
    server = HttpServer(hello, "127.0.0.1:0")
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(POST.replace(b"10", b"1000000"))
    await reader.readuntil(b"hi")

    async def trickle() -> None:
        with suppress(ConnectionError):
            while True:
                writer.write(b"x")
                await asyncio.sleep(0.01)

    trickling = asyncio.create_task(trickle())
    with suppress(ConnectionResetError):  # it may be told by a reset: bytes were under way
        assert await asyncio.wait_for(reader.read(), 5) == b""
    trickling.cancel()
    writer.close()
    await server.stop()


async def test_a_connection_goes_on_after_the_rest_of_a_body_that_was_answered_already() -> None:
    server = HttpServer(hello, "127.0.0.1:0")
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(POST)
    await reader.readuntil(b"hi")
    writer.write(b"0123456789" + GET_AND_CLOSE)
    assert (await asyncio.wait_for(reader.read(), 5)).endswith(b"hi")
    writer.close()
    await server.stop()

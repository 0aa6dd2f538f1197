"""Serves an ASGI application on one endpoint in the running event loop. The OTLP receiver and the
HTTP pages use it.

uvicorn handles HTTP. This module changes its behaviour: an unavailable address raises `OSError`
instead of exiting the process, signals are left to the service, connections have limits, and
requests that another server could read differently are refused (`strict_http.py`). A peer
is disconnected when it trickles its request head, or a body that was answered already. Slow bodies
that the application still reads are left to the application.
"""

from __future__ import annotations

import asyncio
import math
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from pathgauge.collector.core.documents.quantities import parse_endpoint
from pathgauge.collector.receivers.server.connections import Acceptor, Terms
from pathgauge.collector.receivers.server.listen import listen
from pathgauge.collector.receivers.server.strict_http import (
    MESSAGES,
    InvalidRequest,
    StrictConnection,
)

HEAD_TIMEOUT_S = 10.0
"""Time limit from the first byte of a request (or from connecting) to the end of its headers, and
from an early answer to the end of the body.
"""
KEEP_ALIVE_S = 75
"""Longer than the export interval of senders. Otherwise a sender could send its next request just
when the connection is closed.
"""
MAX_HEAD_BYTES = 16 * 1024


class HttpServer:
    """An HTTP/1.1 server. It may be stopped twice, or without a start."""

    def __init__(self, app: ASGIApp, endpoint: str, terms: Terms | None = None) -> None:
        """`endpoint` is `host:port` or `[v6]:port`; port 0 selects a free one. Raises ValueError
        for anything else.

        The names of a verified client certificate are in the state of the request, as
        `client_names`, and an event that is set when the server stops, as `stopping`.
        """
        self._endpoint = parse_endpoint(endpoint)
        self._port = self._endpoint.port
        self._server = _Server(
            uvicorn.Config(
                app,
                ws="none",
                lifespan="off",
                log_config=None,
                # Its warnings are about requests, so anybody could fill the log with them.
                log_level="error",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=KEEP_ALIVE_S,
            ),
            terms or Terms(),
        )
        self._serving: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The open port; before `start` the configured one."""
        return self._port

    async def start(self) -> None:
        """Listen, and return once connections are accepted. Raises OSError, naming the endpoint,
        when the address is unavailable.
        """
        listeners = listen(self._endpoint)
        self._port = listeners[0].getsockname()[1]
        self._serving = asyncio.create_task(
            self._server.serve(sockets=listeners), name=f"http {self._endpoint}"
        )
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0.001)
        if self._serving.done():
            self._serving.result()

    async def stop(self, grace: float = 5.0) -> None:
        """Accept no more connections. Active requests are cancelled after `grace` seconds."""
        if self._serving is None:
            return
        self._server.config.timeout_graceful_shutdown = math.ceil(grace)
        self._server.exit()
        await self._serving


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, terms: Terms) -> None:
        super().__init__(config)
        self._exiting = asyncio.Event()
        self._acceptor = Acceptor(
            lambda lost, once: _Connection(
                config, self.server_state, lost, terms.on_invalid, self._exiting, once=once
            ),
            terms,
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections with our own `Acceptor`."""
        self.servers = []
        for listener in sockets or []:
            self._acceptor.start(listener)
        self.started = True

    def exit(self) -> None:
        """End the serving task."""
        self.should_exit = True
        self._exiting.set()

    async def main_loop(self) -> None:
        """Renew the date of answers each second until `exit`. uvicorn would notice that up to 0.1 s
        later.
        """
        ticks_per_s = 10
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += ticks_per_s
            with suppress(TimeoutError):
                await asyncio.wait_for(self._exiting.wait(), 1.0)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting connections before the existing ones are drained; without any there is
        nothing to wait for.
        """
        await self._acceptor.stop()
        if self.server_state.connections or self.server_state.tasks:
            await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Do not handle signals: the service stops its parts in its own order."""
        yield


class _Connection(H11Protocol):
    """One connection. It is closed when its peer does not send the rest of a request within
    `HEAD_TIMEOUT_S`; with `once`, also after the first answer.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        server_state: ServerState,
        lost: Callable[[], object],
        on_invalid: Callable[[InvalidRequest], None],
        stopping: asyncio.Event,
        *,
        once: bool,
    ) -> None:
        super().__init__(config, server_state, app_state={"stopping": stopping})
        self.conn = self._parser = StrictConnection(MAX_HEAD_BYTES)
        self._lost = lost
        self._on_invalid = on_invalid
        self._once = once
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvicorn narrows the type that asyncio declares.
        super().connection_made(cast(asyncio.Transport, transport))
        self.app_state["client_names"] = client_names(transport.get_extra_info("peercert"))
        self._set_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._once and self.cycle is not None:
            self.cycle.keep_alive = False
        if self.conn.their_state is h11.IDLE:
            self._set_deadline()
        elif not self._answered_early():
            self._clear_deadline()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._answered_early():
            self._set_deadline()

    def send_400_response(self, msg: str) -> None:
        """Answer invalid HTTP, unless the answer to the previous request has begun. Later answers
        of the application are dropped.
        """
        self._on_invalid(self._parser.invalid)
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(MESSAGES[self._parser.invalid])
        self.transport.close()
        if self.cycle is not None:
            self.cycle.disconnected = True

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._clear_deadline()
        self._lost()

    def _answered_early(self) -> bool:
        """Whether the request was answered, but its body still arrives."""
        return self.conn.our_state is h11.DONE and self.conn.their_state is h11.SEND_BODY

    def _set_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _clear_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def client_names(certificate: Mapping[str, Any] | None) -> tuple[str, ...] | None:
    """DNS names and URIs of a certificate in the form of `ssl`; `None` without a verified one."""
    if not certificate:
        return None
    return tuple(
        name for kind, name in certificate.get("subjectAltName", ()) if kind in ("DNS", "URI")
    )

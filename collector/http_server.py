"""Serves an ASGI application on one endpoint inside the running event loop; the OTLP receiver and the metrics page share it.

uvicorn does the HTTP. What is ours: an address that cannot be had is an `OSError` and not an exit, signals belong to the
service alone, and a peer that trickles its request head is cut off. Slow bodies are for the application to cut off.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from collector.documents.quantities import parse_endpoint
from collector.listening import listen

HEAD_TIMEOUT_S = 10.0
"""From the first byte of a request (or from connecting) to the end of its headers."""
KEEP_ALIVE_S = 75
"""Longer than the export interval of senders, who else lose the race between our close and their next request."""
MAX_HEAD_BYTES = 16 * 1024
MAX_CONNECTIONS = 4096
"""While this many connections are open, idle ones of large fleets included, every request is answered 503."""


class HttpServer:
    """An HTTP/1.1 server: `start` listens, `stop` drains. Safe to stop twice, or without a start."""

    def __init__(self, app: ASGIApp, endpoint: str) -> None:
        """`endpoint` is `host:port` or `[v6]:port`, where port 0 takes a free one. Raises ValueError on anything else."""
        self._endpoint = parse_endpoint(endpoint)
        self._port = self._endpoint.port
        self._server = _Server(
            uvicorn.Config(
                app,
                http=_Connection,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=MAX_CONNECTIONS,
                timeout_keep_alive=KEEP_ALIVE_S,
                h11_max_incomplete_event_size=MAX_HEAD_BYTES,
            )
        )
        self._serving: asyncio.Task[None] | None = None

    @property
    def port(self) -> int:
        """The port listened on; before `start` the configured one."""
        return self._port

    async def start(self) -> None:
        """Listen, and return once connections are accepted. Raises OSError, naming the endpoint, when the address cannot be had."""
        listener = listen(self._endpoint)
        self._port = listener.getsockname()[1]
        self._serving = asyncio.create_task(self._server.serve(sockets=[listener]), name=f"http {self._endpoint}")
        while not self._server.started and not self._serving.done():
            await asyncio.sleep(0.001)
        if self._serving.done():
            self._serving.result()

    async def stop(self, grace: float = 5.0) -> None:
        """Accept no more connections; requests under way have `grace` seconds to finish, then they are cancelled."""
        if self._serving is None:
            return
        self._server.config.timeout_graceful_shutdown = math.ceil(grace)
        self._server.should_exit = True
        await self._serving


class _Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals alone: the service stops its parts in its own order."""
        yield


class _Connection(H11Protocol):
    """One connection, closed when a request head takes longer than `HEAD_TIMEOUT_S`."""

    _head_deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast(asyncio.Transport, transport))  # uvicorn narrows the type that asyncio declares
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._forget_deadline()
        elif self._head_deadline is None:
            self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._forget_deadline()

    def _expect_head(self) -> None:
        self._head_deadline = self.loop.call_later(HEAD_TIMEOUT_S, self.transport.close)

    def _forget_deadline(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None

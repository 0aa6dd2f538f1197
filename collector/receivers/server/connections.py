"""Accepts connections under caps: a listening socket comes in, asyncio protocols over plain text or
TLS go out.

asyncio's own server knows neither caps nor peers, and lets a TLS handshake hold a connection for a
minute before the protocol hears of it. What is beyond the caps is closed at once, so that those who
are connected already are served on.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

import structlog

HANDSHAKE_TIMEOUT_S = 10.0
"""From connecting to the end of the TLS handshake."""
GOODBYE_TIMEOUT_S = 2.0
"""For a peer to agree to the end of TLS."""
STALLED_S = 30
"""So long may a peer take nothing of what was sent to it, before the system ends the connection."""
_RETRY_S = 0.1
_LOG_EVERY_S = 60.0

Refusal: TypeAlias = Literal["too_many", "too_many_of_peer", "handshake"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Caps:
    """How many connections one server holds. Each takes a file descriptor, of which a process often
    has 1024.
    """

    total: int = 512
    per_peer: int = 64
    """From one address."""


@dataclass(frozen=True, slots=True)
class Terms:
    """On what terms a server takes connections."""

    caps: Caps = Caps()
    tls: Callable[[], ssl.SSLContext] | None = None
    """Gives the certificate for the next connection; `None` is plain text."""
    refused: Callable[[Refusal], None] = lambda _: None
    """Hears of every connection that was not to be."""


class Acceptor:
    """The connections of one server, from `start` to `stop`."""

    def __init__(
        self, protocol: Callable[[Callable[[], object]], asyncio.Protocol], terms: Terms
    ) -> None:
        """`protocol` makes the protocol of a connection, which calls its argument when the
        connection is lost.
        """
        self._protocol = protocol
        self._terms = terms
        self._peers: dict[object, str] = {}
        """The address behind each connection."""
        self._connecting: dict[asyncio.Task[None], socket.socket] = {}
        self._accepting: asyncio.Task[None] | None = None
        self._quiet_until: dict[Refusal, float] = {}

    def start(self, listener: socket.socket) -> None:
        """Accept from now on, until `stop` closes the listener."""
        listener.setblocking(False)
        self._accepting = asyncio.create_task(self._accept(listener), name="accept")

    async def stop(self) -> None:
        """Accept no more; connections that are made already live on."""
        connecting = dict(self._connecting)
        tasks = [*connecting, *([self._accepting] if self._accepting else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task, connection in connecting.items():
            if task.cancelled():
                connection.close()  # nobody else does where the task had not begun

    async def _accept(self, listener: socket.socket) -> None:
        with listener:
            while True:
                try:
                    connection, address = await asyncio.get_running_loop().sock_accept(listener)
                except OSError:  # no file descriptor is left, or the peer has gone already
                    await asyncio.sleep(_RETRY_S)
                else:
                    self._admit(connection, str(address[0]))
                    await asyncio.sleep(
                        0
                    )  # a flood of connections must not keep the loop from all else

    def _admit(self, connection: socket.socket, peer: str) -> None:
        caps = self._terms.caps
        if len(self._peers) >= caps.total:
            self._refuse(connection, peer, "too_many", f"there are {caps.total}")
        elif sum(other == peer for other in self._peers.values()) >= caps.per_peer:
            self._refuse(
                connection, peer, "too_many_of_peer", f"there are {caps.per_peer} from this address"
            )
        else:
            place = object()
            self._peers[place] = peer
            task = asyncio.create_task(
                self._connect(connection, peer, partial(self._peers.pop, place, None))
            )
            self._connecting[task] = connection
            task.add_done_callback(self._connecting.pop)

    async def _connect(
        self, connection: socket.socket, peer: str, lost: Callable[[], object]
    ) -> None:
        tls: dict[str, Any] = {}
        if self._terms.tls:
            tls = {
                "ssl": self._terms.tls(),
                "ssl_handshake_timeout": HANDSHAKE_TIMEOUT_S,
                "ssl_shutdown_timeout": GOODBYE_TIMEOUT_S,
            }
        try:
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_S * 1000)
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: self._protocol(lost), connection, **tls
            )
        except OSError as error:
            lost()
            self._refuse(connection, peer, "handshake", str(error))

    def _refuse(self, connection: socket.socket, peer: str, reason: Refusal, detail: str) -> None:
        connection.close()
        self._terms.refused(reason)
        now = asyncio.get_running_loop().time()
        if now >= self._quiet_until.get(
            reason, 0.0
        ):  # a flood of connections must not become one of log lines
            self._quiet_until[reason] = now + _LOG_EVERY_S
            _log.warning("connection refused", peer=peer, reason=reason, detail=detail)

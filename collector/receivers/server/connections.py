"""Accepts connections, with limits on their number.

asyncio's own server has no such limits, and a TLS handshake can hold a connection for a minute
before the protocol knows of it. Connections beyond a limit are closed at once, so that the existing
ones are still served.
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

from pathgauge.collector.receivers.server.spare_files import NO_FILE_IS_LEFT, SpareFiles
from pathgauge.collector.receivers.server.strict_http import InvalidRequest
from pathgauge.collector.store.essential import essential_task

HANDSHAKE_TIMEOUT_S = 10.0
"""From connecting to the end of the TLS handshake."""
GOODBYE_TIMEOUT_S = 2.0
"""Time for a peer to confirm the end of TLS."""
STALLED_S = 30
"""The system closes a connection whose peer acknowledges no data for this time."""
_RETRY_S = 0.1
_LOG_EVERY_S = 60.0

Refusal: TypeAlias = Literal["too_many", "too_many_of_peer", "handshake"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Caps:
    """The maximum number of connections to one server. Each needs a file descriptor, of which a
    process often has 1024.
    """

    total: int = 512
    per_peer: int = 64
    """From one address."""


@dataclass(frozen=True, slots=True)
class Terms:
    """How a server accepts connections."""

    caps: Caps = Caps()
    tls: Callable[[], ssl.SSLContext] | None = None
    """Returns the TLS context for the next connection; `None` means plain text."""
    on_refused: Callable[[Refusal], None] = lambda _: None
    """Called for every refused connection."""
    on_invalid: Callable[[InvalidRequest], None] = lambda _: None
    """Called for every request that is answered with 400 because it is not valid HTTP."""
    spare_files: int = 0
    """File descriptors that are kept for connections when the process has no other left. Such a
    connection is closed after one answer.
    """


class Acceptor:
    """The connections of one server, from `start` to `stop`."""

    def __init__(
        self, protocol: Callable[[Callable[[], object], bool], asyncio.Protocol], terms: Terms
    ) -> None:
        """`protocol` creates the protocol of a connection. Its arguments are a function, which the
        protocol calls when the connection is lost, and whether to close it after one answer.
        """
        self._protocol = protocol
        self._terms = terms
        self._peers: dict[object, str] = {}
        """The address behind each connection."""
        self._connecting: dict[asyncio.Task[None], socket.socket] = {}
        self._accepting: list[asyncio.Task[None]] = []
        self._quiet_until: dict[str, float] = {}
        self._spare = SpareFiles(terms.spare_files)

    def start(self, listener: socket.socket) -> None:
        """Accept connections until `stop`, which closes the listener. A server may have several."""
        listener.setblocking(False)
        self._accepting.append(essential_task(self._accept(listener), "accept"))

    async def stop(self) -> None:
        """Accept no more connections; existing ones stay open."""
        connecting = dict(self._connecting)
        tasks = [*connecting, *self._accepting]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._spare.close()
        for task, connection in connecting.items():
            if task.cancelled():
                connection.close()  # a task that was cancelled before it began closes nothing

    async def _accept(self, listener: socket.socket) -> None:
        with listener:
            while True:
                self._spare.refill()
                try:
                    connection, address = await asyncio.get_running_loop().sock_accept(listener)
                except OSError as error:  # otherwise the peer disconnected already
                    no_file = error.errno in NO_FILE_IS_LEFT
                    if not (no_file and self._accept_with_spare_file(listener)):
                        await asyncio.sleep(_RETRY_S)
                else:
                    self._admit(connection, address)
                # A flood of connections must not block the event loop.
                await asyncio.sleep(0)

    def _accept_with_spare_file(self, listener: socket.socket) -> bool:
        """Whether a connection was accepted."""
        if self._may_log("no_files"):
            _log.warning("no file descriptor is left for a connection")
        accepted = self._spare.accept(listener)
        if accepted is None:
            return False
        connection, address = accepted
        self._admit(connection, address, once=True)
        return True

    def _admit(self, connection: socket.socket, address: Any, *, once: bool = False) -> None:
        """`once`: the connection ends with its first answer."""
        caps, peer = self._terms.caps, str(address[0])
        if len(self._peers) >= caps.total:
            self._refuse(connection, peer, "too_many", f"there are {caps.total}")
        elif sum(other == peer for other in self._peers.values()) >= caps.per_peer:
            self._refuse(
                connection, peer, "too_many_of_peer", f"there are {caps.per_peer} from this address"
            )
        else:
            key = object()
            self._peers[key] = peer
            lost = partial(self._lost, key)
            task = asyncio.create_task(
                self._connect(connection, peer, lost, partial(self._protocol, lost, once))
            )
            self._connecting[task] = connection
            task.add_done_callback(self._connecting.pop)

    def _lost(self, key: object) -> None:
        self._peers.pop(key, None)
        # Its descriptor is closed after this call.
        asyncio.get_running_loop().call_soon(self._spare.refill)

    async def _connect(
        self,
        connection: socket.socket,
        peer: str,
        lost: Callable[[], object],
        protocol: Callable[[], asyncio.Protocol],
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
            await asyncio.get_running_loop().connect_accepted_socket(protocol, connection, **tls)
        except ConnectionResetError:  # the peer has left, as probes of TCP do
            lost()
            connection.close()
        except OSError as error:
            lost()
            self._refuse(connection, peer, "handshake", str(error))

    def _refuse(self, connection: socket.socket, peer: str, reason: Refusal, detail: str) -> None:
        connection.close()
        self._terms.on_refused(reason)
        if self._may_log(reason):
            _log.warning("connection refused", peer=peer, reason=reason, detail=detail)

    def _may_log(self, reason: str) -> bool:
        """Whether a line with this reason may be logged. A flood of connections must not flood the
        log.
        """
        now = asyncio.get_running_loop().time()
        if now < self._quiet_until.get(reason, 0.0):
            return False
        self._quiet_until[reason] = now + _LOG_EVERY_S
        return True

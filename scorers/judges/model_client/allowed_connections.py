"""Connections to servers at allowed addresses only: a host and a port come in, a connection goes
out, or `AddressRefusedError`.

A name is resolved once, what it resolves to is checked, and that very address is connected to. So a
name that resolves to something else a moment later does not help anybody. TLS still asks for the
name.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import httpcore2

from pathgauge.scorers.judges.model_client.public_addresses import is_public

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host as text; raises `OSError`."""


class AddressRefusedError(Exception):
    """A host is at none but forbidden addresses."""


async def resolve(host: str, port: int) -> list[str]:
    """What the system says."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Makes the connections of an HTTP client."""

    def __init__(
        self,
        *,
        allow_private: bool,
        resolve: Resolve = resolve,
        network: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._allow_private = allow_private
        self._resolve = resolve
        self._network = network or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """A connection to one of the host's addresses, tried in their order. Raises
        `AddressRefusedError` and what httpcore raises.
        """
        try:
            found = list(dict.fromkeys(await self._resolve(host, port)))
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError("the name of the server is not known") from error
        allowed = (
            found if self._allow_private else [address for address in found if is_public(address)]
        )
        if found and not allowed:
            raise AddressRefusedError
        share = None if timeout is None else timeout / max(1, len(allowed))
        failure: Exception = httpcore2.ConnectError("the server has no address")
        for address in allowed:
            try:
                return await self._network.connect_tcp(
                    address, port, share, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """No URL leads here."""
        raise AddressRefusedError

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)

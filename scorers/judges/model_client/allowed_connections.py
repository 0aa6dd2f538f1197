"""Network backend that connects to allowed addresses only (SSRF protection).

A host name is resolved once, the result is checked, and that very address is connected to, so DNS
rebinding has no effect. TLS still verifies the host name.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

import httpcore2

from pathgauge.scorers.judges.model_client.public_addresses import is_public

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""Returns the addresses of a host and port as text; raises `OSError`."""


class AddressRefusedError(Exception):
    """A host has only forbidden addresses."""


async def resolve(host: str, port: int) -> list[str]:
    """The addresses that the system's resolver returns."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class CheckedBackend(httpcore2.AsyncNetworkBackend):
    """The network backend of the HTTP client."""

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
        """Connect to the first reachable allowed address; `timeout` is shared among them.

        Raises `AddressRefusedError`, and the exceptions of httpcore.
        """
        addresses = await self._allowed_addresses(host, port)
        share = None if timeout is None else timeout / max(1, len(addresses))
        failure: Exception = httpcore2.ConnectError("the server has no address")
        for address in addresses:
            try:
                return await self._network.connect_tcp(
                    address, port, share, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _allowed_addresses(self, host: str, port: int) -> list[str]:
        try:
            found = list(dict.fromkeys(await self._resolve(host, port)))
        except (OSError, UnicodeError) as error:
            raise httpcore2.ConnectError("the host name cannot be resolved") from error
        if self._allow_private:
            return found
        allowed = [address for address in found if is_public(address)]
        if found and not allowed:
            raise AddressRefusedError
        return allowed

    async def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[Any] | None = None
    ) -> httpcore2.AsyncNetworkStream:
        """Always refused; no configured URL uses it."""
        raise AddressRefusedError

    async def sleep(self, seconds: float) -> None:
        """Sleep, as the interface requires."""
        await asyncio.sleep(seconds)

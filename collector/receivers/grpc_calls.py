"""Limits the number of gRPC calls, and reads their messages.

Once a message is read, gRPC receives all of it, without reporting how much has arrived. Of a
message that is not read yet, it receives 64 KiB. So only a few messages are read at the same time,
and the others wait for their turn. A message that has arrived completely ends its turn at once.

The methods are registered as if they took a stream of messages. Only then does gRPC show the caller
before it receives the message, and report messages that it refused. The wire format is the same.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, TypeAlias
from urllib.parse import unquote
from weakref import WeakValueDictionary

import grpc

from pathgauge.collector.receivers.export import Code, ReceiverLimits
from pathgauge.collector.receivers.http_body import BodyError
from pathgauge.collector.receivers.memory_guard import MemoryGuard, NoMemoryError

MAX_ACTIVE = 512
"""Active calls; more are told to retry before their message is read. gRPC's own limit,
`maximum_concurrent_rpcs`, answers RESOURCE_EXHAUSTED without a delay, after which senders drop the
data.
"""
MAX_ACTIVE_OF_PEER = 64
"""The same for one address, so that a peer whose calls never end does not block all others."""
MAX_ARRIVING_OF_PEER = 8
"""Messages of one address that are read at the same time; at most half of all."""
ARRIVING_COST = 2
"""Memory that a message takes while it arrives, for each of its bytes: it may be compressed."""

STATUS: dict[Code, grpc.StatusCode] = {
    "undecodable": grpc.StatusCode.INVALID_ARGUMENT,
    "too_large": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "too_slow": grpc.StatusCode.DEADLINE_EXCEEDED,
}
"""The status of final answers. All others are UNAVAILABLE, with a delay."""

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class Turns:
    """Limits how many messages of a server are read at the same time."""

    def __init__(self, max_wait: float, max_arriving: int) -> None:
        """`max_wait` is in seconds. At most `max_arriving` messages are read at the same time."""
        self._max_wait = max_wait
        self._all = asyncio.Semaphore(max_arriving)
        self._max_of_peer = min(MAX_ARRIVING_OF_PEER, max(1, max_arriving // 2))
        self._of_peers: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, peer: str) -> AsyncIterator[None]:
        """Wait for the turn of a message, which lasts as long as the context. Raises `BodyError`
        after `max_wait`.
        """
        of_peer = self._of_peers.get(peer)
        if of_peer is None:
            of_peer = self._of_peers[peer] = asyncio.Semaphore(self._max_of_peer)
        if not (of_peer.locked() or self._all.locked()):  # usually: no timer is needed
            async with of_peer, self._all:
                yield
            return
        async with AsyncExitStack() as semaphores:
            try:
                async with asyncio.timeout(self._max_wait):
                    await semaphores.enter_async_context(of_peer)
                    await semaphores.enter_async_context(self._all)
            except TimeoutError:
                raise _busy() from None
            yield


class Calls:
    """The active calls of one kind."""

    def __init__(
        self, limits: ReceiverLimits, turns: Turns, memory: MemoryGuard | None = None
    ) -> None:
        """`memory` refuses messages near the memory limit of the process."""
        self._limits = limits
        self._memory = memory or MemoryGuard()
        self._turns = turns
        self._active: Counter[str] = Counter()

    @contextmanager
    def admitted(self, context: Context) -> Iterator[None]:
        """Count the call as active as long as the context lasts. Raises `BodyError` when there are
        too many.
        """
        peer = _peer(context)
        if self._active.total() >= MAX_ACTIVE or self._active[peer] >= MAX_ACTIVE_OF_PEER:
            raise _busy()
        self._active[peer] += 1
        try:
            yield
        finally:
            self._active[peer] -= 1
            if not self._active[peer]:
                del self._active[peer]

    async def message(self, context: Context) -> bytes:
        """The message of a call. Raises `BodyError`."""
        try:
            async with (
                self._turns.turn(_peer(context)),
                asyncio.timeout(self._limits.body_timeout_s),
            ):
                with self._memory.reserved(ARRIVING_COST * self._limits.max_request_bytes):
                    body: Any = await context.read()
        except NoMemoryError as error:
            raise BodyError("busy", str(error)) from None
        except TimeoutError:
            raise BodyError(
                "too_slow", f"the message did not arrive within {self._limits.body_timeout_s:g} s"
            ) from None
        if not isinstance(body, bytes):  # gRPC has refused and answered it
            raise BodyError(
                "too_large", f"found no message of at most {self._limits.max_request_bytes:,} bytes"
            )
        return body


def address(peer: str) -> str:
    """The address of a caller, as people write it: gRPC says `ipv6:%5B::1%5D:4317`."""
    _, _, host = unquote(peer).rpartition(":")[0].partition(":")
    return host.strip("[]")


def _peer(context: Context) -> str:
    return context.peer().rpartition(":")[0]


def _busy() -> BodyError:
    return BodyError("busy", "too many requests at a time, try again")

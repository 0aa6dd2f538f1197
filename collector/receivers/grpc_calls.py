"""The calls to a gRPC service, under caps: a call comes in, its message goes out, or an error that
says why it is not taken.

gRPC lets in a whole message as soon as it is read, tells nobody how much of it has arrived, and
lets in 64 KiB of one that is not read. So only a few are read at a time. The others wait their
turn, which is over at once where a message has arrived.

Methods that use this are served as if they took a stream: only so does gRPC let us see who calls
before it takes in the message, and tell us of messages that it refused. On the wire the two are the
same.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any, TypeAlias
from weakref import WeakValueDictionary

import grpc

from pathgauge.collector.receivers.export import Code, ReceiverLimits
from pathgauge.collector.receivers.http_body import BodyError

MAX_UNDER_WAY = 512
"""Calls that are read or wait for their answer; more are told to retry, before they are read. gRPC
has a limit of its own, `maximum_concurrent_rpcs`, but answers RESOURCE_EXHAUSTED without a delay:
data lost.
"""
MAX_UNDER_WAY_OF_PEER = 64
"""From one address, so that one peer whose calls never end does not keep all others out."""
MAX_ARRIVING = 64
"""Messages that are read at a time. Each may hold as many bytes as the largest message."""
MAX_ARRIVING_OF_PEER = 8
"""From one address."""

STATUS: dict[Code, grpc.StatusCode] = {
    "undecodable": grpc.StatusCode.INVALID_ARGUMENT,
    "too_large": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "too_slow": grpc.StatusCode.DEADLINE_EXCEEDED,
}
"""Of answers that carry no delay; those that do are UNAVAILABLE."""

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class Turns:
    """Turns to be read, for all messages of a server."""

    def __init__(self, patience: float) -> None:
        """`patience` is in seconds."""
        self._patience = patience
        self._all = asyncio.Semaphore(MAX_ARRIVING)
        self._of_peers: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, peer: str) -> AsyncIterator[None]:
        """The turn of a message, until the context is left. Raises `BodyError` when it does not
        come.
        """
        of_peer = self._of_peers.setdefault(peer, asyncio.Semaphore(MAX_ARRIVING_OF_PEER))
        async with AsyncExitStack() as places:
            try:
                async with asyncio.timeout(self._patience):
                    await places.enter_async_context(of_peer)
                    await places.enter_async_context(self._all)
            except TimeoutError:
                raise _busy() from None
            yield


class Calls:
    """The calls of one kind that are under way."""

    def __init__(self, limits: ReceiverLimits, turns: Turns) -> None:
        self._limits = limits
        self._turns = turns
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def admitted(self, context: Context) -> Iterator[None]:
        """The call is under way until the context is left. Raises `BodyError` when there are too
        many.
        """
        peer = _peer(context)
        if (
            self._under_way.total() >= MAX_UNDER_WAY
            or self._under_way[peer] >= MAX_UNDER_WAY_OF_PEER
        ):
            raise _busy()
        self._under_way[peer] += 1
        try:
            yield
        finally:
            self._under_way[peer] -= 1
            self._under_way += Counter()  # drops the peers without calls

    async def message(self, context: Context) -> bytes:
        """The message of a call. Raises `BodyError`."""
        try:
            async with (
                self._turns.turn(_peer(context)),
                asyncio.timeout(self._limits.body_timeout_s),
            ):
                body: Any = await context.read()
        except TimeoutError:
            raise BodyError(
                "too_slow", f"the message did not arrive within {self._limits.body_timeout_s:g} s"
            ) from None
        if not isinstance(body, bytes):  # gRPC has refused it, and answered already
            raise BodyError(
                "too_large", f"found no message of at most {self._limits.max_request_bytes:,} bytes"
            )
        return body


def _peer(context: Context) -> str:
    return context.peer().rpartition(":")[0]


def _busy() -> BodyError:
    return BodyError("busy", "too many requests at a time, try again")

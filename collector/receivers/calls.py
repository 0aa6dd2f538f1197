"""The calls to a gRPC service, under caps: a call comes in, its message goes out, or an error that says why it is not taken.

Methods that use this are served as if they took a stream: only so does gRPC let us see who calls before it takes in the message, and tell
us of messages that it refused. On the wire the two are the same.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import grpc

from collector.receivers.body import BodyError
from collector.receivers.export import Code, ReceiverLimits

MAX_UNDER_WAY = 512
"""Calls that are read or wait for their answer; more are told to retry, before they are read. gRPC has a limit of its own,
`maximum_concurrent_rpcs`, but answers RESOURCE_EXHAUSTED without a delay: data lost."""
MAX_UNDER_WAY_OF_PEER = 64
"""From one address, so that one peer whose calls never end does not keep all others out."""

STATUS: dict[Code, grpc.StatusCode] = {
    "undecodable": grpc.StatusCode.INVALID_ARGUMENT,
    "too_large": grpc.StatusCode.RESOURCE_EXHAUSTED,
    "too_slow": grpc.StatusCode.DEADLINE_EXCEEDED,
}
"""Of answers that carry no delay; those that do are UNAVAILABLE."""

Context: TypeAlias = "grpc.aio.ServicerContext[Any, Any]"


class Calls:
    """The calls of one kind that are under way."""

    def __init__(self, limits: ReceiverLimits) -> None:
        self._limits = limits
        self._under_way: Counter[str] = Counter()

    @contextmanager
    def admitted(self, context: Context) -> Iterator[None]:
        """The call is under way until the context is left. Raises `BodyError` when there are too many."""
        peer = context.peer().rpartition(":")[0]
        if self._under_way.total() >= MAX_UNDER_WAY or self._under_way[peer] >= MAX_UNDER_WAY_OF_PEER:
            raise BodyError("busy", "too many requests at a time, try again")
        self._under_way[peer] += 1
        try:
            yield
        finally:
            self._under_way[peer] -= 1
            self._under_way += Counter()  # drops the peers without calls

    async def message(self, context: Context) -> bytes:
        """The message of a call. Raises `BodyError`."""
        try:
            async with asyncio.timeout(self._limits.body_timeout_s):
                body: Any = await context.read()
        except TimeoutError:
            raise BodyError("too_slow", f"the message did not arrive within {self._limits.body_timeout_s:g} s") from None
        if not isinstance(body, bytes):  # gRPC has refused it, and answered already
            raise BodyError("too_large", f"found no message of at most {self._limits.max_request_bytes:,} bytes")
        return body

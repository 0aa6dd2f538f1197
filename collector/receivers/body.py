"""Reads the body of an HTTP request under limits: size as sent, size when decompressed, time, and memory of all together.

Frameworks limit none of these: a megabyte of gzip holds a gigabyte, and a byte every few seconds holds a connection for ever.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from collector.receivers.export import Code, ReceiverLimits

_GZIP_WINDOW = 31
"""zlib's largest window, and a gzip header expected."""
_MAX_GZIP_MEMBERS = 64
"""Concatenated gzip streams are one stream; a body of nothing but empty ones would cost time without giving bytes."""
_MAX_DISCARDED_BYTES = 64 * 1024 * 1024


class BodyError(Exception):
    """A body that is not taken; `code` says how to answer."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code: Code = code


class BodyReader:
    """Reads the bodies of one server."""

    def __init__(self, limits: ReceiverLimits) -> None:
        self._limits = limits
        self._held_bytes = 0

    @asynccontextmanager
    async def read(self, chunks: AsyncIterator[bytes], *, gzip: bool) -> AsyncIterator[bytes]:
        """Give the whole body, decompressed; its memory counts as held until the context is left. Raises `BodyError`."""
        parts: list[bytes] = []
        try:
            await self._fill(parts, chunks, Gunzip(self._limits.max_request_bytes) if gzip else None)
            parts[:] = [b"".join(parts)]
            yield parts[0]
        finally:
            self._held_bytes -= sum(map(len, parts))

    async def _fill(self, parts: list[bytes], chunks: AsyncIterator[bytes], gunzip: Gunzip | None) -> None:
        try:
            async with asyncio.timeout(self._limits.body_timeout_s):
                try:
                    await self._collect(parts, chunks, gunzip)
                except BodyError:
                    await _discard(chunks)
                    raise
        except TimeoutError:
            raise BodyError("too_slow", f"the body did not arrive within {self._limits.body_timeout_s:g} s") from None

    async def _collect(self, parts: list[bytes], chunks: AsyncIterator[bytes], gunzip: Gunzip | None) -> None:
        limit, received = self._limits.max_request_bytes, 0
        async for chunk in chunks:
            received += len(chunk)
            if received > limit:
                raise BodyError("too_large", f"more than {limit:,} bytes")
            part = gunzip.feed(chunk) if gunzip else chunk
            if self._held_bytes + len(part) > self._limits.max_held_bytes:
                raise BodyError("busy", "too many requests at a time, try again")
            self._held_bytes += len(part)
            parts.append(part)
        if gunzip:
            gunzip.finish()


class Gunzip:
    """Decompresses gzip, piece by piece, up to `limit` bytes in all."""

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit
        self._members = 1
        self._stream = zlib.decompressobj(_GZIP_WINDOW)

    def feed(self, data: bytes) -> bytes:
        """Return what `data` adds. Raises `BodyError`, without having produced more than the limit."""
        parts = []
        while data:
            if self._stream.eof:
                self._next_member()
            parts.append(self._decompress(data))
            data = self._stream.unused_data
        return b"".join(parts)

    def finish(self) -> None:
        """Say that no more data comes. Raises `BodyError` when the stream is cut off."""
        if not self._stream.eof:
            raise BodyError("undecodable", "the gzip stream ends early")

    def _decompress(self, data: bytes) -> bytes:
        try:
            part = self._stream.decompress(data, self._left + 1)
        except zlib.error as error:
            raise BodyError("undecodable", f"not gzip: {error}") from error
        self._left -= len(part)
        if self._left < 0:
            raise BodyError("too_large", f"more than {self._limit:,} bytes when decompressed")
        return part

    def _next_member(self) -> None:
        self._members += 1
        if self._members > _MAX_GZIP_MEMBERS:
            raise BodyError("undecodable", f"more than {_MAX_GZIP_MEMBERS} gzip streams in one body")
        self._stream = zlib.decompressobj(_GZIP_WINDOW)


async def _discard(chunks: AsyncIterator[bytes]) -> None:
    """Let the sender finish: many listen for an answer only then, and would take a closed connection for a passing fault."""
    discarded = 0
    async for chunk in chunks:
        discarded += len(chunk)
        if discarded > _MAX_DISCARDED_BYTES:
            return

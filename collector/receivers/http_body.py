"""Reads the body of an HTTP request under limits: size as sent, size when decompressed, time, rate,
and the memory of all bodies together.

Web frameworks limit none of these. But a megabyte of gzip, or 32 KiB of zstd, can hold a gigabyte,
and a sender of one byte every few seconds holds a connection for ever.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal, TypeAlias

import zstandard

from pathgauge.collector.receivers.export import Code, ReceiverLimits
from pathgauge.collector.receivers.memory_guard import NoMemoryError

Compression: TypeAlias = Literal["none", "gzip", "zstd"]

_GZIP_WINDOW = 31
"""zlib's largest window, with a gzip header."""
_MAX_GZIP_MEMBERS = 64
"""A body may be several concatenated gzip streams. Many empty ones would cost time without giving
any bytes.
"""
_MAX_ZSTD_WINDOW = 8 * 1024 * 1024
"""The most that receivers have to support (RFC 9659)."""
_MAX_DISCARDED_BYTES = 64 * 1024 * 1024


class BodyError(Exception):
    """A body that is rejected; `code` decides the answer."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code: Code = code


class BodyReader:
    """Reads the bodies of one server."""

    def __init__(self, limits: ReceiverLimits) -> None:
        self._limits = limits
        self._held_bytes = 0

    @asynccontextmanager
    async def read(
        self, chunks: AsyncIterator[bytes], compression: Compression = "none"
    ) -> AsyncIterator[bytes]:
        """Read the whole body and decompress it. Its memory counts as held until the end of the
        context. Raises `BodyError`.
        """
        arriving, body = bytearray(), b""
        try:
            await self._fill(arriving, chunks, compression)
            body = bytes(arriving)
            arriving.clear()
            yield body
        finally:
            self._held_bytes -= len(arriving) + len(body)

    async def _fill(
        self, body: bytearray, chunks: AsyncIterator[bytes], compression: Compression
    ) -> None:
        started = asyncio.get_running_loop().time()
        gunzip = Gunzip(self._limits.max_request_bytes) if compression == "gzip" else None
        try:
            await self._collect(body, chunks, gunzip, started)
            if compression == "zstd":
                self._decompress(body)
        except BodyError as error:
            if error.code != "too_slow":
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(started + self._limits.body_timeout_s):
                        await _discard(chunks)
            raise

    async def _collect(
        self, body: bytearray, chunks: AsyncIterator[bytes], gunzip: Gunzip | None, started: float
    ) -> None:
        received = 0
        try:
            async with asyncio.timeout_at(started + self._time_for(received)) as deadline:
                async for chunk in chunks:
                    received += len(chunk)
                    deadline.reschedule(started + self._time_for(received))
                    self._add(body, chunk, received, gunzip)
        except TimeoutError:
            raise BodyError("too_slow", self._timeout_message(received)) from None
        if gunzip:
            gunzip.finish()

    def _timeout_message(self, received: int) -> str:
        limits = self._limits
        if self._time_for(received) == limits.body_timeout_s:
            return f"the body did not arrive within {limits.body_timeout_s:g} s"
        return f"the body arrives at less than {limits.min_body_rate:,.0f} bytes/s"

    def _time_for(self, received: int) -> float:
        """Seconds from the start until which more than `received` bytes must have arrived."""
        return min(
            self._limits.body_timeout_s,
            max(self._limits.body_grace_s, received / self._limits.min_body_rate),
        )

    def _add(self, body: bytearray, chunk: bytes, received: int, gunzip: Gunzip | None) -> None:
        if received > self._limits.max_request_bytes:
            raise BodyError("too_large", f"more than {self._limits.max_request_bytes:,} bytes")
        self._hold(body, gunzip.feed(chunk) if gunzip else chunk)

    def _decompress(self, body: bytearray) -> None:
        compressed = bytes(body)
        body.clear()
        self._held_bytes -= len(compressed)
        self._hold(body, unzstd(compressed, self._limits.max_request_bytes))

    def _hold(self, body: bytearray, part: bytes) -> None:
        if self._held_bytes + len(part) > self._limits.max_held_bytes:
            raise BodyError("busy", "too many requests at a time, try again")
        try:
            self._limits.memory.check(len(part))
        except NoMemoryError as error:
            raise BodyError("busy", str(error)) from None
        self._held_bytes += len(part)
        body += part


class Gunzip:
    """Decompresses gzip piece by piece, up to `limit` bytes in total."""

    def __init__(self, limit: int) -> None:
        self._limit = self._left = limit
        self._members = 1
        self._stream = zlib.decompressobj(_GZIP_WINDOW)

    def feed(self, data: bytes) -> bytes:
        """Decompress more data. Raises `BodyError` instead of exceeding the limit."""
        parts = []
        while data:
            if self._stream.eof:
                self._next_member()
            parts.append(self._decompress(data))
            data = self._stream.unused_data
        return b"".join(parts)

    def finish(self) -> None:
        """Check that the stream is complete. Raises `BodyError`."""
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
            raise BodyError(
                "undecodable", f"more than {_MAX_GZIP_MEMBERS} gzip streams in one body"
            )
        self._stream = zlib.decompressobj(_GZIP_WINDOW)


def unzstd(data: bytes, limit: int) -> bytes:
    """The content of one zstd frame, of `limit` bytes at most. Raises `BodyError`.

    The library bounds only what it reads as a stream, and such a reader does not tell whether the
    frame is complete. So the content is read twice: to measure it, and to take it.
    """
    decompressor = zstandard.ZstdDecompressor(max_window_size=_MAX_ZSTD_WINDOW)
    try:
        if len(decompressor.stream_reader(data).read(limit + 1)) > limit:
            raise BodyError("too_large", f"more than {limit:,} bytes when decompressed")
        frame = decompressor.decompressobj()  # the two share their state, one after the other
        content = frame.decompress(data)
    except zstandard.ZstdError as error:
        raise BodyError("undecodable", f"not zstd: {error}") from error
    if not frame.eof:
        raise BodyError("undecodable", "the zstd frame ends early")
    if frame.unused_data:
        raise BodyError("undecodable", "bytes after the end of the zstd frame")
    return content


async def _discard(chunks: AsyncIterator[bytes]) -> None:
    """Let the sender finish. Many senders read the answer only then, and treat a connection that is
    closed earlier as a temporary failure.
    """
    discarded = 0
    async for chunk in chunks:
        discarded += len(chunk)
        if discarded > _MAX_DISCARDED_BYTES:
            return

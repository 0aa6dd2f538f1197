"""A TCP connection that can be cut or fall silent: clients connect to a `Link`, which passes their
bytes on to a server on loopback.
"""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from support.ports import free_port

_RESET = struct.pack("ii", 1, 0)
"""A closed socket resets its connection, as a failed network does."""


class Link:
    """Passes on all connections to a port, from its creation until the process ends."""

    def __init__(self, target: int) -> None:
        self.port = free_port()
        self.connections = 0
        """How many it has passed on so far."""
        self._target = target
        self._open: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self._passing = asyncio.Event()
        self._passing.set()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    def cut(self) -> None:
        """Reset all connections."""
        asyncio.run_coroutine_threadsafe(self._cut(), self._loop).result()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Pass nothing on within this context, and cut all connections at its end."""
        self._loop.call_soon_threadsafe(self._passing.clear)
        try:
            yield
        finally:
            self.cut()
            self._loop.call_soon_threadsafe(self._passing.set)

    async def _listen(self) -> None:
        await asyncio.start_server(self._connected, "127.0.0.1", self.port)

    async def _cut(self) -> None:
        for writer in self._open:
            writer.transport.abort()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _resets_when_closed(writer)
        await self._passing.wait()
        try:
            to_server = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        server_reader, server_writer = to_server
        _resets_when_closed(server_writer)
        both = {writer, server_writer}
        self._open |= both
        self.connections += 1
        await asyncio.gather(self._pass(reader, server_writer), self._pass(server_reader, writer))
        for one in both:
            one.transport.abort()
        self._open -= both

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self._passing.wait()
                writer.write(data)
                await writer.drain()
            writer.write_eof()
        except OSError:
            writer.transport.abort()


def _resets_when_closed(writer: asyncio.StreamWriter) -> None:
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)

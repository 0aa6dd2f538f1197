"""Messages between the processes of one collector, over a pair of sockets.

Messages are pickled: both ends are the same program, and one has started the other. A `tell` has no
answer, and is handled before what follows it. A `call` is answered, and runs beside others.
"""

from __future__ import annotations

import asyncio
import itertools
import pickle
import socket
import struct
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal, NamedTuple

import structlog

_log = structlog.get_logger(__name__)

_LENGTH = struct.Struct("!I")
_BUFFER_BYTES = 1 << 20
Handle = Callable[[Any], Awaitable[Any]]
"""Handles a message; its result answers a call."""


class ChannelClosedError(ConnectionError):
    """The other process has ended."""


class _Frame(NamedTuple):
    kind: Literal["tell", "call", "answer", "error"]
    number: int
    payload: Any


class Channel:
    """One end. To be used in the event loop that `open_channel` was called in."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._numbers = itertools.count()
        self._answers: dict[int, asyncio.Future[Any]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    async def serve(self, handle: Handle) -> None:
        """Handle messages until the other end is closed."""
        try:
            while True:
                frame = await self._read()
                if frame.kind == "tell":
                    await self._handle(handle, frame.payload)
                elif frame.kind == "call":
                    self._begin(self._answer(handle, frame))
                else:
                    self._finish(frame)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.close()

    async def receive(self) -> Any:
        """The next message, before `serve`. Raises `IncompleteReadError` if there is none."""
        return (await self._read()).payload

    async def tell(self, message: object) -> None:
        """Send a message. Raises `ChannelClosedError`."""
        await self._send(_Frame("tell", 0, message))

    async def call(self, message: object) -> Any:
        """Send a message and wait for its answer. Raises `ChannelClosedError`, and what the other
        end has raised.
        """
        number = next(self._numbers)
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send(_Frame("call", number, message))
            return await answer
        finally:
            del self._answers[number]

    def close(self) -> None:
        """End all calls. Safe to call twice."""
        if self._closed:
            return
        self._closed = True
        self._writer.close()
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(ChannelClosedError("the process has ended"))

    async def _send(self, frame: _Frame) -> None:
        body = pickle.dumps(tuple(frame), protocol=5)
        try:
            # While the other end reads nothing, whoever gives up must leave nothing in the buffer.
            await self._writer.drain()
            if self._closed:
                raise ChannelClosedError("the process has ended")
            self._writer.write(_LENGTH.pack(len(body)) + body)
            await self._writer.drain()
        except ChannelClosedError:
            raise
        except ConnectionError as error:
            raise ChannelClosedError("the process has ended") from error

    async def _read(self) -> _Frame:
        [length] = _LENGTH.unpack(await self._reader.readexactly(_LENGTH.size))
        return _Frame(*pickle.loads(await self._reader.readexactly(length)))

    def _begin(self, answering: Awaitable[None]) -> None:
        task = asyncio.ensure_future(answering)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _handle(self, handle: Handle, message: object) -> None:
        try:
            await handle(message)
        except ChannelClosedError:
            raise
        except Exception:  # the failure of one message must not stop the next
            _log.exception("message failed", message=type(message).__name__)

    async def _answer(self, handle: Handle, frame: _Frame) -> None:
        try:
            answer = _Frame("answer", frame.number, await handle(frame.payload))
        except Exception as error:  # the caller gets it
            answer = _Frame("error", frame.number, _sendable(error))
        with suppress(ChannelClosedError):
            await self._send(answer)

    def _finish(self, frame: _Frame) -> None:
        answer = self._answers.get(frame.number)
        if answer is None or answer.done():
            return
        if frame.kind == "error":
            answer.set_exception(frame.payload)
        else:
            answer.set_result(frame.payload)


def _sendable(error: Exception) -> Exception:
    """The error, or its text if the other end could not read it."""
    try:
        copy = pickle.loads(pickle.dumps(error))
    except Exception:  # it has another constructor than exceptions usually have
        copy = None
    return error if type(copy) is type(error) else RuntimeError(repr(error))


async def open_channel(connection: socket.socket) -> Channel:
    """A channel over one end of a pair of sockets."""
    return Channel(*await asyncio.open_connection(sock=connection, limit=_BUFFER_BYTES))

"""The control socket of a running collector. A client sends a request as one line of JSON, and gets
one line of JSON back.

The socket is in the folder of the store; only the user of the collector can connect. The collector
holds the lock of that folder, so a socket that exists when it starts is left from an ended process.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path

import structlog
from pydantic import BaseModel, ConfigDict, ValidationError

from pathgauge.collector.store import Purged, Selection, StoreError

SOCKET = "control"

_log = structlog.get_logger(__name__)


class Request(BaseModel):
    """A request of a client."""

    model_config = ConfigDict(extra="forbid")
    purge: Selection


class Answer(BaseModel):
    """What was purged, or why it failed."""

    purged: Purged | None = None
    error: str = ""


class ControlServer:
    """Serves requests from `start` to `stop`."""

    def __init__(self, folder: Path, purge: Callable[[Selection], Awaitable[Purged]]) -> None:
        """`folder` is the folder of the store."""
        self._path = folder / SOCKET
        self._purge = purge
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen. If that fails, log it; the collector runs without a control socket."""
        listener = socket.socket(socket.AF_UNIX)
        try:
            self._path.unlink(missing_ok=True)
            listener.bind(str(self._path))
            self._path.chmod(0o600)  # before it listens, so nobody can connect yet
            self._server = await asyncio.start_unix_server(self._serve, sock=listener)
        except OSError as error:
            listener.close()
            _log.warning(
                "no control socket: stop the collector before a purge",
                path=str(self._path),
                error=str(error),
            )

    async def stop(self) -> None:
        """Close all connections. Safe to call twice."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        with suppress(OSError):  # a disk that became read-only must not end the stop
            self._path.unlink()
        for connection in self._connections:
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.current_task()
        assert connection is not None
        self._connections.add(connection)
        try:
            with suppress(ConnectionError, ValueError):  # disconnected, or the line is too long
                answer = await self._answer(await reader.readline())
                writer.write(answer.model_dump_json().encode() + b"\n")
                await writer.drain()
        finally:
            self._connections.discard(connection)
            writer.close()

    async def _answer(self, line: bytes) -> Answer:
        try:
            selection = Request.model_validate_json(line).purge
        except ValidationError:
            return Answer(
                error=(
                    "found a request of another version of pathgauge, expected the version of the"
                    " running collector"
                )
            )
        try:
            purged = await self._purge(selection)
        except StoreError as error:
            return Answer(error=str(error))
        except Exception:
            _log.exception("purge failed")
            return Answer(error="the purge failed, see the log of the collector")
        selected = {name: value for name, value in asdict(selection).items() if value is not None}
        _log.info(
            "purged",
            **selected,
            requests=purged.requests,
            results=purged.results,
            unfinished=purged.unfinished,
        )
        return Answer(purged=replace(purged, traces=frozenset(), evaluations=frozenset()))


def ask(folder: Path, selection: Selection) -> Purged:
    """Have the collector that runs on the store in `folder` purge it, without a time limit. Raises
    `StoreError`.
    """
    path = folder / SOCKET
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path))
            connection.sendall(Request(purge=selection).model_dump_json().encode() + b"\n")
        except OSError as error:
            raise StoreError(
                f"{path}: the collector that runs on this store does not answer ({error}); it may"
                " be starting or stopping: try again, or stop it first"
            ) from error
        with connection.makefile("rb") as answers, suppress(ConnectionError):
            line = answers.readline()
    if not line:
        raise StoreError(f"{path}: the collector stopped before it answered; purge again")
    answer = Answer.model_validate_json(line)
    if answer.purged is None:
        raise StoreError(answer.error)
    return answer.purged

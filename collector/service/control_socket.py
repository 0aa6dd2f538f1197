"""The control socket of a running collector: a line of JSON comes in, what it asks for is done, a
line of JSON goes out.

It lies in the folder of the store, for the user of the collector alone. The collector holds the
lock of that folder, so a socket that is there when it starts is left over from a process that
ended.
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
    """What is asked for."""

    model_config = ConfigDict(extra="forbid")
    purge: Selection


class Answer(BaseModel):
    """What was done, or why it was not."""

    purged: Purged | None = None
    error: str = ""


class ControlServer:
    """Listens from `start` to `stop`."""

    def __init__(self, folder: Path, purge: Callable[[Selection], Awaitable[Purged]]) -> None:
        """`folder` is that of the store."""
        self._path = folder / SOCKET
        self._purge = purge
        self._server: asyncio.Server | None = None
        self._conversations: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen; where that cannot be done, the log says so, and the collector runs without."""
        listener = socket.socket(socket.AF_UNIX)
        try:
            self._path.unlink(missing_ok=True)
            listener.bind(str(self._path))
            self._path.chmod(0o600)  # nobody can connect before it listens
            self._server = await asyncio.start_unix_server(self._serve, sock=listener)
        except OSError as error:
            listener.close()
            _log.warning(
                "there is no control socket: a purge needs the collector stopped",
                path=str(self._path),
                error=str(error),
            )

    async def stop(self) -> None:
        """Hang up. Safe to call twice."""
        if self._server is None:
            return
        self._server.close()
        self._server = None
        self._path.unlink(missing_ok=True)
        for conversation in self._conversations:
            conversation.cancel()
        await asyncio.gather(*self._conversations, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        conversation = asyncio.current_task()
        assert conversation is not None
        self._conversations.add(conversation)
        try:
            with suppress(ConnectionError, ValueError):  # it hung up, or sends a line without end
                answer = await self._answer(await reader.readline())
                writer.write(answer.model_dump_json().encode() + b"\n")
                await writer.drain()
        finally:
            self._conversations.discard(conversation)
            writer.close()

    async def _answer(self, line: bytes) -> Answer:
        try:
            selection = Request.model_validate_json(line).purge
        except ValidationError:
            return Answer(
                error=(
                    "found a request that this version of pathgauge does not know, expected one of"
                    " the same version"
                )
            )
        try:
            purged = await self._purge(selection)
        except StoreError as error:
            return Answer(error=str(error))
        except Exception:
            _log.exception("purge failed")
            return Answer(error="the purge failed, the log of the collector says why")
        wanted = {name: value for name, value in asdict(selection).items() if value is not None}
        _log.info(
            "purged",
            **wanted,
            requests=purged.requests,
            results=purged.results,
            unfinished=purged.unfinished,
        )
        return Answer(purged=replace(purged, traces=frozenset(), evaluations=frozenset()))


def ask(folder: Path, selection: Selection) -> Purged:
    """Have the collector that runs on the store in `folder` purge it; waits as long as that takes.
    Raises `StoreError`.
    """
    path = folder / SOCKET
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(str(path))
            connection.sendall(Request(purge=selection).model_dump_json().encode() + b"\n")
        except OSError as error:
            advice = "it may be starting or stopping: try again, or stop it and purge then"
            raise StoreError(
                f"{path}: the collector that runs on this store does not answer ({error}); {advice}"
            ) from error
        with connection.makefile("rb") as answers, suppress(ConnectionError):
            line = answers.readline()
    if not line:
        raise StoreError(f"{path}: the collector ended before it answered; purge again")
    answer = Answer.model_validate_json(line)
    if answer.purged is None:
        raise StoreError(answer.error)
    return answer.purged

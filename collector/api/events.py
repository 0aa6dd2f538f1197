"""New results as they are stored, as server-sent events.

A stream ends after `MAX_STREAM_S`; browsers then connect again and name the last event that they
have seen, so that nothing is left out. Each stream looks into the store once a second. Results of
judges change a result that was sent already, and are not sent again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pathgauge.collector.api.authorization import Authorization, authorized
from pathgauge.collector.api.problems import ProblemError, answered
from pathgauge.collector.api.queries import EventQuery, parameters
from pathgauge.collector.api.query_thread import QueryThread
from pathgauge.collector.api.reading import result_of
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.store import StoreError
from pathgauge.collector.store.queries.reading import reading
from pathgauge.collector.store.queries.results import Filter, Page, after, newest
from pathgauge.collector.store.queries.stored_result import StoredResult

MAX_STREAMS = 32
MAX_STREAM_S = 600.0
POLL_S = 1.0
_MAX_ROWS = 500
"""Rows that one look reads."""
_ALIVE = b": alive\n\n"


class Events:
    """The endpoint of the streams."""

    def __init__(self, sources: Sources, authorization: Authorization, thread: QueryThread) -> None:
        self._sources = sources
        self._authorization = authorization
        self._thread = thread
        self._streams = 0

    async def answer(self, request: Request) -> Response:
        """Answer a request with a stream."""
        return await answered(self._answer(request))

    async def _answer(self, request: Request) -> Response:
        tenant = authorized(self._authorization, request)
        wanted = EventQuery.model_validate(parameters(request)).filter(tenant)
        folder = self._sources.folder
        if folder is None:
            raise ProblemError(503, "store: memory keeps no results")
        if self._streams >= MAX_STREAMS:
            raise ProblemError(503, "too many streams, try again", {"retry-after": "5"})
        first = await self._thread.run(lambda: _first(folder, request))
        return StreamingResponse(
            self._stream(folder, wanted, first),
            headers={"cache-control": "no-store", "x-content-type-options": "nosniff"},
            media_type="text/event-stream",
        )

    async def _stream(self, folder: Path, wanted: Filter, row: int) -> AsyncIterator[bytes]:
        self._streams += 1
        ends = time.monotonic() + MAX_STREAM_S
        try:
            yield _ALIVE
            while time.monotonic() < ends:
                try:
                    page = await self._thread.run(partial(_read, folder, wanted, row))
                except (ProblemError, StoreError):  # busy, or being purged: look again
                    page = Page((), row)
                row = page.next or row
                yield b"".join(map(_event, page.results)) or _ALIVE
                await asyncio.sleep(POLL_S)
        finally:
            self._streams -= 1


def _first(folder: Path, request: Request) -> int:
    """The cursor at which a stream begins: the last event that the client has seen, else now."""
    seen = request.headers.get("last-event-id", "")
    if seen.isascii() and seen.isdigit() and len(seen) < 19:
        return int(seen)
    with reading(folder) as connection:
        return newest(connection)


def _read(folder: Path, wanted: Filter, row: int) -> Page:
    with reading(folder) as connection:
        return after(connection, wanted, row, _MAX_ROWS)


def _event(result: StoredResult) -> bytes:
    text = result_of(result).model_dump_json()
    return f"event: result\nid: {result.row}\ndata: {text}\n\n".encode()

"""New results as they are stored, as server-sent events.

A stream ends after `MAX_STREAM_S`, and when the collector stops; browsers then connect again and
name the last event that they have seen, so that nothing is left out. Each stream looks into the
store once a second. Results of judges change a result that was sent already, and are not sent
again.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import partial

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from pathgauge.collector.api.authorization import Authorization, authorized
from pathgauge.collector.api.problems import ProblemError, answered
from pathgauge.collector.api.queries import EventQuery, read
from pathgauge.collector.api.query_thread import QueryThread
from pathgauge.collector.api.reading import result_of
from pathgauge.collector.api.sources import Sources
from pathgauge.collector.api.wanted_values import check_values
from pathgauge.collector.store import StoreError
from pathgauge.collector.store.queries.filter import Filter
from pathgauge.collector.store.queries.reading import Reading
from pathgauge.collector.store.queries.results import Page, after, newest
from pathgauge.collector.store.queries.stored_result import StoredResult

MAX_STREAMS = 32
MAX_STREAMS_OF_TENANT = 8
MAX_STREAM_S = 600.0
POLL_S = 1.0
_MAX_ROWS = 100
"""Rows that one look reads."""
_ALIVE = b": alive\n\n"


class Events:
    """The endpoint of the streams."""

    def __init__(self, sources: Sources, authorization: Authorization, thread: QueryThread) -> None:
        self._sources = sources
        self._authorization = authorization
        self._thread = thread
        self._streams: Counter[str | None] = Counter()
        """By tenant; `None`: those of readers."""

    async def answer(self, request: Request) -> Response:
        """Answer a request with a stream."""
        return await answered(self._answer(request))

    async def _answer(self, request: Request) -> Response:
        tenant = authorized(self._authorization, request)
        wanted = read(EventQuery, request, tenant).filter(tenant)
        reading = self._sources.reading
        if reading is None:
            raise ProblemError(503, "store: memory keeps no results")
        share = MAX_STREAMS if tenant is None else MAX_STREAMS_OF_TENANT
        if self._streams.total() >= MAX_STREAMS or self._streams[tenant] >= share:
            raise ProblemError(503, "too many streams, try again", {"retry-after": "5"})
        # Counted before anything is awaited, and until the answer has ended or is given up.
        self._streams[tenant] += 1
        try:
            first = await self._thread.run(lambda: _first(reading, request, wanted))
        except BaseException:
            self._streams[tenant] -= 1
            raise
        state = request.scope.get("state", {})
        stopping: asyncio.Event = state.get("stopping") or asyncio.Event()
        return _Stream(
            self._stream(reading, wanted, first, stopping),
            partial(self._streams.subtract, [tenant]),
        )

    async def _stream(
        self, reading: Reading, wanted: Filter, row: int, stopping: asyncio.Event
    ) -> AsyncIterator[bytes]:
        ends = time.monotonic() + MAX_STREAM_S
        yield _ALIVE
        while time.monotonic() < ends and not stopping.is_set():
            try:
                page = await self._thread.run(partial(_read, reading, wanted, row))
            except (ProblemError, StoreError):  # busy, or being purged: look again
                page = Page((), row)
            row = page.next or row
            yield b"".join(map(_event, page.results)) or _ALIVE
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), POLL_S)


class _Stream(StreamingResponse):
    """An answer that says when it has ended, even if it never began."""

    def __init__(self, content: AsyncIterator[bytes], on_end: Callable[[], object]) -> None:
        super().__init__(
            content,
            headers={"cache-control": "no-store", "x-content-type-options": "nosniff"},
            media_type="text/event-stream",
        )
        self._on_end = on_end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the answer."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._on_end()


def _first(reading: Reading, request: Request, wanted: Filter) -> int:
    """The cursor at which a stream begins: the last event that the client has seen, else now. An
    event that is still to come was seen in another store, which this one has replaced.
    """
    seen = request.headers.get("last-event-id", "")
    with reading() as connection:
        check_values(connection, wanted)
        now = newest(connection)
        if seen.isascii() and seen.isdigit() and len(seen) < 19:
            return min(int(seen), now)
        return now


def _read(reading: Reading, wanted: Filter, row: int) -> Page:
    with reading() as connection:
        return after(connection, wanted, row, _MAX_ROWS)


def _event(result: StoredResult) -> bytes:
    text = result_of(result).model_dump_json()
    return f"event: result\nid: {result.row}\ndata: {text}\n\n".encode()

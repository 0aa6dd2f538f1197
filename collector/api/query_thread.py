"""The one thread that answers queries, so that scoring keeps nearly all of the CPU.

While requests wait to be scored, the thread rests after each query, nine times as long as the
query has used the CPU. A few requests may wait for the thread; the others are told to come back.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pathgauge.collector.api.problems import ProblemError

MAX_WAITING = 64
"""Requests that wait for the thread."""
_REST = 9
_MAX_REST_S = 0.5

T = TypeVar("T")


class QueryThread:
    """Runs queries one after the other. For the event loop."""

    def __init__(self, is_busy: Callable[[], bool]) -> None:
        """`is_busy` returns whether requests wait to be scored."""
        self._is_busy = is_busy
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="queries")
        self._waiting = 0

    async def run(self, query: Callable[[], T]) -> T:
        """The result of the query. Raises `ProblemError` if too many wait already."""
        if self._waiting >= MAX_WAITING:
            raise ProblemError(503, "too many queries wait, try again", {"retry-after": "1"})
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._executor, self._timed, query
            )
        finally:
            self._waiting -= 1

    def _timed(self, query: Callable[[], T]) -> T:
        began = time.thread_time()
        try:
            return query()
        finally:
            if self._is_busy():
                used = time.thread_time() - began
                self._executor.submit(time.sleep, min(_REST * used, _MAX_REST_S))

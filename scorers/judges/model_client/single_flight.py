"""Merges identical concurrent requests: one run answers all callers with the same key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pathgauge.scorers.judge_protocol import JudgeError

_T = TypeVar("_T")


@dataclass(slots=True)
class _Run(Generic[_T]):
    task: asyncio.Task[_T]
    waiters: int = 0


class SingleFlight(Generic[_T]):
    """Runs in progress, by key. It belongs to one event loop.

    A run continues as long as any caller waits for it, even if the first caller was cancelled.
    """

    def __init__(self) -> None:
        self._runs: dict[str, _Run[_T]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._runs

    async def run(self, key: str, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """The result of the run with this key; starts `work` if there is none.

        Raises what `work` raises, and `JudgeError` when `aclose` cancels the run.
        """
        run = self._runs.get(key)
        if run is None:
            run = self._runs[key] = _Run(asyncio.create_task(work()))
            run.task.add_done_callback(lambda _: self._remove(key, run))
        run.waiters += 1
        try:
            await asyncio.wait((run.task,))
        finally:
            run.waiters -= 1
            if not run.waiters and not run.task.done():
                del self._runs[key]
                run.task.cancel()
        if run.task.cancelled():
            raise JudgeError("judge_unavailable", "the judges are shutting down")
        return run.task.result()

    async def aclose(self) -> None:
        """Cancel all runs; their callers get a `JudgeError`."""
        tasks = [run.task for run in self._runs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _remove(self, key: str, run: _Run[_T]) -> None:
        if self._runs.get(key) is run:
            del self._runs[key]
        if not run.task.cancelled():
            # Marks the exception as retrieved: asyncio would log it if no caller is left.
            run.task.exception()

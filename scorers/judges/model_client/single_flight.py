"""Joins those who ask the same at the same time: a key and the work come in, one run of the work
answers all of them.
"""

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
    waiting: int = 0


class Shared(Generic[_T]):
    """Work under way, by key; belongs to one event loop. It goes on while anybody waits for it,
    whoever was the first.
    """

    def __init__(self) -> None:
        self._runs: dict[str, _Run[_T]] = {}

    def __contains__(self, key: str) -> bool:
        return key in self._runs

    async def do(self, key: str, work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
        """The result of the work under that key, which begins now unless it has begun. Raises what
        it raises.
        """
        run = self._runs.get(key)
        if run is None:
            run = self._runs[key] = _Run(asyncio.create_task(work()))
            run.task.add_done_callback(lambda _: self._ended(key, run))
        run.waiting += 1
        try:
            await asyncio.wait((run.task,))
        finally:
            run.waiting -= 1
            if not run.waiting and not run.task.done():
                del self._runs[key]
                run.task.cancel()
        if run.task.cancelled():
            raise JudgeError("judge_unavailable", "no questions are asked any more")
        return run.task.result()

    async def aclose(self) -> None:
        """Stop all work; whoever waits for it gets a `JudgeError`."""
        tasks = [run.task for run in self._runs.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, key: str, run: _Run[_T]) -> None:
        if self._runs.get(key) is run:
            del self._runs[key]
        if not run.task.cancelled():
            run.task.exception()  # asked for, so that nobody complains when all have left

"""Queries wait for one thread, which rests while scoring needs the CPU."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from pathgauge.collector.api import query_thread
from pathgauge.collector.api.problems import ProblemError
from pathgauge.collector.api.query_thread import MAX_WAITING, QueryThread


class Clock:
    """Takes the place of `time`: each query takes so many seconds of CPU, and rests are noted."""

    def __init__(self, used: float) -> None:
        self.rests: list[float] = []
        self._readings: Iterator[float] = iter([7.0, 7.0 + used])

    def thread_time(self) -> float:
        return next(self._readings, 0.0)

    def sleep(self, seconds: float) -> None:
        self.rests.append(seconds)


async def test_a_query_that_finds_too_many_waiting_is_told_to_come_back() -> None:
    thread, go_on = QueryThread(lambda: False), threading.Event()
    waiting = [asyncio.create_task(thread.run(go_on.wait)) for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(10):
            with pytest.raises(ProblemError) as refused:
                await thread.run(lambda: "one more")
    finally:
        go_on.set()
    assert (refused.value.status, refused.value.headers) == (503, {"retry-after": "1"})
    assert await asyncio.gather(*waiting) == [True] * MAX_WAITING
    assert await thread.run(lambda: "one more") == "one more"


@pytest.mark.parametrize(
    ("is_busy", "used", "rests"),
    [(True, 0.02, [pytest.approx(0.18)]), (True, 3.0, [0.5]), (False, 0.02, [])],
    ids=["nine times as long as it worked", "half a second at most", "not if nothing waits"],
)
async def test_the_thread_rests_while_requests_wait(
    is_busy: bool, used: float, rests: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, busy = Clock(used), [is_busy]
    monkeypatch.setattr(query_thread, "time", clock)
    thread = QueryThread(lambda: busy.pop() if busy else False)
    assert await thread.run(lambda: "found") == "found"
    await thread.run(lambda: None)  # comes after the rest
    assert clock.rests == rests


async def test_a_query_that_fails_leaves_its_place_to_others() -> None:
    thread = QueryThread(lambda: False)
    for _ in range(MAX_WAITING + 1):
        with pytest.raises(ZeroDivisionError):
            await thread.run(lambda: 1 / 0)

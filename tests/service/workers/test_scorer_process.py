"""A scorer that hangs for long is killed and started again; one that hangs shortly goes on."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from pathgauge.collector.config import Config
from pathgauge.collector.service.workers import scorer_process
from pathgauge.collector.service.workers.messages import Start
from pathgauge.collector.service.workers.scorer_process import ScorerProcess
from support.running import PATIENCE_S

pytestmark = pytest.mark.slow


async def until(is_true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_true():
            await asyncio.sleep(0.05)


def with_scorer(folder: Path, act: Callable[[ScorerProcess], Awaitable[None]]) -> None:
    """Do something with a scorer that has started."""

    async def ignore(_: ScorerProcess, message: object) -> None:
        pass

    async def run() -> None:
        start = Start(Config(), "scorer", folder, 0, 1, 0)
        scorer = ScorerProcess(lambda: start, 0, ignore)
        running = asyncio.create_task(scorer.run())
        assert await scorer.started()
        await act(scorer)
        await scorer.stop(5.0)
        await running

    asyncio.run(run())


@pytest.fixture(autouse=True)
def _in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorer_process, "STALE_S", 4.0)


def test_a_scorer_that_hangs_for_long_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorer_process, "HUNG_S", 8.0)

    async def hang(scorer: ScorerProcess) -> None:
        first = scorer.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        await until(lambda: scorer.present is None)
        assert scorer.unready() == ["scorer 0 does not answer"]
        await until(lambda: scorer.present is not None)
        assert (scorer.restarts, scorer.pid != first) == (1, True)

    with_scorer(tmp_path, hang)


def test_a_scorer_that_hangs_shortly_goes_on(tmp_path: Path) -> None:
    async def hang(scorer: ScorerProcess) -> None:
        first = scorer.pid
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        await until(lambda: scorer.present is None)
        os.kill(first, signal.SIGCONT)
        await until(lambda: scorer.present is not None)
        await asyncio.sleep(2.0)
        assert (scorer.restarts, scorer.pid) == (0, first)

    with_scorer(tmp_path, hang)

"""The end of a thread or a task that the service needs is told, whatever ends it."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from pathgauge.collector.store.essential import EndedError, EssentialThread, essential_task


@pytest.mark.parametrize("cause", [SystemExit(0), KeyboardInterrupt(), ValueError("secret")])
def test_a_thread_that_ends_by_an_exception_is_told(
    cause: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda found: told.append(found.exc_value))

    def end() -> None:
        raise cause

    thread = EssentialThread(end, "pipeline")
    thread.start()
    thread.join()
    [error] = told
    assert isinstance(error, EndedError)
    assert str(error) == f"the thread 'pipeline' has ended by {type(cause).__name__}"
    assert error.__cause__ is cause


def test_a_thread_whose_target_returns_is_not_told(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    thread = EssentialThread(lambda: None, "pipeline")
    thread.start()
    thread.join()
    assert (told, thread.daemon) == ([], True)


async def test_a_task_that_fails_is_told_and_a_cancelled_one_is_not() -> None:
    told: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))

    async def fail() -> None:
        raise OSError("gone")

    failing = essential_task(fail(), "accept")
    waiting = essential_task(asyncio.sleep(3600), "references")
    await asyncio.wait([failing])
    waiting.cancel()
    await asyncio.wait([waiting])
    [context] = told
    assert str(context["exception"]) == "the task 'accept' has ended by OSError"

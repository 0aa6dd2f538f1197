"""Threads and tasks without which the service only seems to work.

When one ends by an exception, even by `SystemExit`, which Python ignores in threads, the hook of
the process for exceptions that nobody caught gets an `EndedError`. The service then ends itself, so
that whoever supervises it starts it again. A third-party function that runs in such a thread should
be called so that what it raises ends there. The store is the lowest layer that has threads.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine


class EndedError(Exception):
    """A thread or a task that the service needs has ended. Its cause says why."""

    def __init__(self, what: str, cause: BaseException) -> None:
        super().__init__(f"{what} has ended by {type(cause).__qualname__}")
        self.__cause__ = cause


class EssentialThread(threading.Thread):
    """A thread that ends when its target returns; any other end is told. It does not keep the
    process alive.
    """

    def __init__(self, target: Callable[[], None], name: str) -> None:
        super().__init__(target=target, name=name, daemon=True)

    def run(self) -> None:
        """Run the target. Raises `EndedError`, which reaches `threading.excepthook`."""
        try:
            super().run()
        except BaseException as error:
            raise EndedError(f"the thread {self.name!r}", error) from error


def essential_task(work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
    """A task whose end by an exception is told to the exception handler of the loop."""
    task = asyncio.create_task(work, name=name)
    task.add_done_callback(_tell)
    return task


def _tell(task: asyncio.Task[None]) -> None:
    if task.cancelled() or (cause := task.exception()) is None:
        return
    error = EndedError(f"the task {task.get_name()!r}", cause)
    context = {"message": str(error), "exception": error, "task": task}
    task.get_loop().call_exception_handler(context)

"""Counts the function calls of a piece of work, by stage.

Unlike CPU time, the number of calls is the same in every run, however busy the machine is. Reading
and scoring are many small calls, so it follows what they cost.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

OTHER = "other"
"""What is outside of all stages."""


class CallCounter:
    """Counts while `counting`, in the current thread: each call of a function, and each time that a
    generator goes on.
    """

    def __init__(self, stages: Iterable[tuple[str, Callable[..., Any]]]) -> None:
        """`stages`: names with a function of each. What a stage calls inside of another one counts
        for the inner one alone.
        """
        self.calls: Counter[str] = Counter()
        self._stages: dict[CodeType, str] = {one.__code__: stage for stage, one in stages}
        self._active = [OTHER]

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count what is called inside of the context."""
        before = sys.getprofile()
        sys.setprofile(self._event)
        try:
            yield
        finally:
            sys.setprofile(before)

    def _event(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "c_call":
            self.calls[self._active[-1]] += 1
            return
        stage = self._stages.get(frame.f_code)
        if event == "call":
            if stage is not None:
                self._active.append(stage)
            self.calls[self._active[-1]] += 1
        elif event == "return" and stage is not None:
            self._active.pop()

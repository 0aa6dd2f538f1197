"""Bounds the CPU time that reading one trace may take.

Reading takes time in proportion to the size of a trace. This bound is for what was overlooked: one
trace must not hold up all others, again after every restart. The reader calls `spend` for each
value, message and span; the budget is found by a context variable, because dialects decode values
too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_UNITS = 200
"""Units between two looks at the clock, which is a system call. A unit takes some microseconds."""
_CHARACTERS_PER_UNIT = 1024

CpuClock = Callable[[], float]
"""The CPU time of the calling thread in seconds."""


class TooSlowError(Exception):
    """A trace cannot be read within its CPU time. Not a `ValueError`, which many readers catch."""


class ReadingBudget:
    """The CPU time left to read one trace, which may be read in parts."""

    __slots__ = ("_began", "_clock", "_max_s", "_spent_s", "units")

    def __init__(self, max_s: float, clock: CpuClock) -> None:
        self._max_s = max_s
        self._clock = clock
        self._spent_s = 0.0
        self._began = 0.0
        self.units = 0
        """Units left until the next look at the clock."""

    @contextmanager
    def measured(self) -> Iterator[None]:
        """Inside of it, `spend` raises `TooSlowError` when the time is used up."""
        active = _active.set(self)
        self._began, self.units = self._clock(), 0
        try:
            yield
        finally:
            _active.reset(active)
            self._spent_s += self._clock() - self._began

    def check(self) -> None:
        """Raises `TooSlowError`."""
        self.units = _UNITS
        spent = self._spent_s + self._clock() - self._began
        if spent > self._max_s:
            raise TooSlowError(f"found {spent:.1f} s of CPU time, expected at most {self._max_s:g}")


_active: ContextVar[ReadingBudget | None] = ContextVar("_active", default=None)


def spend(characters: int = 0) -> None:
    """Account for a value of so many characters, a message or a span. Raises `TooSlowError`."""
    budget = _active.get()
    if budget is not None:
        budget.units -= 1 + characters // _CHARACTERS_PER_UNIT
        if budget.units < 0:
            budget.check()

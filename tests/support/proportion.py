"""Whether work takes time in proportion to its size, by the CPU time of this thread."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TIMES = 16
"""How many times larger the large work is."""
MAX_TIMES_AS_LONG = 2 * TIMES
"""Twice of what is in proportion. The square of `TIMES` is 256, but quadratic work may have a large
linear part.
"""
MEASURABLE_S = 0.001
"""Shorter work counts as if it took this long."""
_TRIES = 4
"""One try in proportion is enough: others may use the machine too, but nobody makes it faster."""


def seconds(work: Callable[[T], object], of: T) -> float:
    """CPU time of this thread, without garbage collection, which depends on all other objects."""
    gc.disable()
    try:
        began = time.thread_time()
        work(of)
        return time.thread_time() - began
    finally:
        gc.enable()


def in_proportion(make: Callable[[int], T], work: Callable[[T], object], size: int) -> bool:
    """Whether work of `size` takes about `TIMES` as long as work of `size / TIMES`."""
    for _ in range(_TRIES):
        short = max(MEASURABLE_S, seconds(work, make(size // TIMES)))
        if seconds(work, make(size)) <= MAX_TIMES_AS_LONG * short:
            return True
    return False

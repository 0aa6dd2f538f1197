"""Matches of the package regex that end after a timeout.

The package measures the CPU time of the whole process. That of other threads counts, and on a
virtual machine also the time in which the host gave the processor to somebody else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def matched(match: Callable[..., Any], text: str, timeout_s: float) -> Any:
    """The result of `match`, a method of a compiled pattern. Raises `TimeoutError` if it takes too
    long twice: a pause of the machine does not come twice, a match that backtracks always does.
    """
    try:
        return match(text, timeout=timeout_s)
    except TimeoutError:
        return match(text, timeout=timeout_s)

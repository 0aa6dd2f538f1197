"""Retries failed calls with exponential backoff and jitter."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

from pathgauge.scorers.judges.model_client.failures import CallError

INITIAL_PAUSE_S = 0.5
MAX_PAUSE_S = 30.0
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Backoff:
    """The retry policy. `clock` returns monotonic seconds, `draw` a random number in 0..1."""

    retries: int
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]]
    draw: Callable[[], float]

    async def __call__(self, attempt: Callable[[], Awaitable[_T]], deadline: float) -> _T:
        """Call `attempt` until it does not raise `CallError`.

        Raises the last `CallError` when retries are exhausted or pointless, and at once when the
        next attempt would begin after `deadline`, a time of `clock`.
        """
        retried = 0
        while True:
            try:
                return await attempt()
            except CallError as error:
                if not error.retryable or retried >= self.retries:
                    raise
                pause = self.pause(retried, error.retry_after)
                if self.clock() + pause >= deadline:
                    raise
            await self.sleep(pause)
            retried += 1

    def pause(self, retried: int, retry_after: float | None) -> float:
        """Seconds until the next attempt, never less than `retry_after`.

        The upper limit doubles with each retry; the pause is between half of it and all of it.
        """
        limit = min(MAX_PAUSE_S, math.ldexp(INITIAL_PAUSE_S, min(retried, 30)))
        jitter = self.draw() * limit / 2
        pause = limit / 2 + jitter
        if retry_after is None:
            return pause
        return max(pause, retry_after + jitter)


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds from a `Retry-After` header, `None` if missing or invalid. `now`: Unix seconds."""
    try:
        seconds = _seconds(headers.get("retry-after", "").strip(), now)
    except (ValueError, OverflowError, OSError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _seconds(value: str, now: float) -> float:
    """`value` is a number of seconds or an HTTP date."""
    if value[:1].isdigit():
        return float(value)
    return parsedate_to_datetime(value).timestamp() - now

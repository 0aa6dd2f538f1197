"""Repeats calls that failed and may pass: an attempt comes in, its result or its last failure goes
out.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TypeVar

from pathgauge.scorers.judges.model_client.failures import CallError

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 30.0
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Backoff:
    """How attempts are repeated. `draw` gives random numbers in 0..1, `sleep` waits, `clock` gives
    seconds that never go back.
    """

    retries: int
    clock: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]]
    draw: Callable[[], float]

    async def __call__(self, attempt: Callable[[], Awaitable[_T]], deadline: float) -> _T:
        """Call `attempt` until it does not raise `CallError`. Raises the last one, at once when the
        next attempt would begin too late.

        `deadline` is a time of `clock`.
        """
        repeated = 0
        while True:
            try:
                return await attempt()
            except CallError as failure:
                pause = self.pause(repeated, failure.retry_after)
                if (
                    not failure.may_pass
                    or repeated >= self.retries
                    or self.clock() + pause >= deadline
                ):
                    raise
            await self.sleep(pause)
            repeated += 1

    def pause(self, repeated: int, retry_after: float | None) -> float:
        """Seconds until the next attempt: twice as long each time, of that between a half and all,
        and never less than the server wants.
        """
        longest = min(LONGEST_PAUSE_S, math.ldexp(FIRST_PAUSE_S, min(repeated, 30)))
        own = longest * (0.5 + self.draw() / 2)
        return own if retry_after is None else max(own, retry_after + (own - longest / 2))


def retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """Seconds that an answer asks to wait; `None` when it does not say, or makes no sense. `now` in
    Unix seconds.
    """
    value = headers.get("retry-after", "").strip()
    try:
        seconds = (
            float(value) if value[:1].isdigit() else parsedate_to_datetime(value).timestamp() - now
        )
    except (ValueError, OverflowError, OSError):
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None

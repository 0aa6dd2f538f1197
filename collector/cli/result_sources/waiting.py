"""Asks for a verdict again until it is decided, or until the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable

from pathgauge.collector.api.release_models import ReleaseVerdict
from pathgauge.collector.cli.result_sources.source import UnavailableError

POLL_S = 10.0
"""The time between two questions."""


def when_decided(
    ask: Callable[[], ReleaseVerdict],
    patience_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> ReleaseVerdict:
    """The first verdict that is decided, or the last one. A collector that is busy is asked again;
    all other errors are raised at once.
    """
    end = clock() + patience_s
    while True:
        left = end - clock()
        try:
            found = ask()
            if found.verdict != "undecided" or left <= 0:
                return found
        except UnavailableError:
            if left <= 0:
                raise
        sleep(min(POLL_S, left))

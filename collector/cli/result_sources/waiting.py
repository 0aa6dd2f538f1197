"""Asks for a verdict again until it is decided, or until the time is over."""

from __future__ import annotations

import time
from collections.abc import Callable

from pathgauge.collector.api.release_models import ReleaseVerdict
from pathgauge.collector.cli.console import print_messages
from pathgauge.collector.cli.result_sources.source import SourceError, UnavailableError

POLL_S = 10.0
"""The time between two questions."""
UNKNOWN_S = 60.0
"""How long results of an unknown agent are waited for: its first ones may just be on their way."""


def when_decided(
    ask: Callable[[], ReleaseVerdict],
    patience_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    misspelt: Callable[[ReleaseVerdict], str | None] = lambda _: None,
) -> ReleaseVerdict:
    """The first verdict that is decided, or the last one. A collector that is busy is asked again;
    all other errors are raised at once. `misspelt` says of a verdict why none may ever come: it is
    printed, and after `UNKNOWN_S` it is an error.
    """
    begin, told = clock(), ""
    while True:
        waited = clock() - begin
        left = patience_s - waited
        try:
            found = ask()
            if found.verdict != "undecided" or left <= 0:
                return found
            hint = misspelt(found)
            if hint and waited >= UNKNOWN_S:
                raise SourceError(hint)
            if hint and hint != told:
                print_messages([hint])
                told = hint
        except UnavailableError:
            if left <= 0:
                raise
        sleep(min(POLL_S, left))

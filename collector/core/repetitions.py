"""Decides which of many equal events are logged, so that they do not flood the log."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass


@dataclass(slots=True)
class _Kind:
    logged_at: float
    since: int = 0
    """Events since the last line."""


class Repetitions:
    """One line for each kind of event in an interval. For one thread."""

    def __init__(self, interval_s: float, max_kinds: int) -> None:
        """Beyond `max_kinds` in an interval, further kinds are not logged."""
        self._interval_s = interval_s
        self._max_kinds = max_kinds
        self._kinds: dict[Hashable, _Kind] = {}

    def due(self, kind: Hashable, now: float) -> int:
        """Note an event at `now`, in seconds; returns how many of its kind a line is about, with
        those since the line before, or 0 if there is to be none.
        """
        known = self._kinds.get(kind)
        if known is not None and now < known.logged_at + self._interval_s:
            known.since += 1
            return 0
        if known is None and len(self._kinds) >= self._max_kinds:
            self._forget(now - self._interval_s)
            if len(self._kinds) >= self._max_kinds:
                return 0
        self._kinds[kind] = _Kind(now)
        return 1 if known is None else known.since + 1

    def _forget(self, until: float) -> None:
        self._kinds = {kind: one for kind, one in self._kinds.items() if one.logged_at > until}

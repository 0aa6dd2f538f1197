"""The ids of traces that are forgotten, and why records that still arrive for them are dropped."""

from __future__ import annotations

from collections import OrderedDict

from pathgauge.collector.core.traces.open_trace import TraceKey

LATE = "late"
"""It was read, and no more records are waited for."""
TOO_BIG = "trace_too_big"
TOO_SLOW = "trace_too_slow"
_PURGED = "purged"


class ForgottenTraces:
    """At most `max_ids` ids; the oldest is dropped first."""

    def __init__(self, max_ids: int) -> None:
        self._max_ids = max_ids
        self._reasons: OrderedDict[TraceKey, str] = OrderedDict()
        self._unreported: dict[TraceKey, None] = {}

    def reason(self, key: TraceKey) -> str | None:
        """Why records of a trace are dropped; `None` if they are not."""
        return self._reasons.get(key)

    def remember(self, key: TraceKey, reason: str) -> None:
        """Drop records of a trace from now on."""
        self._reasons[key] = reason
        if len(self._reasons) > self._max_ids:
            self._reasons.popitem(last=False)

    def purge(self, key: TraceKey) -> None:
        """Drop records of a trace, about which nothing may be kept. The store knows."""
        self.remember(key, _PURGED)
        self._unreported.pop(key, None)

    def is_purged(self, key: TraceKey) -> bool:
        """Whether a trace was purged."""
        return self._reasons.get(key) == _PURGED

    def report(self, key: TraceKey) -> None:
        """Tell the store of a trace, so that a restart does not open it again."""
        self._unreported[key] = None

    def unreported(self) -> list[TraceKey]:
        """The traces to tell the store of. Each is returned once."""
        found, self._unreported = list(self._unreported), {}
        return found

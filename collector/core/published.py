"""Remembers which evaluations were published for each trace.

When late spans have a trace read again, this tells a changed invocation (publish a revision) from
an unchanged one (publish nothing).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from pathgauge.collector.core.evaluations.fingerprint import fingerprint
from pathgauge.collector.core.pipeline_events import StoredTrace
from pathgauge.collector.core.traces import Bounds, TraceKey
from pathgauge.scorers.types import Invocation

_FORWARDED = "forwarded "
"""Precedes the fingerprint of a turn that another partition scores."""
_AT_ONCE = 1_000
"""Traces that `expire` looks at, so that nothing waits long when most are still needed."""
_ROOM = 15
"""Revisions that the other partition may make of it."""


def forwarded_fingerprint(known: str, revision: int) -> tuple[str, int]:
    """The fingerprint and the revision of a turn that another partition scores from now on. The
    turn may have further revisions than this partition knows of.
    """
    if known.startswith(_FORWARDED):
        return known, revision
    return _FORWARDED + known, (revision | _ROOM) + 1


def own_fingerprint(known: str, revision: int) -> tuple[str, int]:
    """The same for a turn that this partition scores from now on."""
    if not known.startswith(_FORWARDED):
        return known, revision
    return known.removeprefix(_FORWARDED), revision | _ROOM


@dataclass(slots=True)
class PublishedTrace:
    """The published evaluations of one trace."""

    read_at: float
    fingerprints: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Fingerprint and revision of the newest evaluation, by entry agent."""

    def has(self, invocation: Invocation) -> bool:
        """Whether the invocation was published with exactly this content."""
        known = self.fingerprints.get(invocation.span_id)
        return known is not None and known[0].removeprefix(_FORWARDED) == fingerprint(invocation)

    def knows(self, span_id: str) -> bool:
        """Whether the invocation was published with any content."""
        return span_id in self.fingerprints

    def add(self, invocation: Invocation, after: int = -1) -> int:
        """Record the invocation as published; returns the number of its revision, which is higher
        than `after`.
        """
        known = self.fingerprints.get(invocation.span_id)
        revision = after + 1
        if known is not None:
            revision = max(revision, known[1] + 1)
        self.fingerprints[invocation.span_id] = fingerprint(invocation), revision
        return revision

    def hold(self, invocation: Invocation) -> None:
        """Record the content of a turn that is evaluated later: `add` then numbers its revision."""
        _, revision = self.fingerprints.get(invocation.span_id, ("", -1))
        self.fingerprints[invocation.span_id] = fingerprint(invocation), revision

    def forward(self, invocation: Invocation) -> int:
        """Record the invocation as forwarded; returns the number of its next revision."""
        revision = self.add(invocation)
        self.fingerprints[invocation.span_id] = _FORWARDED + fingerprint(invocation), revision
        return revision

    def is_forwarded(self, span_id: str) -> bool:
        """Whether another partition has scored the newest revision of this invocation."""
        known = self.fingerprints.get(span_id)
        return known is not None and known[0].startswith(_FORWARDED)

    def has_newer(self, span_id: str, revision: int) -> bool:
        """Whether this partition has evaluated the invocation itself since it forwarded this
        revision.
        """
        known = self.fingerprints.get(span_id)
        return known is not None and not self.is_forwarded(span_id) and known[1] > revision | _ROOM

    def recall(self, span_id: str) -> None:
        """Have the next revision follow those that the other partition may have made."""
        known, revision = self.fingerprints[span_id]
        self.fingerprints[span_id] = known, revision | _ROOM


class PublishedTraces:
    """The published evaluations of all traces for which spans may still arrive."""

    def __init__(self, bounds: Bounds, may_be_read: Callable[[TraceKey], bool]) -> None:
        """`may_be_read`: whether the assembler still has a trace, so that it may be read again."""
        self._may_be_read = may_be_read
        self._keep_s = bounds.late_ttl + bounds.max_age
        self._max_traces = bounds.max_forgotten
        self._traces: OrderedDict[TraceKey, PublishedTrace] = OrderedDict()
        """The trace that was read longest ago comes first."""

    def get(self, key: TraceKey) -> PublishedTrace | None:
        """The published evaluations of a trace, if there are any."""
        return self._traces.get(key)

    def read(self, key: TraceKey, now: float) -> PublishedTrace:
        """Note that a trace was read at `now`."""
        trace = self._traces.setdefault(key, PublishedTrace(now))
        trace.read_at = now
        self._traces.move_to_end(key)
        return trace

    def expire(self, now: float) -> None:
        """Forget traces that the assembler has given up, and the oldest ones beyond the limit. What
        may be read again is kept: otherwise its evaluations would be counted twice.
        """
        for _ in range(min(len(self._traces), _AT_ONCE)):
            key, trace = next(iter(self._traces.items()))
            if now < trace.read_at + self._keep_s and len(self._traces) <= self._max_traces:
                return
            if self._may_be_read(key):
                self.read(key, now)
            else:
                del self._traces[key]

    def discard(self, key: TraceKey) -> None:
        """Forget a trace at once."""
        self._traces.pop(key, None)

    def restore(self, stored: Iterable[StoredTrace], now: float) -> None:
        """Add the traces that an earlier process stored."""
        found: list[tuple[TraceKey, PublishedTrace]] = []
        for trace in stored:
            if trace.fingerprints:
                closed_at = trace.snapshot.closed_at
                read_at = now if closed_at is None else closed_at
                published = PublishedTrace(read_at, dict(trace.fingerprints))
                found.append((trace.snapshot.key, published))
        self._traces.update(sorted(found, key=lambda item: item[1].read_at))
        self.expire(now)

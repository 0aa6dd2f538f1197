"""Runs the pipeline on a virtual clock, which jumps from one event of the past to the next.

A trace arrives as a whole when its last span ended. Whatever was due before is done first, at the
time at which it was due: traces are read, conversations end, judges answer, `/metrics` is scraped.
So scores, windows, baselines and series are those that a collector would have had at the time.

A trace that is longer than its slice arrives at the end of the slice: it is known as a whole, and
later ones must not wait for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent
from pathgauge.collector.service.backfill.history import PastTrace

_NS = 1e9

OnEvents = Callable[[Sequence[PipelineEvent], float], None]
"""Gets what happened at a Unix time."""


@dataclass(slots=True)
class Clock:
    """The virtual time, in Unix seconds. It never goes back; 0 before the first trace."""

    now: float = 0.0

    def __call__(self) -> float:
        """The virtual time."""
        return self.now


class Timeline:
    """What happens at the times of a virtual clock."""

    def __init__(
        self,
        pipeline: Pipeline,
        clock: Clock,
        on_events: OnEvents,
        on_step: Callable[[float], None],
        step: float,
    ) -> None:
        """`on_step` is called at all multiples of `step` seconds, from the first trace on."""
        self.clock = clock
        self._pipeline = pipeline
        self._on_events = on_events
        self._on_step = on_step
        self._step = step
        self._next_step = math.inf

    def resume(self, now: float) -> None:
        """Continue at the Unix time that an earlier process reached."""
        self.clock.now = now
        self._next_step = self._step_after(now)

    def play(self, traces: Iterable[PastTrace], until: float) -> None:
        """Feed the traces of a slice that ends at the Unix time `until`, and read all of them."""
        arriving = sorted(traces, key=lambda trace: (min(trace.end / _NS, until), trace.trace_id))
        for trace in arriving:
            self.advance(min(trace.end / _NS, until))
            self._on_events(
                self._pipeline.feed(trace.spans, trace.logs, self.clock.now), self.clock.now
            )
        while self._pipeline.usage().open_traces:
            due = self._pipeline.deadline()
            assert due is not None  # an open trace is always due at some time
            self.advance(due)
        self.advance(until)

    def advance(self, until: float) -> None:
        """Do everything that is due until a Unix time, which may be over already."""
        if self._next_step == math.inf:
            self._next_step = self._step_after(until)
            self.clock.now = until
        while True:
            due = self._pipeline.deadline()
            if self._next_step <= until and (due is None or self._next_step < due):
                self.clock.now = max(self.clock.now, self._next_step)
                self._on_step(self.clock.now)
                self._next_step = self._step_after(self.clock.now)
            elif due is not None and due <= until:
                self.clock.now = max(self.clock.now, due)
                self._on_events(self._pipeline.expire(self.clock.now), self.clock.now)
            else:
                break
        self.clock.now = max(self.clock.now, until)

    def finish(self) -> None:
        """Score conversations that are still open: the history ends here."""
        self._on_events(self._pipeline.finish_conversations(), self.clock.now)
        self._on_step(self.clock.now)

    def _step_after(self, now: float) -> float:
        return (math.floor(now / self._step) + 1) * self._step

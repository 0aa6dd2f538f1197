"""Makes the events of the pipeline durable, and publishes them afterwards.

Events are collected for `COMMIT_S` and become durable in one transaction with everything that must
agree with them. Only then are counters updated and other systems informed. So whatever was visible
once stays true after a crash.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from pathgauge.collector.config.plugins.named_dialect import DialectError
from pathgauge.collector.core.evaluations.evaluator import EvaluationKey
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import (
    Changes,
    PipelineEvent,
    PublishedEvent,
    Unreadable,
    Withdrawn,
)
from pathgauge.collector.core.reading_budget import TooSlowError
from pathgauge.collector.core.sink import Sink
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.service.sink_calls import close, publish
from pathgauge.collector.store import Progress, Store

_log = structlog.get_logger(__name__)

COMMIT_S = 0.25
"""How long events are collected before they become durable and visible."""
MAX_COMMIT_EVENTS = 1000
"""How many events are collected at most."""
RETRY_S = 1.0
"""How long to wait for a store that failed or is nearly full."""
IDLE_COMMIT_S = 30.0
"""The longest time without a commit. Retention runs with commits."""
_FORGOTTEN_TRACES = 1000


class DurableCounts(Protocol):
    """Counts that become visible once they are durable."""

    def pending(self) -> Iterable[Row]:
        """The current values of all counts that changed since `commit`."""
        ...

    def commit(self) -> None:
        """Make the values visible that `pending` returned last."""
        ...


class Judges(Protocol):
    """Judge evaluations beside the pipeline. Neither call may block."""

    def take(self, pending: PendingJudgment) -> None:
        """Judge an evaluation, instead of an earlier revision of it."""
        ...

    def give_up(self, key: EvaluationKey) -> None:
        """Stop judging an evaluation; an unknown key is no error."""
        ...


@dataclass(slots=True)
class _Transaction:
    """What becomes durable with the next commit."""

    since: float
    events: list[PublishedEvent] = field(default_factory=list)


class Publisher:
    """For the pipeline thread only."""

    def __init__(
        self,
        pipeline: Pipeline,
        store: Store,
        *,
        immediate_sinks: Sequence[Sink] = (),
        sinks: Sequence[Sink] = (),
        durable_counts: Sequence[DurableCounts] = (),
        judges: Judges | None = None,
        has_pending_counts: Callable[[], bool] = lambda: False,
        complete: Callable[[Progress], Progress] = lambda progress: progress,
        commit_s: float = COMMIT_S,
    ) -> None:
        """`immediate_sinks` get events before they are durable, because they count them in one of
        the `durable_counts`. `sinks` and `judges` get them afterwards.

        `has_pending_counts` tells whether `durable_counts` changed without any event. `complete`
        adds what another process has to be told to the progress before it is committed. Events are
        collected for `commit_s` seconds.
        """
        self._commit_s = commit_s
        self._pipeline = pipeline
        self._store = store
        self._immediate_sinks = immediate_sinks
        self._sinks = sinks
        self._durable_counts = durable_counts
        self._judges = judges
        self._has_pending_counts = has_pending_counts
        self._complete = complete
        self._transaction: _Transaction | None = None
        self._committed_at = time.monotonic()
        self._given_up = False

    def gather(self, events: Sequence[PipelineEvent]) -> None:
        """Add events, and what changed in the pipeline, to the next commit."""
        if not events and not self._pipeline.has_changes:
            return
        transaction, now = self.begin(), time.time()
        for event in events:
            if isinstance(event, Unreadable):
                _log_unreadable(event)
                continue
            transaction.events.append(event)
            for sink in self._immediate_sinks:
                publish(sink, event, now)

    def begin(self) -> _Transaction:
        """Make sure that a commit follows. Even without events, the position in the journal must
        become durable.
        """
        if self._transaction is None:
            self._transaction = _Transaction(time.monotonic())
        return self._transaction

    def pause(self) -> float | None:
        """Seconds until the next commit is due; `None` when there is nothing to commit."""
        if self._transaction is None:
            return None
        return self._transaction.since + self._commit_s - time.monotonic()

    def begin_if_needed(self) -> None:
        """Begin a commit without events from time to time: commits trigger retention, which is how
        a full store frees space.
        """
        interval = RETRY_S if self._store.usage().needs_commit else IDLE_COMMIT_S
        if self._has_pending_counts() or time.monotonic() >= self._committed_at + interval:
            self.begin()

    def publish_if_due(self, row: int, is_stopping: Callable[[], bool]) -> None:
        """`publish`, when enough events were collected or they have waited long enough."""
        if self._transaction is None:
            return
        is_large = len(self._transaction.events) >= MAX_COMMIT_EVENTS
        if is_large or time.monotonic() >= self._transaction.since + self._commit_s:
            self.publish(row, is_stopping)

    def publish(self, row: int, is_stopping: Callable[[], bool]) -> None:
        """Commit everything up to the journal row `row`, and then publish it.

        While the store cannot commit, this blocks, until `is_stopping` returns true. From then on
        nothing is published: later events must not become durable without the ones before them,
        which the next process reads again.
        """
        if self._given_up:
            return
        if self._has_pending_counts():
            self.begin()
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return
        progress = self._progress(row, transaction.events)
        while not self._commit(progress):
            if is_stopping():
                self._given_up = True
                return
            time.sleep(RETRY_S)
        self._publish_committed(progress)

    def publish_all(self, row: int, is_stopping: Callable[[], bool]) -> None:
        """`publish` until no count waits for a commit: a commit may take only a part of them."""
        self.publish(row, is_stopping)
        while self._has_pending_counts() and not self._given_up:
            self.publish(row, is_stopping)

    def withdraw(self, evaluations: Iterable[EvaluationKey]) -> None:
        """Withdraw purged evaluations from all sinks and judges."""
        for key in evaluations:
            for sink in (*self._immediate_sinks, *self._sinks):
                publish(sink, Withdrawn(key), time.time())
            if self._judges is not None:
                self._judges.give_up(key)

    def close(self) -> None:
        """Close the sinks."""
        for sink in (*self._immediate_sinks, *self._sinks):
            close(sink)

    def _progress(self, row: int, events: Sequence[PublishedEvent]) -> Progress:
        self._committed_at = time.monotonic()
        if self._store.usage().nearly_full:
            self._pipeline.forget_read(_FORGOTTEN_TRACES)
        changes = self._pipeline.changes()
        counts = [count for durable in self._durable_counts for count in durable.pending()]
        progress = Progress(row, self._store.horizon(), time.time(), events, changes, counts)
        return self._complete(progress)

    def _commit(self, progress: Progress) -> bool:
        try:
            return self._store.commit(progress)
        # Skipping an unforeseen error would score and count the same traces again after a restart.
        except Exception:
            _log.exception("results could not be committed, trying again")
            return False

    def _publish_committed(self, progress: Progress) -> None:
        for durable_counts in self._durable_counts:
            durable_counts.commit()
        now = time.time()
        for event in progress.outcomes:
            for sink in self._sinks:
                publish(sink, event, now)
        if self._judges is not None:
            self._update(self._judges, progress.changes)

    def _update(self, judges: Judges, changes: Changes) -> None:
        """Tell judges what has changed. A store that several processes share may have found a purge
        while it committed.
        """
        for key in changes.judgments_ended:
            judges.give_up(key)
        for pending in changes.judgments_begun:
            if self._pipeline.awaits(pending):
                judges.take(pending)


def _log_unreadable(event: Unreadable) -> None:
    if isinstance(event.error, TooSlowError):
        _log.warning("trace skipped", trace_id=event.trace_id, reason=str(event.error))
        return
    error, known = event.error, {}
    if isinstance(error, DialectError):
        known = {"dialect": error.dialect, "function": error.function}
    _log.error("trace could not be read", trace_id=event.trace_id, **known, exc_info=error)

"""Makes outcomes durable, then visible: outcomes of the pipeline come in, transactions go to the
store, and the sinks are told.

Outcomes are gathered for `COMMIT_S` and become durable in one transaction with everything that must
agree with them. Only then are counts shown, and foreign sinks told: what was seen once stays true
after a crash.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.internal_telemetry import Row
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import (
    Changes,
    Judged,
    PipelineEvent,
    Told,
    Unreadable,
    Withdrawn,
)
from pathgauge.collector.sinks import Sink
from pathgauge.collector.store import Progress, Store

_log = structlog.get_logger(__name__)

COMMIT_S = 0.25
"""How long outcomes are gathered before they become durable and visible."""
COMMIT_OUTCOMES = 1000
"""How many are gathered at most."""
RETRY_S = 1.0
"""How long to wait for a store that could not take them, or has to make room."""
HOUSEKEEPING_S = 30.0
"""How long no commit may come: with one the store drops what is old."""
_GIVE_BACK = 1000


class DurableCounts(Protocol):
    """Counts that are shown once they are durable."""

    def pending(self) -> Iterable[Row]:
        """What changed since `commit`, as it is now."""
        ...

    def commit(self) -> None:
        """Show what is durable."""
        ...


class Judges(Protocol):
    """Who judges beside the pipeline. Neither call may block."""

    def take(self, awaited: PendingJudgment) -> None:
        """Judge an evaluation, instead of an earlier revision of it."""
        ...

    def give_up(self, key: EvaluationKey) -> None:
        """Judge that evaluation no more; an unknown key is no error."""
        ...


@dataclass(slots=True)
class _Gathered:
    """What is not durable yet."""

    since: float
    outcomes: list[Told] = field(default_factory=list)


class Publisher:
    """For the thread of the pipeline."""

    def __init__(
        self,
        pipeline: Pipeline,
        store: Store,
        *,
        ahead: Sequence[Sink] = (),
        sinks: Sequence[Sink] = (),
        durable_counts: Sequence[DurableCounts] = (),
        judges: Judges | None = None,
        pending: Callable[[], bool] | None = None,
    ) -> None:
        """`ahead` are sinks whose counts are `durable_counts`: they are told before, and show nothing.
        `sinks` are told afterwards.

        `judges` are told what waits for them, when that is durable. `pending` says whether
        `durable_counts` has what no outcome tells of, and must not be lost.
        """
        self._pipeline = pipeline
        self._store = store
        self._ahead = ahead
        self._sinks = sinks
        self._durable_counts = durable_counts
        self._judges = judges
        self._pending = pending or (lambda: False)
        self._gathered: _Gathered | None = None
        self._committed_at = time.monotonic()
        self._over = False

    def gather(self, outcomes: Sequence[PipelineEvent]) -> None:
        """Take outcomes in, to be made durable soon, with what changed in the pipeline."""
        if not outcomes and not self._pipeline.has_changes:
            return
        gathered, now = self.begin(), time.time()
        for outcome in outcomes:
            if isinstance(outcome, Unreadable):
                _log.error(
                    "trace could not be read", trace_id=outcome.trace_id, exc_info=outcome.error
                )
                continue
            gathered.outcomes.append(outcome)
            for sink in self._ahead:
                _tell(sink, outcome, now)

    def begin(self) -> _Gathered:
        """What is gathered, begun now if need be: without outcomes too, there is progress to be
        made durable.
        """
        if self._gathered is None:
            self._gathered = _Gathered(time.monotonic())
        return self._gathered

    def pause(self) -> float | None:
        """How many seconds may pass until what was gathered is due; `None` when nothing was."""
        return (
            None if self._gathered is None else self._gathered.since + COMMIT_S - time.monotonic()
        )

    def keep_house(self) -> None:
        """Have a commit even though nothing happens, as it may be the store that has no room for
        anything.
        """
        if self._pending() or time.monotonic() >= self._committed_at + (
            RETRY_S if self._store.usage().in_need else HOUSEKEEPING_S
        ):
            self.begin()

    def publish_if_due(self, row: int, given_up: Callable[[], bool]) -> None:
        """`publish`, when enough was gathered or it has waited long enough."""
        gathered = self._gathered
        if gathered and (
            len(gathered.outcomes) >= COMMIT_OUTCOMES
            or time.monotonic() >= gathered.since + COMMIT_S
        ):
            self.publish(row, given_up)

    def publish(self, row: int, given_up: Callable[[], bool]) -> None:
        """Make durable what was gathered up to the journal row `row`, show it, and tell the sinks.

        A store that cannot take it holds everything up, until `given_up` says that a stop is more
        urgent. From then on nothing is published: it would stand without what came before, which
        the next process reads again.
        """
        if self._over:
            return
        if self._pending():
            self.begin()
        gathered, self._gathered = self._gathered, None
        if gathered is None:
            return
        self._committed_at = time.monotonic()
        if self._store.usage().nearly_full:
            self._pipeline.forget_read(_GIVE_BACK)
        changes = self._pipeline.changes()
        counts = [
            count for durable_counts in self._durable_counts for count in durable_counts.pending()
        ]
        progress = Progress(
            row, self._store.horizon(), time.time(), gathered.outcomes, changes, counts
        )
        while not self._committed(progress):
            if given_up():
                self._over = True
                return
            time.sleep(RETRY_S)
        for durable_counts in self._durable_counts:
            durable_counts.commit()
        now = time.time()
        for outcome in gathered.outcomes:
            for sink in self._sinks:
                _tell(sink, outcome, now)
        self._have_judged(changes)

    def _committed(self, progress: Progress) -> bool:
        try:
            return self._store.commit(progress)
        except (
            Exception
        ):  # what nobody foresaw; passed over, it would be scored and counted again after a restart
            _log.exception("what was scored cannot be made durable, trying again")
            return False

    def withdraw(self, evaluations: Iterable[EvaluationKey]) -> None:
        """Have all sinks take back evaluations that were purged."""
        for key in evaluations:
            for sink in (*self._ahead, *self._sinks):
                _tell(sink, Withdrawn(key), time.time())
            if self._judges is not None:
                self._judges.give_up(key)

    def _have_judged(self, changes: Changes) -> None:
        if self._judges is not None:
            for key in changes.settled:
                self._judges.give_up(key)
            for awaited in changes.awaited:
                self._judges.take(awaited)

    def close(self) -> None:
        """Close the sinks."""
        for sink in (*self._ahead, *self._sinks):
            _close(sink)


def _tell(sink: Sink, outcome: Told, now: float) -> None:
    try:
        if isinstance(outcome, Evaluation):
            sink.publish(outcome, now)
        elif isinstance(outcome, Judged):
            sink.publish_judged(outcome, now)
        elif isinstance(outcome, ConversationResult):
            sink.publish_conversation(outcome, now)
        else:
            sink.withdraw(outcome.key)
    except Exception:  # one sink's failure must not keep the outcome from the others
        _log.exception("sink failed", sink=type(sink).__name__)


def _close(sink: Sink) -> None:
    try:
        sink.close()
    except Exception:
        _log.exception("sink could not be closed", sink=type(sink).__name__)

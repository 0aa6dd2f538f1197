"""Applies the publications of scorers to the gauge: series, counters, results, events.

Publications of a scorer are applied in their order, each once: the number of the last one is stored
in the transaction of the results and counts that it leads to. One of a format that this version
does not know stays where it is, and so do all that follow it: they count when a version reads them
that knows it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import structlog

from pathgauge.collector.core.agent_records import AgentRecords
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline_events import PublishedEvent
from pathgauge.collector.core.publication import Publication
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.service.gauge import Gauge
from pathgauge.collector.service.sink_calls import publish
from pathgauge.collector.store import Progress
from pathgauge.collector.store.publications import PublicationError, UnknownFormatError

_log = structlog.get_logger(__name__)


class Arrived(NamedTuple):
    """A publication that a scorer has sent."""

    scorer: str
    """The name of its store, or the number of its partition."""
    row: int
    body: bytes


class Stored(NamedTuple):
    """What became durable with a commit."""

    published: Mapping[str, int]
    """The last publication of each scorer."""
    learned: Sequence[Row]
    """What is new about the telemetry of agent versions."""


@dataclass(slots=True)
class _Transaction:
    """What becomes durable with the next commit."""

    since: float
    events: list[PublishedEvent] = field(default_factory=list)
    evidence: dict[int, bytes] = field(default_factory=dict)
    published: dict[str, int] = field(default_factory=dict)
    publications: int = 0


class Publications:
    """For one thread."""

    def __init__(
        self,
        gauge: Gauge,
        telemetry: InternalTelemetry,
        records: AgentRecords,
        *,
        decode: Callable[[bytes], Publication],
        commit: Callable[[Progress], bool],
        position: tuple[int, float] = (0, 0.0),
        scorers_are: Literal["scorer", "partition"] = "scorer",
    ) -> None:
        """`decode` raises `PublicationError` and `UnknownFormatError`. `commit` makes progress
        durable. `position` is the journal row and the running time of the store. `scorers_are` is
        the key of their names in the log.
        """
        self._gauge = gauge
        self._records = records
        self._decode = decode
        self._commit = commit
        self._position = position
        self._scorers_are = scorers_are
        self._counters = {counter.name: counter for counter in telemetry if not counter.local}
        self._published: dict[str, int] = {}
        self._transaction: _Transaction | None = None
        self._refused: dict[str, str] = {}

    @property
    def refused(self) -> str | None:
        """Why the publications of a scorer are not applied any more; for any thread."""
        return next(iter(self._refused.values()), None)

    @property
    def since(self) -> float | None:
        """Since when something waits for a commit, in monotonic time; `None`: nothing does."""
        return None if self._transaction is None else self._transaction.since

    @property
    def waiting(self) -> int:
        """Publications that wait for a commit."""
        return 0 if self._transaction is None else self._transaction.publications

    def resume(self, published: Mapping[str, int]) -> None:
        """Continue after these publications."""
        self._published = dict(published)

    def begin(self) -> _Transaction:
        """Make sure that a commit follows."""
        if self._transaction is None:
            self._transaction = _Transaction(time.monotonic())
        return self._transaction

    def take(self, arrived: Arrived) -> None:
        """Apply a publication, unless it was applied before or cannot be yet."""
        if arrived.scorer in self._refused:
            return
        if arrived.row <= self._published.get(arrived.scorer, 0):
            return  # sent again by a scorer that did not hear that it was stored
        try:
            publication = self._decode(arrived.body)
        except UnknownFormatError as error:
            self._refused[arrived.scorer] = str(error)
            _log.error("publication refused", **self._named(arrived), reason=str(error))
            return
        except PublicationError as error:
            _log.error("publication skipped", **self._named(arrived), reason=str(error))
            publication = None
        self._published[arrived.scorer] = arrived.row
        transaction = self.begin()
        transaction.published[arrived.scorer] = arrived.row
        transaction.publications += 1
        if publication is not None:
            self._apply(publication, transaction)

    def _named(self, arrived: Arrived) -> dict[str, str]:
        """Who has sent it, for the log."""
        return {self._scorers_are: arrived.scorer}

    def _apply(self, publication: Publication, transaction: _Transaction) -> None:
        first = len(transaction.events)
        transaction.events += publication.events
        transaction.evidence |= {first + at: body for at, body in publication.evidence.items()}
        for event in publication.events:
            publish(self._gauge.metrics, event, publication.wall)
        for (name, *labels), state in publication.counts:
            if name in self._counters and state:
                self._counters[name].add(*labels, n=int(state[0]))
        self._records.merge(publication.records)

    def commit(self, pause: Callable[[], bool]) -> Stored | None:
        """Make everything durable, and publish it to the other sinks. While the store fails, this
        calls `pause`, and gives up if it returns false.
        """
        transaction, self._transaction = self._transaction, None
        if transaction is None:
            return None
        learned = list(self._records.pending())
        row, at = self._position
        progress = Progress(
            row,
            at,
            time.time(),
            transaction.events,
            counts=[*self._gauge.counts.pending(), *learned],
            evidence=transaction.evidence,
            published=transaction.published,
        )
        while not self._is_stored(progress):
            if not pause():
                return None
        self._gauge.counts.commit()
        self._records.commit()
        for event in transaction.events:
            for sink in self._gauge.sinks:
                publish(sink, event, progress.wall)
        return Stored(transaction.published, learned)

    def _is_stored(self, progress: Progress) -> bool:
        try:
            return self._commit(progress)
        # Skipping an unforeseen error would count the same publications again after a restart.
        except Exception:
            _log.exception("results could not be committed, trying again")
            return False

"""Collects what one slice of the past leads to, until it is made durable in one transaction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PipelineEvent, PublishedEvent, Unreadable
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.offline.judges import Judges
from pathgauge.collector.service.backfill.judging import Awaiting
from pathgauge.collector.service.backfill.series_file import SeriesFile
from pathgauge.collector.service.sink_calls import publish
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.collector.store import Progress
from pathgauge.scorers.judges.model_client.budget import Spent
from pathgauge.scorers.types import Reason


@dataclass(slots=True)
class _Slice:
    outcomes: list[PublishedEvent] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    counts: dict[tuple[str, ...], Row] = field(default_factory=dict)


class Recording:
    """Passes events on to the series and to judges, and keeps them for the store."""

    def __init__(
        self,
        pipeline: Pipeline,
        series: PrometheusSink,
        file: SeriesFile,
        references: ReferenceSet,
        judges: Judges | None,
    ) -> None:
        self.evaluations = 0
        """How many invocations were evaluated by this process."""
        self.unreadable: list[str] = []
        """The ids of traces that could not be read."""
        self.unjudged: Counter[Reason] = Counter()
        """Scores that judges were asked for and did not give, by reason."""
        self._pipeline = pipeline
        self._series = series
        self._file = file
        self._references = references
        self._judges = judges
        self._awaiting = Awaiting()
        self._slice = _Slice()

    def record(self, events: Sequence[PipelineEvent], now: float) -> None:
        """Take what happened at a Unix time."""
        for event in events:
            if isinstance(event, Unreadable):
                self.unreadable.append(event.trace_id)
                continue
            self._slice.outcomes.append(event)
            self._slice.times.append(now)
            self.evaluations += _is_first_of_invocation(event)
            publish(self._series, event, now)
        if self._judges is not None:
            self._awaiting.add(events)

    def step(self, now: float) -> None:
        """Ask the judges, and write what a scrape would show at this Unix time."""
        self._judge(now)
        self._collect_counts()
        self._file.write(self._series.shown.parts("openmetrics"), now)

    def commit(
        self, now: float, position: Callable[[int, Spent], Row], store: Callable[[Progress], bool]
    ) -> bool:
        """Make everything durable; `position` gets the size of the file of series, and what judges
        have spent.
        """
        self._judge(now)
        self._series.finish()  # what a collector stores now and then only is stored, too
        while self._collect_counts():
            pass
        spent: Spent = {} if self._judges is None else self._judges.budget.spent()
        row = position(self._file.sync(), spent)
        done, self._slice = self._slice, _Slice()
        counts = [*done.counts.values(), *self._pipeline.records.pending(), row]
        progress = Progress(
            0,
            now,
            now,
            done.outcomes,
            self._pipeline.changes(),
            counts,
            times=done.times,
        )
        committed = store(progress)
        self._pipeline.records.commit()
        return committed

    def _judge(self, now: float) -> None:
        """Ask the judges about everything that waits for them."""
        if self._judges is not None and (pending := self._awaiting.take()):
            for one, judged in self._judges(pending, self._references):
                self.unjudged.update(_missing(judged))
                self.record(self._pipeline.judged(one, judged), now)

    def _collect_counts(self) -> int:
        """Keep the counts that changed; returns how many."""
        rows = self._series.pending()
        self._series.commit()
        self._slice.counts.update({tuple(row.key): row for row in rows})
        return len(rows)


def _missing(judged: Evaluation) -> Iterator[Reason]:
    """Why models gave no scores; telemetry that lacks what a judge needs is another matter."""
    for reason in (result.score.reason for result in judged.results):
        if reason == "budget" or (reason is not None and reason.startswith("judge_")):
            yield reason


def _is_first_of_invocation(event: PublishedEvent) -> bool:
    return isinstance(event, Evaluation) and event.session is None and event.revision == 0

"""Runs a backfill, from an empty folder or from where an earlier process was stopped.

The folder holds a store, as a collector would have written it, and the file of series. After each
slice both are made durable: first the file, then the store, whose transaction has the size of the
file. So after a crash at any point the last slice is either complete, or it is done again.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import ActiveConfig
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.offline.judges import Judges
from pathgauge.collector.offline.progress import Progress, unreported
from pathgauge.collector.service.backfill.building import build_pipeline
from pathgauge.collector.service.backfill.estimating import estimate
from pathgauge.collector.service.backfill.folder import Options, continued, opened_store
from pathgauge.collector.service.backfill.history import Source, SourceError
from pathgauge.collector.service.backfill.intake import Intake
from pathgauge.collector.service.backfill.judging import Estimate
from pathgauge.collector.service.backfill.position import Position
from pathgauge.collector.service.backfill.recording import Recording
from pathgauge.collector.service.backfill.series_file import SeriesFile
from pathgauge.collector.service.backfill.slices import slices
from pathgauge.collector.service.backfill.timeline import Clock, Timeline
from pathgauge.collector.service.components import (
    build_metrics_sink,
    build_redactor,
    label_limits,
)
from pathgauge.collector.sinks.prometheus.sink import PrometheusSink
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage
from pathgauge.collector.store import Delivery, Restored, StoreError, Usage
from pathgauge.collector.store.sqlite.store import SqliteStore
from pathgauge.scorers.types import Reason


@dataclass(frozen=True, slots=True)
class Report:
    """What a backfill has done."""

    position: Position
    evaluations: int
    """By this process, as the following ones."""
    traces: int
    spans: int
    seconds: float
    unreadable: Sequence[str] = ()
    """Ids of traces."""
    notes: Sequence[str] = ()
    unjudged: Mapping[Reason, int] = field(default_factory=dict)
    """Scores that judges did not give, by reason."""
    resumed: bool = False


class Backfill:
    """The pipeline over a source."""

    def __init__(
        self,
        config: Config,
        setup: ActiveConfig,
        source: Source,
        options: Options,
        progress: Progress = unreported,
    ) -> None:
        self._config = config
        self._setup = setup
        self._source = source
        self._options = options
        self._progress = progress
        self._notes: dict[str, None] = {}

    def estimate(self) -> Estimate | None:
        """What judges would be asked about the part that is left; `None` without judges. Raises
        `StoreError` and `SourceError`.
        """
        parts = self._config, self._setup, self._source, self._options
        return estimate(*parts, self._report)

    def run(self, judges: Judges | None = None, *, declined: bool = False) -> Report:
        """Score what is left. Without `judges` none is asked; `declined` says that some are
        configured. Raises `StoreError` and `SourceError`.
        """
        began, options, judged = time.monotonic(), self._options, judges is not None
        telemetry, clock = InternalTelemetry(), Clock()
        pipeline = build_pipeline(
            self._config, self._setup, telemetry, judged=judged, declined=declined
        )
        series = self._series(telemetry, pipeline, clock)
        with opened_store(options.folder, self._config, clock) as store:
            restored = store.open()
            known = continued(restored, self._source.name, self._config, self._setup, options)
            if judges is not None:
                judges.budget.restore(known.spent)
            with closing(SeriesFile(options.folder, known.file_size, options.labels)) as file:
                recording = Recording(pipeline, series, file, self._setup.references, judges)
                timeline = Timeline(pipeline, clock, recording.record, recording.step, options.step)
                if restored.at:
                    timeline.resume(restored.at)
                    _resume(restored, store, pipeline, series)
                store.start(_refuse, clock)
                reached = known
                if not known.finished:
                    intake = Intake(options.tenant, build_redactor(self._config), telemetry)
                    reached = self._slices(known, intake, timeline, recording, store)
                file.finish()
        return Report(
            reached,
            recording.evaluations,
            reached.traces - known.traces,
            reached.spans - known.spans,
            time.monotonic() - began,
            tuple(recording.unreadable),
            tuple(self._notes),
            recording.unjudged,
            resumed=bool(restored.counts),
        )

    def _slices(
        self,
        reached: Position,
        intake: Intake,
        timeline: Timeline,
        recording: Recording,
        store: SqliteStore,
    ) -> Position:
        def commit() -> None:
            if not recording.commit(timeline.clock.now, reached.row, store.commit):
                reason = store.usage().reason or f"it is {store.usage().state}"
                raise StoreError(f"{self._options.folder}: the store cannot be written: {reason}")

        begin, length = reached.reached, reached.slice_length
        if begin == reached.since:
            begin = self._source.begin(begin, reached.until)
        past = slices(self._source, begin, reached.until, length=length)
        for since, until, found, length in past:
            self._report("backfilling", reached.since, reached.until, since)
            self._notes.update(dict.fromkeys(found.notes))
            if found.traces or timeline.clock.now:
                timeline.play(intake.accept(found.traces), until / 1e9)
            reached = reached.after(until, found, length)
            commit()
        if timeline.clock.now:
            timeline.finish()
        reached = replace(reached, finished=True)
        commit()
        return reached

    def _report(self, stage: str, since: int, until: int, at: int) -> None:
        day = time.strftime("%Y-%m-%d %H:%M", time.gmtime(at // 10**9))
        seconds = max(1, (until - since) // 10**9)
        self._progress(f"{stage}, {day}", (at - since) // 10**9, seconds)

    def _series(
        self, telemetry: InternalTelemetry, pipeline: Pipeline, clock: Clock
    ) -> PrometheusSink:
        return build_metrics_sink(
            self._config,
            self._setup,
            telemetry,
            lambda: CollectorUsage(Usage(), pipeline.usage(), 0, 0, 0.0),
            {},
            limits=label_limits(self._config),
            records=pipeline.records,
            clock=clock,
        )


def _resume(
    restored: Restored, store: SqliteStore, pipeline: Pipeline, series: PrometheusSink
) -> None:
    """Continue with what an earlier process has stored."""
    pipeline.restore(restored.traces, restored.at)
    for turn in restored.turns:
        pipeline.restore_turn(turn)
    for session in restored.sessions:
        pipeline.restore_session(session)
    pipeline.records.restore(restored.counts)
    series.restore(restored.counts, store.recent, restored.at)


def _refuse(delivery: Delivery) -> bool:
    """Nothing is delivered: traces do not come from a journal."""
    raise SourceError(f"found the request {delivery.row} in the journal, expected none")

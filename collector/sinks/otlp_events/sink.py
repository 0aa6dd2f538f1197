"""Sends evaluations to an OTLP backend as log records, in a thread of its own.

The queue is bounded. Events that do not fit, or that the backend does not accept in time, are
dropped and counted. Scoring never waits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from importlib.metadata import version

import structlog
from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.sdk._logs import ReadableLogRecord
from opentelemetry.sdk._logs.export import LogRecordExporter, LogRecordExportResult
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.own_events import EVALUATION_RESULT, SCOPE
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.sinks.otlp_events.event import Event, events_of, events_of_conversation
from pathgauge.collector.store.essential import EssentialThread

_log = structlog.get_logger(__name__)

MAX_BATCH = 512
"""Maximum number of events in a request."""
MAX_BATCH_DELAY_S = 1.0
"""How long the first event of a batch waits for others."""
MAX_CLOSE_S = 3.0
"""How long `close` waits for the backend."""
LOG_INTERVAL_S = 60.0
"""Minimum time between two log lines about failed exports."""


class OtlpEvents:
    """A sink. Withdrawn evaluations stay in the backend, which cannot delete events."""

    queue_name = "events"

    def __init__(
        self,
        exporter: LogRecordExporter,
        telemetry: InternalTelemetry,
        *,
        queue_size: int = 10_000,
        content: bool = False,
        results_url: str | None = None,
        reason: Callable[[], str] = str,
    ) -> None:
        """With `content`, explanations of scorers are sent; with `results_url`, links to the pages
        there. `reason` returns why the last export failed.
        """
        self._exporter = exporter
        self._telemetry = telemetry
        self.queue_size = queue_size
        self._events_of = partial(events_of, content=content, results_url=results_url)
        self._reason = reason
        self._waiting: deque[Event] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._logged_at = float("-inf")
        self._resource = Resource(
            {"service.name": "pathgauge", "service.version": version("pathgauge")}
        )
        self._scope = InstrumentationScope(SCOPE, version("pathgauge"))

    @property
    def waiting(self) -> int:
        """Number of events that wait to be sent."""
        return len(self._waiting)

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Queue the scores of an evaluation or a revision."""
        self._queue(self._events_of(evaluation, now))

    def publish_judged(self, judged: Judged, now: float) -> None:
        """Queue the scores of judges."""
        self._queue(self._events_of(judged.evaluation, now))

    def publish_conversation(self, result: ConversationResult, now: float) -> None:
        """Queue the scores of a conversation."""
        self._queue(events_of_conversation(result, now))

    def withdraw(self, key: EvaluationKey) -> None:
        """Do nothing: sent events cannot be taken back."""

    def close(self) -> None:
        """Send the waiting events for at most `MAX_CLOSE_S`, then drop the rest."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(MAX_CLOSE_S)
        self._exporter.shutdown()  # type: ignore[no-untyped-call]
        if self._thread is not None:
            self._thread.join(MAX_CLOSE_S)
        with self._changed:
            self._drop("shutdown", len(self._waiting))
            self._waiting.clear()

    def _queue(self, events: Iterable[Event]) -> None:
        with self._changed:
            for event in events:
                if self._closing or len(self._waiting) >= self.queue_size:
                    self._drop("shutdown" if self._closing else "full", 1)
                else:
                    self._waiting.append(event)
            if self._thread is None and self._waiting:
                self._thread = EssentialThread(self._run, "otlp events")
                self._thread.start()
            self._changed.notify()

    def _run(self) -> None:
        while batch := self._next():
            if self._send(batch):
                self._telemetry.events_exported.add(n=len(batch))
            else:
                with self._changed:
                    self._drop("failed", len(batch))

    def _next(self) -> list[Event]:
        """The next batch, when there is one; empty after the last one."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            self._changed.wait_for(
                lambda: len(self._waiting) >= MAX_BATCH or self._closing, MAX_BATCH_DELAY_S
            )
            return [self._waiting.popleft() for _ in range(min(MAX_BATCH, len(self._waiting)))]

    def _send(self, batch: list[Event]) -> bool:
        try:
            result = self._exporter.export([self._record(event) for event in batch])
        except Exception:  # unexpected errors of the library: the next batch may succeed
            _log.exception("evaluation events could not be sent")
            return False
        if result is LogRecordExportResult.SUCCESS:
            return True
        if time.monotonic() >= self._logged_at + LOG_INTERVAL_S:
            self._logged_at = time.monotonic()
            _log.warning(
                "the backend does not accept evaluation events; they are dropped",
                events=len(batch),
                reason=self._reason(),
            )
        return False

    def _record(self, event: Event) -> ReadableLogRecord:
        at = int(event.at * 1e9)
        span = SpanContext(
            event.trace_id,
            event.span_id,
            is_remote=True,
            trace_flags=TraceFlags(TraceFlags.SAMPLED),
        )
        record = LogRecord(
            timestamp=at,
            observed_timestamp=at,
            context=set_span_in_context(NonRecordingSpan(span)),
            severity_number=SeverityNumber.INFO,
            severity_text="INFO",
            event_name=EVALUATION_RESULT,
            attributes=event.attributes,
        )
        return ReadableLogRecord(record, self._resource, self._scope)

    def _drop(self, reason: str, number: int) -> None:
        if number:
            self._telemetry.events_dropped.add(reason, n=number)

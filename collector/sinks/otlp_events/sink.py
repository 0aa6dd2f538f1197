"""Evaluations come in, OTLP log records go out to a backend, beside everything else: a thread of
its own sends them.

What waits is bounded; what finds no room, and what the backend does not take in time, is dropped
and counted. Scoring never waits.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
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
from pathgauge.collector.sinks.otlp_events.event import Event, events_of, events_of_case

_log = structlog.get_logger(__name__)

BATCH = 512
"""Events of one request at most."""
GATHER_S = 1.0
"""How long the first event waits for others."""
CLOSE_S = 3.0
"""How long a stop waits for the backend."""
COMPLAIN_S = 60.0
"""How often the log says that a backend does not take events."""


class OtlpEvents:
    """A sink. `withdraw` takes nothing back, as no backend could."""

    def __init__(
        self,
        exporter: LogRecordExporter,
        telemetry: InternalTelemetry,
        *,
        queue_size: int = 10_000,
        content: bool = False,
        reason: Callable[[], str] = str,
    ) -> None:
        """`content` lets the explanations of scorers out; `reason` says why the exporter failed
        last.
        """
        self._exporter = exporter
        self._telemetry = telemetry
        self._queue_size = queue_size
        self._content = content
        self._reason = reason
        self._waiting: deque[Event] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None
        self._complained_at = float("-inf")
        self._resource = Resource(
            {"service.name": "pathgauge", "service.version": version("pathgauge")}
        )
        self._scope = InstrumentationScope(SCOPE, version("pathgauge"))

    @property
    def waiting(self) -> int:
        """How many events wait to be sent."""
        return len(self._waiting)

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Have an evaluation sent soon, a revision as well."""
        self._offer(events_of(evaluation, now, content=self._content))

    def publish_judged(self, judged: Judged, now: float) -> None:
        """Have what judges said sent soon."""
        self._offer(events_of(judged.evaluation, now, content=self._content))

    def publish_conversation(self, case: ConversationResult, now: float) -> None:
        """Have the scores of a conversation sent soon."""
        self._offer(events_of_case(case, now))

    def withdraw(self, key: EvaluationKey) -> None:
        """What was sent stays sent."""

    def close(self) -> None:
        """Send what waits, for `CLOSE_S` at most; the rest is dropped."""
        with self._changed:
            if self._closing:
                return
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(CLOSE_S)
        self._exporter.shutdown()  # type: ignore[no-untyped-call]
        if self._thread is not None:
            self._thread.join(CLOSE_S)
        with self._changed:
            self._drop("shutdown", len(self._waiting))
            self._waiting.clear()

    def _offer(self, events: Iterable[Event]) -> None:
        with self._changed:
            for event in events:
                if self._closing or len(self._waiting) >= self._queue_size:
                    self._drop("shutdown" if self._closing else "full", 1)
                else:
                    self._waiting.append(event)
            if self._thread is None and self._waiting:
                self._thread = threading.Thread(target=self._run, name="otlp events", daemon=True)
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
        """The next batch, as soon as there is one; none when nothing comes any more."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._closing)
            self._changed.wait_for(lambda: len(self._waiting) >= BATCH or self._closing, GATHER_S)
            return [self._waiting.popleft() for _ in range(min(BATCH, len(self._waiting)))]

    def _send(self, batch: list[Event]) -> bool:
        try:
            taken = (
                self._exporter.export([self._record(event) for event in batch])
                is LogRecordExportResult.SUCCESS
            )
        except Exception:  # whatever the library trips over, the next batch may do better
            _log.exception("evaluation events could not be sent")
            return False
        if not taken and time.monotonic() >= self._complained_at + COMPLAIN_S:
            self._complained_at = time.monotonic()
            _log.warning(
                "the backend does not take evaluation events; they are dropped",
                events=len(batch),
                reason=self._reason(),
            )
        return taken

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

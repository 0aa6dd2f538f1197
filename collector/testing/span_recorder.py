"""Keeps the spans and log records that reach a test process, over OTLP or from its own SDK.

There is one for a whole pytest session: agents read the endpoint once, when they set up their
exporters, and a process can set its global tracer provider only once.
"""

from __future__ import annotations

import threading
import time
import weakref
from typing import Self

from opentelemetry import _logs, trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from pathgauge.collector.client import ScenarioSpanProcessor
from pathgauge.collector.core import otlp
from pathgauge.collector.core.otlp.batch import Batch
from pathgauge.collector.offline.trace_files import TraceFiles
from pathgauge.collector.testing.otlp_endpoint import OtlpEndpoint
from pathgauge.scorers.matching.wording import counted


class SpanRecorder:
    """Thread-safe. Records from `__enter__` to `__exit__`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._files = TraceFiles()
        self._rejected = 0
        self._arrivals = 0
        self._attached: weakref.WeakSet[TracerProvider] = weakref.WeakSet()
        self._endpoint = OtlpEndpoint(self._accept)
        self.span_processor: SpanProcessor = _RecordingProcessor(self)
        """Records the spans of a tracer provider, and copies the scenario id onto them."""

    def __enter__(self) -> Self:
        self._endpoint.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._endpoint.stop()

    @property
    def endpoint(self) -> str:
        """The address of the OTLP/HTTP receiver."""
        return self._endpoint.url

    def attach(self, provider: TracerProvider) -> None:
        """Record the spans of this provider until the session ends."""
        if provider not in self._attached:
            provider.add_span_processor(self.span_processor)
            self._attached.add(provider)

    def flush(self, timeout: float) -> None:
        """Have the providers of this process export what they hold, for at most `timeout` seconds
        each.
        """
        providers = (trace.get_tracer_provider(), _logs.get_logger_provider(), *self._attached)
        for provider in {id(one): one for one in providers}.values():
            force_flush = getattr(provider, "force_flush", None)  # the API itself has none
            if force_flush is not None:
                force_flush(max(1, int(timeout * 1000)))

    def clear(self) -> None:
        """Forget everything."""
        with self._changed:
            self._files, self._rejected = TraceFiles(), 0
            self._arrivals += 1

    def snapshot(self) -> tuple[TraceFiles, int]:
        """What was received so far, and a number that `wait` takes."""
        with self._changed:
            notes = []
            if self._rejected:
                notes.append(f"rejected {counted(self._rejected, 'span')} as invalid OTLP")
            found = TraceFiles(list(self._files.spans), list(self._files.logs), notes=notes)
            return found, self._arrivals

    def wait(self, arrivals: int, deadline: float) -> bool:
        """Wait until more was received than at that snapshot; `False` at the deadline, a time of
        `time.monotonic`.
        """
        with self._changed:
            return self._changed.wait_for(
                lambda: self._arrivals != arrivals, deadline - time.monotonic()
            )

    def record(self, span: ReadableSpan) -> None:
        """Record a span of this process. The agent must not fail because of one that OTLP cannot
        hold.
        """
        try:
            decoded = otlp.decode_traces(encode_spans([span]).SerializeToString())
        except (ValueError, RecursionError):
            decoded = otlp.Decoded(())
        with self._changed:
            self._files.spans += decoded.records
            self._rejected += not decoded.records
            self._arrived()

    async def _accept(self, batch: Batch) -> bool:
        with self._changed:
            self._files.spans += batch.spans
            self._files.logs += batch.logs
            self._arrived()
        return True

    def _arrived(self) -> None:
        self._arrivals += 1
        self._changed.notify_all()


class _RecordingProcessor(ScenarioSpanProcessor):
    def __init__(self, recorder: SpanRecorder) -> None:
        super().__init__()
        self._recorder = recorder

    def on_end(self, span: ReadableSpan) -> None:
        """Record the span, unless it was not sampled."""
        context = span.get_span_context()
        if context is not None and context.trace_flags.sampled:
            self._recorder.record(span)

"""Calls the sink of a plug-in: counts its failures, and tells when it does not return.

All sinks are called by one thread, so one that waits for something stops the scoring. Nothing else
would tell which one it is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import structlog

from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Evaluation, EvaluationKey
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.pipeline_events import Judged
from pathgauge.collector.core.sink import Sink

_log = structlog.get_logger(__name__)

STUCK_S = 5.0
"""How long a call may take before it is told."""
LOG_INTERVAL_S = 60.0
"""Minimum time between two log lines about failures: a sink that is broken fails with every call.
"""


class GuardedSink:
    """A sink whose failures end here."""

    def __init__(
        self,
        name: str,
        sink: Sink,
        telemetry: InternalTelemetry,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`name` is the one of its section below `exporters`."""
        self.name = name
        self._sink = sink
        self._failures = telemetry.sink_failures
        self._failures.add(name, n=0)
        self._clock = clock
        self._called_at: float | None = None
        self._logged_at = -math.inf
        self._logged = 0

    def stuck(self) -> str | None:
        """That the sink does not return; for any thread."""
        if (called_at := self._called_at) is None:
            return None
        waited = self._clock() - called_at
        if waited < STUCK_S:
            return None
        return f"the sink {self.name!r} has not returned for {waited:.0f} s"

    def publish(self, evaluation: Evaluation, now: float) -> None:
        """Pass on."""
        with self._called():
            self._sink.publish(evaluation, now)

    def publish_judged(self, judged: Judged, now: float) -> None:
        """Pass on."""
        with self._called():
            self._sink.publish_judged(judged, now)

    def publish_conversation(self, result: ConversationResult, now: float) -> None:
        """Pass on."""
        with self._called():
            self._sink.publish_conversation(result, now)

    def withdraw(self, key: EvaluationKey) -> None:
        """Pass on."""
        with self._called():
            self._sink.withdraw(key)

    def close(self) -> None:
        """Close the sink."""
        with self._called():
            self._sink.close()

    @contextmanager
    def _called(self) -> Iterator[None]:
        self._called_at = self._clock()
        try:
            yield
        except KeyboardInterrupt:
            raise
        except BaseException:
            self._failures.add(self.name)
            self._log_failure()
        finally:
            self._called_at = None

    def _log_failure(self) -> None:
        if self._clock() < self._logged_at + LOG_INTERVAL_S:
            return
        count = self._failures.get(self.name)
        _log.exception("sink failed", sink=self.name, calls=count - self._logged)
        self._logged_at, self._logged = self._clock(), count

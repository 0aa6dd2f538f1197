"""What the pytest fixture `pathgauge_traces` gives to a test: where the agent has to send its spans
to, and what it sent.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.offline.trace_files import TraceFiles
from pathgauge.collector.testing.assertions import Criteria, Recorded, References, why_not
from pathgauge.collector.testing.read import PathLike, everything_in, read_invocations
from pathgauge.collector.testing.span_recorder import SpanRecorder
from pathgauge.scorers.matching.wording import counted
from pathgauge.scorers.types import Invocation

_SOURCE = Path("the traces of this test")
TIMEOUT_S = 10.0
"""How long to wait for invocations by default. Batching exporters of other processes send every 5
s.
"""


class ReceivedTraces:
    """The spans that arrived since the test began."""

    def __init__(self, recorder: SpanRecorder) -> None:
        self._recorder = recorder

    @property
    def endpoint(self) -> str:
        """The base address of an OTLP/HTTP receiver on loopback, such as
        `http://127.0.0.1:41234`. It is the same for the whole session.
        """
        return self._recorder.endpoint

    @property
    def span_processor(self) -> SpanProcessor:
        """For agents that run in the test process: add it to their tracer provider. Spans are
        received as soon as they end, with the scenario id of `pathgauge.scenario`.
        """
        return self._recorder.span_processor

    def attach(self, provider: TracerProvider | None = None) -> None:
        """Receive the spans of `provider`, by default of the global one, until the session ends. If
        there is no global provider, one is set. It may be called again.
        """
        if provider is None:
            current = trace.get_tracer_provider()
            provider = current if isinstance(current, TracerProvider) else TracerProvider()
            if provider is not current:
                trace.set_tracer_provider(provider)
        self._recorder.attach(provider)

    def invocations(self, at_least: int = 1, timeout: float = TIMEOUT_S) -> list[Invocation]:
        """The invocations of all agents so far, by their start.

        Waits until there are `at_least` so many whose own span arrived; after `timeout` seconds it
        returns those that there are.
        """
        files = self._wait(at_least, timeout)
        return _read(files)

    def assert_passes(
        self,
        references: References = (),
        criteria: Criteria | None = None,
        *,
        min_coverage: float = 1.0,
        at_least: int = 1,
        timeout: float = TIMEOUT_S,
    ) -> None:
        """`pathgauge.assert_passes` with what was received. Waits as `invocations` does; too few
        invocations fail.
        """
        __tracebackhide__ = True
        files = self._wait(at_least, timeout)
        text = why_not(Recorded(_SOURCE, files), references, criteria, min_coverage)
        found = _complete(_read(files))
        if found < at_least:
            invocations = counted(found, "complete invocation")
            few = f"{invocations} arrived within {timeout:g} s, expected {at_least}"
            text = f"{few}\n{text}" if text else few
        if text is not None:
            raise AssertionError(text)

    def save(self, path: PathLike) -> None:
        """Write what was received to a file that `pathgauge score` reads, for instance as an
        artifact of a CI job.
        """
        self._recorder.flush(TIMEOUT_S)
        files, _ = self._recorder.snapshot()
        requests = [encode_request(records) for records in (files.spans, files.logs) if records]
        with open(os.fspath(path), "wb") as file:
            for request in requests:
                file.write(len(request).to_bytes(4) + request)

    def _wait(self, at_least: int, timeout: float) -> TraceFiles:
        deadline = time.monotonic() + timeout
        while True:
            self._recorder.flush(max(0.0, deadline - time.monotonic()))
            files, arrivals = self._recorder.snapshot()
            if at_least <= 0 or _complete(_read(files)) >= at_least:
                return files
            if not self._recorder.wait(arrivals, deadline):
                return files


def _read(files: TraceFiles) -> list[Invocation]:
    read = read_invocations(files, _SOURCE, everything_in(files.spans))
    return [evaluation.invocation for evaluation in read.evaluations]


def _complete(invocations: list[Invocation]) -> int:
    return sum("missing_root" not in one.flags for one in invocations)

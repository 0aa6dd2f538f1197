"""Reads traces and evaluates their invocations: what is new, what changed, and what is withdrawn.

A trace fails alone: senders may send anything, and one that cannot be read or scored is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from pathgauge.collector.core.evaluations.accounting import count_unreadable
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Trace
from pathgauge.collector.core.pipeline_events import PipelineEvent, Withdrawn
from pathgauge.collector.core.published import PublishedTrace, PublishedTraces
from pathgauge.collector.core.reading_budget import TooSlowError
from pathgauge.collector.core.scoring import Scoring
from pathgauge.collector.core.trace_reading import Found, TraceReader
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.core.turns import Turns
from pathgauge.scorers.types import Invocation


class TraceEvaluation:
    """For the pipeline."""

    def __init__(
        self,
        reader: TraceReader,
        *,
        turns: Turns,
        scoring: Scoring,
        published: PublishedTraces,
        telemetry: InternalTelemetry,
        on_change: Callable[[TraceKey], None],
        on_too_slow: Callable[[TraceKey], None],
    ) -> None:
        """`on_change` gets each trace whose stored state has changed, `on_too_slow` each that takes
        too long to read.
        """
        self._reader = reader
        self._turns = turns
        self._scoring = scoring
        self._published = published
        self._telemetry = telemetry
        self._on_change = on_change
        self._on_too_slow = on_too_slow

    def each(self, traces: Iterable[Trace], now: float) -> list[PipelineEvent]:
        """Read and score one trace after the other, so that the result does not depend on which of
        them became ready together.
        """
        return self._score_all(self._readings(traces, now), now)

    def together(self, traces: Iterable[Trace], now: float) -> list[PipelineEvent]:
        """Read all traces before the first is scored, so that their order does not matter."""
        return self._score_all(list(self._readings(traces, now)), now)

    def _readings(self, traces: Iterable[Trace], now: float) -> Iterator[tuple[Trace, Found]]:
        for trace, found in self._reader.read(traces, self._scoring.extras, now):
            key = trace.tenant, trace.trace_id
            self._on_change(key)
            if isinstance(found, TooSlowError):
                self._on_too_slow(key)
            yield trace, found

    def _score_all(self, traces: Iterable[tuple[Trace, Found]], now: float) -> list[PipelineEvent]:
        events: list[PipelineEvent] = []
        settled = self._reader.records.settled
        for trace, found in traces:
            if isinstance(found, BaseException):
                events.append(count_unreadable(trace.trace_id, found, self._telemetry))
                continue
            try:
                events.extend(self._score(trace, list(map(settled, found)), now))
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # as when reading
                events.append(count_unreadable(trace.trace_id, error, self._telemetry))
        # Turns that were read together renumber their conversation once.
        return events + self._turns.evaluate_due(now)

    def _score(
        self, trace: Trace, invocations: Sequence[Invocation], now: float
    ) -> Iterator[PipelineEvent]:
        key = trace.tenant, trace.trace_id
        if not invocations and self._published.get(key) is None:
            self._telemetry.traces_skipped.add("no_agent_spans" if trace.spans else "no_spans")
            return
        published = self._published.read(key, now)
        entry_agents = {invocation.span_id for invocation in invocations}
        yield from self._withdraw(trace, published, entry_agents)
        for invocation in invocations:
            yield from self._evaluate(invocation, trace, published, now)

    def _withdraw(
        self, trace: Trace, published: PublishedTrace, entry_agents: Set[str]
    ) -> Iterator[PipelineEvent]:
        """Withdraw evaluations of spans that are now enclosed by a larger invocation, or no longer
        belong to an agent that never arrived.
        """
        present = {span.span_id for span in trace.spans}
        if not trace.is_part:
            present |= {span.parent_id for span in trace.spans if span.parent_id is not None}
        for span_id in present & published.fingerprints.keys() - entry_agents:
            key = trace.tenant, trace.trace_id, span_id
            yield from self._turns.withdraw(key, published)
            del published.fingerprints[span_id]
            self._scoring.withdraw(key)
            self._telemetry.withdrawn.add()
            yield Withdrawn(key)

    def _evaluate(
        self, invocation: Invocation, trace: Trace, published: PublishedTrace, now: float
    ) -> Iterator[Evaluation]:
        if published.has(invocation):
            return
        match = self._turns.match(invocation, trace.closed_by, published, now)
        if match is not None:
            revision = published.add(invocation)
            yield self._scoring.evaluate(invocation, match, trace.closed_by, revision)

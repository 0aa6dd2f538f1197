"""Reads the invocations of traces, each within a budget of CPU time, and learns from them what the
telemetry of each agent version shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set

from pathgauge.collector.core.agent_records import AgentRecords
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.invocations import readings
from pathgauge.collector.core.invocations.dialects import Registry
from pathgauge.collector.core.invocations.reading import Reading
from pathgauge.collector.core.otlp.spans import Span, Trace
from pathgauge.collector.core.reading_budget import CpuClock, ReadingBudget, TooSlowError
from pathgauge.collector.core.traces import TraceKey
from pathgauge.scorers.authoring.extras import Extras

UNNAMED = "unnamed"
"""The scope of spans that have none."""

Found = list[Reading] | BaseException
"""The invocations of a trace, or why it cannot be read."""


class TraceReader:
    """For the pipeline."""

    def __init__(
        self,
        registry: Registry,
        telemetry: InternalTelemetry,
        scenario_keys: tuple[str, ...],
        synthetic_tenants: Set[str],
        *,
        max_cpu_s: float,
        cpu_clock: CpuClock,
    ) -> None:
        """`synthetic_tenants` have no agents to learn of. `max_cpu_s` is the budget of a trace."""
        self.records = AgentRecords()
        """What is known of the telemetry of each agent version."""
        self._registry = registry
        self._telemetry = telemetry
        self._scenario_keys = scenario_keys
        self._synthetic_tenants = synthetic_tenants
        self._max_cpu_s = max_cpu_s
        self._cpu_clock = cpu_clock

    def read(
        self, traces: Iterable[Trace], extras: Extras, now: float
    ) -> Iterator[tuple[Trace, Found]]:
        """Each trace with its invocations. Parts of the same trace share one budget; when it is
        used up, the others are not read.
        """
        budgets: dict[TraceKey, ReadingBudget] = {}
        too_slow: set[TraceKey] = set()
        for trace in traces:
            key = trace.tenant, trace.trace_id
            if key in too_slow:
                continue
            budget = ReadingBudget(self._max_cpu_s, self._cpu_clock)
            with budgets.setdefault(key, budget).measured():
                found = self._read(trace, extras, now)
            if isinstance(found, TooSlowError):
                too_slow.add(key)
            yield trace, found

    def _read(self, trace: Trace, extras: Extras, now: float) -> Found:
        try:
            found = self._read_and_release(trace, extras)
        except KeyboardInterrupt:
            raise
        # Senders may send anything: an unforeseen trace must not affect the others.
        except BaseException as error:
            return error
        if trace.tenant not in self._synthetic_tenants:
            self.records.learn(found, now)
        return found

    def _read_and_release(self, trace: Trace, extras: Extras) -> list[Reading]:
        """Read the invocations, then drop the decoded form of the records: the assembler keeps them
        for revisions, and should pay for their bytes only.
        """
        try:
            counts = trace.is_first and trace.tenant not in self._synthetic_tenants
            unread = self._count_unread if counts else None
            return readings(trace, self._registry, self._scenario_keys, extras, unread)
        finally:
            for span in trace.spans:
                span.release()
            for log in trace.logs:
                log.release()

    def _count_unread(self, span: Span) -> None:
        self._telemetry.unread_scopes.add(span.scope.name or UNNAMED)

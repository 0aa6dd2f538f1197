"""The whole flow from spans to evaluations. Start reading here.

    spans and log records
      -> Assembler      collects them by trace and decides when a trace can be read
      -> read           finds the agent invocations in a trace, whatever framework made it
      -> ReferenceSet   finds the reference of an invocation; `Conversations` numbers the turns
      -> Evaluator      scores the invocation and compares the scores with thresholds
      -> PipelineEvent  evaluations and conversation scores, for the sinks and the store

The pipeline has no clock, no I/O and no threads: callers pass the time as `now`, and call `expire`
at `deadline`. This makes every run repeatable.

Late spans may change an invocation that was already published. It is then evaluated again, and the
new *revision* replaces the earlier evaluation. Counters treat it as one invocation: it is counted
once, either as scored or as skipped with a reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import replace

from pathgauge.collector.core.evaluations.accounting import (
    count_conversation,
    count_evaluation,
    count_scored,
)
from pathgauge.collector.core.evaluations.conversations import MAX_BYTES, Conversations
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator, WhenJudged
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment, PendingJudgments
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.invocations import DEFAULT_KEYS, read
from pathgauge.collector.core.invocations.dialects import Registry
from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.core.pipeline_events import (
    Changes,
    Judged,
    PipelineEvent,
    StoredTrace,
    Unreadable,
    Withdrawn,
)
from pathgauge.collector.core.published import PublishedTrace, PublishedTraces
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.core.traces import Assembler, Bounds, Recall, TraceKey
from pathgauge.collector.core.traces.explain import Waiting, explain
from pathgauge.collector.core.usage import PipelineUsage
from pathgauge.scorers.types import Invocation


class Pipeline:
    """Turns spans and log records into evaluations. Not thread-safe: one thread owns it."""

    def __init__(
        self,
        registry: Registry,
        evaluator: Evaluator,
        references: ReferenceSet,
        telemetry: InternalTelemetry,
        bounds: Bounds | None = None,
        *,
        scenario_keys: tuple[str, ...] = DEFAULT_KEYS,
        conversation_idle: float = 1800.0,
        max_conversation_bytes: int = MAX_BYTES,
        recall: Recall | None = None,
        judging: Callable[[Invocation, str | None], WhenJudged] | None = None,
    ) -> None:
        """Times are in seconds.

        `recall` reads the records of spilled traces back from the journal; without it, nothing is
        spilled. `judging` decides for an invocation and its scenario id whether judges are asked;
        without it, they never are.
        """
        self._bounds = bounds or Bounds()
        self._assembler = Assembler(self._bounds, telemetry, registry.may_be_entry, recall)
        self._conversations = Conversations(conversation_idle, max_bytes=max_conversation_bytes)
        self._evaluator = evaluator
        self._references = references
        self._telemetry = telemetry
        self._scenario_keys = scenario_keys
        self._registry = registry
        self._judging = judging
        self._pending = PendingJudgments()
        self._published = PublishedTraces(self._bounds)
        self._changed: dict[TraceKey, None] = {}
        self._orphaned_turns: list[tuple[str, str, str]] = []

    def configure(self, evaluator: Evaluator, references: ReferenceSet) -> None:
        """Apply new criteria and references to everything that is read from now on."""
        self._evaluator = evaluator
        self._references = references

    def feed(
        self, spans: Iterable[Span], logs: Iterable[LogRecord], now: float, row: int = 0
    ) -> list[PipelineEvent]:
        """Process records that arrived at `now`. `row` is their journal row; 0 means no journal."""
        return self._read_all(self._assembler.feed(spans, logs, now, row), now)

    def expire(self, now: float) -> list[PipelineEvent]:
        """Process everything that became ready by `now`: quiet traces, idle conversations."""
        events = self._read_all(self._assembler.expire(now), now)
        for conversation in self._conversations.expire(now):
            count_conversation(conversation, self._telemetry)
            events.append(conversation)
        self._published.expire(now)
        return events

    def deadline(self) -> float | None:
        """The earliest time at which `expire` may have something to do; calling it earlier is
        harmless. `None`: nothing is waiting.
        """
        deadlines = self._assembler.deadline(), self._conversations.deadline()
        return min((time for time in deadlines if time is not None), default=None)

    def judged(self, pending: PendingJudgment, evaluation: Evaluation) -> list[PipelineEvent]:
        """Process the results of judges. They are ignored if the evaluation was revised or
        withdrawn in the meantime.
        """
        if not self._pending.is_current(pending):
            return []
        self._pending.end(pending.key)
        self._conversations.add_scores(evaluation)
        if pending.unscored:
            count_scored(evaluation, self._telemetry)
        return [Judged(evaluation, pending.first)]

    def read_open(self, now: float) -> list[PipelineEvent]:
        """Read all open traces at once, complete or not."""
        return self._read_all(self._assembler.drain(now), now)

    def finish_conversations(self) -> list[PipelineEvent]:
        """Score all open conversations at once, without waiting for further turns."""
        conversations = self._conversations.drain()
        for conversation in conversations:
            count_conversation(conversation, self._telemetry)
        return list(conversations)

    def drain(self, now: float) -> list[PipelineEvent]:
        """Read all open traces and score all open conversations."""
        return [*self.read_open(now), *self.finish_conversations()]

    def _read_all(self, traces: Iterable[Trace], now: float) -> list[PipelineEvent]:
        events: list[PipelineEvent] = []
        for trace in traces:
            try:
                events.extend(self._read(trace, now))
            # Senders may send anything: an unforeseen trace must not affect the others.
            except Exception as error:
                self._telemetry.traces_skipped.add("unreadable")
                events.append(Unreadable(trace.trace_id, error))
        return events

    def _read(self, trace: Trace, now: float) -> Iterator[PipelineEvent]:
        key = trace.tenant, trace.trace_id
        self._changed[key] = None
        invocations = _read_and_release(trace, self._scenario_keys, self._registry)
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
    ) -> Iterator[Withdrawn]:
        """Withdraw evaluations of spans that are now enclosed by a larger invocation."""
        present = {span.span_id for span in trace.spans}
        for span_id in present & published.fingerprints.keys() - entry_agents:
            del published.fingerprints[span_id]
            key = trace.tenant, trace.trace_id, span_id
            self._conversations.withdraw(key)
            pending = self._pending.end(key)
            if pending is not None and pending.unscored:
                self._telemetry.invocations_skipped.add("withdrawn")
            self._telemetry.withdrawn.add()
            yield Withdrawn(key)

    def _evaluate(
        self, invocation: Invocation, trace: Trace, published: PublishedTrace, now: float
    ) -> Iterator[Evaluation]:
        if published.has(invocation):
            return
        for turn, match in self._match(invocation, now):
            key = turn.tenant, turn.trace_id
            # A late turn renumbers others of its conversation, which may be in other traces.
            if turn.trace_id != trace.trace_id:
                other_trace = self._published.get(key)
                if other_trace is None:
                    continue  # too old for a revision
                revision = other_trace.add(turn)
            else:
                revision = published.add(turn)
            self._changed[key] = None
            evaluation = self._evaluator.evaluate(
                turn,
                match,
                closed_by=trace.closed_by,
                revision=revision,
                judging=self._when_judged(turn, match),
            )
            self._conversations.record_scores(evaluation)
            count_evaluation(evaluation, self._telemetry)
            self._update_pending(evaluation)
            yield evaluation

    def _match(self, invocation: Invocation, now: float) -> list[tuple[Invocation, Match]]:
        """The invocation with its reference turn, and all other turns of its conversation that it
        renumbers.
        """
        reference = self._references.multi_turn(invocation)
        if reference is None or invocation.conversation_id is None:
            return [(invocation, self._references.match(invocation, invocation.turn))]
        numbered = self._conversations.place(invocation, reference, now)
        if not numbered:
            dropped = self._conversations.dropped_turns(invocation)
            return [(invocation, Match(unmatched="unexpected_turn", dropped_turns=dropped))]
        return [(turn, self._references.match(turn, index)) for turn, index in numbered]

    def _when_judged(self, invocation: Invocation, match: Match) -> WhenJudged:
        if self._judging is None:
            return "unconfigured"
        if (invocation.tenant, invocation.trace_id, invocation.span_id) in self._pending:
            return "later"  # a revision keeps the place in the queue
        scenario_id = invocation.scenario_id
        if match.reference is not None:
            scenario_id = match.reference.scenario_id
        return self._judging(invocation, scenario_id)

    def _update_pending(self, evaluation: Evaluation) -> None:
        earlier = self._pending.update(evaluation)
        counts_now = evaluation.scored or not evaluation.awaits
        if earlier is not None and earlier.unscored and counts_now:
            count_scored(evaluation, self._telemetry)  # the earlier revision was not counted yet

    @property
    def has_changes(self) -> bool:
        """Whether `changes` would return anything."""
        return (
            bool(self._changed or self._orphaned_turns)
            or self._pending.has_changes
            or self._assembler.has_released
        )

    def changes(self) -> Changes:
        """State changes since the last call, to be stored in one transaction with the events."""
        self._changed.update(dict.fromkeys(self._assembler.given_up()))
        traces = tuple(self._stored_trace(key) for key in self._changed)
        self._changed.clear()
        orphaned, self._orphaned_turns = tuple(self._orphaned_turns), []
        released_rows = tuple(self._assembler.released())
        return Changes(traces, released_rows, orphaned, *self._pending.changes())

    def _stored_trace(self, key: TraceKey) -> StoredTrace:
        snapshot, published = self._assembler.snapshot(key), self._published.get(key)
        if published is None:
            return StoredTrace(snapshot, {})
        if snapshot.forgotten:
            snapshot = replace(snapshot, closed_at=published.read_at)
        return StoredTrace(snapshot, dict(published.fingerprints))

    def restore(self, stored: Iterable[StoredTrace], now: float) -> None:
        """Continue with the traces of an earlier process. Nothing is counted or published again."""
        traces = tuple(stored)
        for trace in traces:
            self._assembler.restore(trace.snapshot, now)
        self._published.restore(traces, now)

    def restore_turn(self, invocation: Invocation, now: float, dropped_turns: int = 0) -> None:
        """Restore one stored turn of an open conversation. `dropped_turns` > 0: restore only the
        number of dropped turns.
        """
        reference = self._references.multi_turn(invocation)
        if reference is None:
            key = invocation.tenant, invocation.trace_id, invocation.span_id
            self._orphaned_turns.append(key)
            return
        if dropped_turns:
            self._conversations.restore_dropped(invocation, reference, dropped_turns, now)
            return
        for turn, index in self._conversations.place(invocation, reference, now):
            match = self._references.match(turn, index)
            self._conversations.record_scores(self._evaluator.evaluate(turn, match))

    def restore_pending(self, pending: PendingJudgment) -> None:
        """Wait for judges again, as an earlier process did."""
        self._pending.restore(pending)

    def suspect(self, row: int) -> None:
        """Journal rows up to `row` may be lost. Open traces that might have had records in them are
        read as truncated.
        """
        self._assembler.suspect(row)

    def forget_read(self, traces: int) -> int:
        """Forget up to so many read traces, the oldest first, to free journal rows; returns how
        many were forgotten.
        """
        return self._assembler.forget_retained(traces)

    def discard(self, traces: Set[TraceKey]) -> None:
        """Purge traces, read or not. Counters keep their values; records that still arrive for
        these traces are dropped.
        """
        self._assembler.discard(traces)
        self._conversations.discard(traces)
        self._pending.discard(traces)
        for key in traces:
            self._published.discard(key)
            self._changed.pop(key, None)

    def waiting(self, now: float, max_traces: int) -> list[Waiting]:
        """Open traces and why they are still open, the oldest first."""
        return [explain(trace, self._bounds, now) for trace in self._assembler.oldest(max_traces)]

    def usage(self) -> PipelineUsage:
        """How much the pipeline holds now; for any thread."""
        assembler = self._assembler
        return PipelineUsage(
            open_traces=assembler.open_traces,
            spilled_traces=assembler.spilled_traces,
            retained_traces=assembler.retained_traces,
            open_bytes=assembler.open_bytes,
            max_open_bytes=self._bounds.max_open_bytes,
            conversation_bytes=self._conversations.size,
        )

    @property
    def full(self) -> bool:
        """Whether memory is used up, so that senders should retry later."""
        return self._assembler.full


def _read_and_release(
    trace: Trace, scenario_keys: tuple[str, ...], registry: Registry
) -> list[Invocation]:
    """Read the invocations, then drop the decoded form of the records: the assembler keeps them for
    revisions, and should pay for their bytes only.
    """
    try:
        return read(trace, registry, scenario_keys)
    finally:
        for span in trace.spans:
            span.release()
        for log in trace.logs:
            log.release()

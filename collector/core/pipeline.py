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

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import replace

from pathgauge.collector.core.evaluations.accounting import (
    count_conversation,
    count_evaluation,
    count_scored,
    count_synthetic,
)
from pathgauge.collector.core.evaluations.conversation import Turn
from pathgauge.collector.core.evaluations.conversations import (
    MAX_BYTES,
    Conversations,
    Ended,
    conversation_key,
)
from pathgauge.collector.core.evaluations.evaluator import (
    Evaluation,
    EvaluationKey,
    Evaluator,
    WhenJudged,
)
from pathgauge.collector.core.evaluations.forwarding import Forwarding
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment, PendingJudgments
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.evidence.failures import with_failure
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.invocations import DEFAULT_KEYS
from pathgauge.collector.core.invocations.dialects import Registry
from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.core.partitioning import WHOLE, Partition
from pathgauge.collector.core.pipeline_events import (
    Changes,
    ForwardedTurn,
    Judged,
    PipelineEvent,
    StoredTrace,
    Unreadable,
    Withdrawn,
)
from pathgauge.collector.core.published import PublishedTrace, PublishedTraces
from pathgauge.collector.core.reading_budget import CpuClock, TooSlowError
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.core.trace_reading import Found, TraceReader
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
        synthetic_tenants: Set[str] = frozenset(),
        cpu_clock: CpuClock = lambda: 0.0,
        partition: Partition = WHOLE,
    ) -> None:
        """Times are in seconds.

        `recall` reads the records of spilled traces back from the journal; without it, nothing is
        spilled. `judging` decides for an invocation and its scenario id whether judges are asked;
        without it, they never are. Invocations of `synthetic_tenants` are scored, but they are no
        agent's, and counted as such. `cpu_clock` measures how long traces are read.

        `partition` is the part of all traces and conversations that this pipeline gets.
        """
        self._bounds = bounds or Bounds()
        self._assembler = Assembler(self._bounds, telemetry, registry.may_be_entry, recall)
        self._conversations = Conversations(conversation_idle, max_bytes=max_conversation_bytes)
        self._forwarding = Forwarding(partition)
        self._evaluator = evaluator
        self._references = references
        self._telemetry = telemetry
        self._judging = judging
        self._synthetic_tenants = synthetic_tenants
        self._reader = TraceReader(
            registry, scenario_keys, synthetic_tenants, self._bounds.max_reading_cpu, cpu_clock
        )
        self.records = self._reader.records
        """What is known of the telemetry of each agent version."""
        self._pending = PendingJudgments()
        self._published = PublishedTraces(self._bounds)
        self._changed: dict[TraceKey, None] = {}
        self._orphaned_turns: list[tuple[str, str, str]] = []
        self._processed_turns: list[int] = []

    def configure(self, evaluator: Evaluator, references: ReferenceSet) -> None:
        """Apply new criteria and references to everything that is read from now on."""
        self._evaluator = evaluator
        self._references = references

    def feed(
        self, spans: Iterable[Span], logs: Iterable[LogRecord], now: float, row: int = 0
    ) -> list[PipelineEvent]:
        """Process records that arrived at `now`. `row` is their journal row; 0 means no journal."""
        return self._read_all(self._assembler.feed(spans, logs, now, row), now)

    def feed_turn(self, turn: ForwardedTurn, now: float, row: int = 0) -> list[PipelineEvent]:
        """Process a turn that another partition has forwarded, from the journal row `row`, which is
        not needed any more.
        """
        if row:
            self._processed_turns.append(row)
        try:
            if turn.invocation is None:
                return list(self._withdraw_turn(turn))
            if self._is_outdated(turn):
                return []
            events = list(self._place_forwarded(turn, turn.invocation, now))
        except Exception as error:  # as of a trace
            return [self._unreadable(turn.key[1], error)]
        return events + self._evaluate_turns(self._conversations.numbered(now))

    def expire(self, now: float) -> list[PipelineEvent]:
        """Process everything that became ready by `now`: quiet traces, idle conversations."""
        events = self._read_all(self._assembler.expire(now), now)
        events += self._finish(self._conversations.expire(now))
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
        return [Judged(with_failure(evaluation), pending.first, pending.failed)]

    def read_open(self, now: float) -> list[PipelineEvent]:
        """Read all open traces at once, complete or not. All are read before the first is scored,
        so that their order does not matter.
        """
        return self._score_all(list(self._readings(self._assembler.drain(now), now)), now)

    def finish_conversations(self) -> list[PipelineEvent]:
        """Score all open conversations at once, without waiting for further turns."""
        return self._finish(self._conversations.drain())

    def drain(self, now: float) -> list[PipelineEvent]:
        """Read all open traces and score all open conversations."""
        return [*self.read_open(now), *self.finish_conversations()]

    def _read_all(self, traces: Iterable[Trace], now: float) -> list[PipelineEvent]:
        """Read and score one trace after the other, so that the result does not depend on which of
        them became ready together.
        """
        return self._score_all(self._readings(traces, now), now)

    def _readings(self, traces: Iterable[Trace], now: float) -> Iterator[tuple[Trace, Found]]:
        for trace, found in self._reader.read(traces, self._evaluator.extras, now):
            key = trace.tenant, trace.trace_id
            self._changed[key] = None
            if isinstance(found, TooSlowError):
                self._assembler.abandon(key)
            yield trace, found

    def _score_all(self, traces: Iterable[tuple[Trace, Found]], now: float) -> list[PipelineEvent]:
        events: list[PipelineEvent] = []
        for trace, found in traces:
            if isinstance(found, Exception):
                events.append(self._unreadable(trace.trace_id, found))
                continue
            try:
                events.extend(self._score(trace, list(map(self.records.settled, found)), now))
            except Exception as error:  # as when reading
                events.append(self._unreadable(trace.trace_id, error))
        # Turns that were read together renumber their conversation once.
        return events + self._evaluate_turns(self._conversations.numbered(now))

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
    ) -> Iterator[Withdrawn]:
        """Withdraw evaluations of spans that are now enclosed by a larger invocation."""
        present = {span.span_id for span in trace.spans}
        for span_id in present & published.fingerprints.keys() - entry_agents:
            key = trace.tenant, trace.trace_id, span_id
            if published.is_forwarded(span_id):
                self._forwarding.withdraw(key, void=True)
            del published.fingerprints[span_id]
            self._conversations.withdraw(key)
            self._end_judgment(key)
            self._telemetry.withdrawn.add()
            yield Withdrawn(key)

    def _end_judgment(self, key: EvaluationKey) -> None:
        """Stop waiting for the judges of an evaluation that is void."""
        pending = self._pending.end(key)
        if pending is not None and pending.unscored:
            self._telemetry.invocations_skipped.add("withdrawn")

    def _evaluate(
        self, invocation: Invocation, trace: Trace, published: PublishedTrace, now: float
    ) -> Iterator[Evaluation]:
        if published.has(invocation):
            return
        if published.is_forwarded(invocation.span_id):
            key = invocation.tenant, invocation.trace_id, invocation.span_id
            self._forwarding.withdraw(key, void=False)
            published.recall(invocation.span_id)
        match = self._match(invocation, trace.closed_by, published, now)
        if match is not None:
            revision = published.add(invocation)
            yield self._evaluated(invocation, match, trace.closed_by, revision)

    def _match(
        self, invocation: Invocation, closed_by: str, published: PublishedTrace, now: float
    ) -> Match | None:
        """The reference turn of the invocation; `None` for a turn of a conversation, which has to
        be numbered first.
        """
        reference = self._references.multi_turn(invocation)
        if reference is None or invocation.conversation_id is None:
            self._forget_turn(invocation)  # late spans changed its scenario
            return self._references.match(invocation, invocation.turn)
        conversation = conversation_key(invocation)
        if self._forwarding.is_foreign(conversation):
            self._forget_turn(invocation)
            revision = published.forward(invocation)
            self._forwarding.forward(invocation, conversation, closed_by, revision)
            return None
        if self._conversations.place(invocation, reference, now, closed_by):
            return None
        return Match(unmatched="unexpected_turn")

    def _forget_turn(self, invocation: Invocation) -> None:
        key = invocation.tenant, invocation.trace_id, invocation.span_id
        if self._conversations.withdraw(key):
            self._orphaned_turns.append(key)

    def _place_forwarded(
        self, turn: ForwardedTurn, invocation: Invocation, now: float
    ) -> Iterator[Evaluation]:
        """Add a turn to its conversation. It is evaluated at once if it has none here, because the
        references were reloaded in the meantime or the conversation has too many turns.
        """
        reference = self._references.multi_turn(invocation)
        if reference is None:
            match = self._references.match(invocation, invocation.turn)
        elif self._conversations.place(
            invocation, reference, now, turn.closed_by, after=turn.revision - 1
        ):
            return
        else:
            match = Match(unmatched="unexpected_turn")
        yield self._evaluated(invocation, match, turn.closed_by, turn.revision)

    def _is_outdated(self, turn: ForwardedTurn) -> bool:
        """Whether late spans have changed the invocation in the meantime. It was forwarded when
        there was another number of partitions, and has stayed here since.
        """
        tenant, trace_id, span_id = turn.key
        published = self._published.get((tenant, trace_id))
        return published is not None and published.has_newer(span_id, turn.revision)

    def _withdraw_turn(self, turn: ForwardedTurn) -> Iterator[Withdrawn]:
        """Forget a turn. Its partition withdraws the evaluation too, but the order in which the
        gauge reads partitions is unknown.
        """
        if self._conversations.withdraw(turn.key):
            self._orphaned_turns.append(turn.key)
        if turn.void:
            self._end_judgment(turn.key)
            yield Withdrawn(turn.key)

    def _evaluate_turns(self, turns: Iterable[tuple[Turn, int]]) -> list[PipelineEvent]:
        events: list[PipelineEvent] = []
        for turn, index in turns:
            try:
                events.append(self._evaluate_turn(turn, index))
            except Exception as error:  # as of a trace
                events.append(self._unreadable(turn.invocation.trace_id, error))
        return events

    def _unreadable(self, trace_id: str, error: Exception) -> Unreadable:
        is_too_slow = isinstance(error, TooSlowError)
        self._telemetry.traces_skipped.add("too_slow" if is_too_slow else "unreadable")
        return Unreadable(trace_id, error)

    def _evaluate_turn(self, turn: Turn, index: int) -> Evaluation:
        invocation, revision = turn.invocation, turn.revision + 1
        key = invocation.tenant, invocation.trace_id
        published = self._published.get(key)
        # A conversation may take longer than late spans of its first turns are waited for.
        if published is not None:
            revision = published.add(invocation, after=turn.revision)
            self._changed[key] = None
        match = self._references.match(invocation, index)
        evaluation = self._evaluated(invocation, match, turn.closed_by, revision)
        self._conversations.record(turn, evaluation)
        return evaluation

    def _evaluated(
        self, invocation: Invocation, match: Match, closed_by: str, revision: int
    ) -> Evaluation:
        evaluation = with_failure(
            self._evaluator.evaluate(
                invocation,
                match,
                closed_by=closed_by,
                revision=revision,
                judging=self._when_judged(invocation, match),
            )
        )
        if invocation.tenant in self._synthetic_tenants:
            count_synthetic(evaluation, self._telemetry)
        else:
            count_evaluation(evaluation, self._telemetry)
        self._update_pending(evaluation)
        return evaluation

    def _finish(self, ended: Iterable[Ended]) -> list[PipelineEvent]:
        events: list[PipelineEvent] = []
        for key, conversation in ended:
            events += self._evaluate_turns(conversation.end())
            if conversation.turns:
                result = conversation.result(key)
                count_conversation(result, self._telemetry)
                events.append(result)
        return events

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
            bool(self._changed or self._orphaned_turns or self._processed_turns)
            or self._conversations.has_changes
            or self._pending.has_changes
            or self._forwarding.has_changes
            or self._assembler.has_released
        )

    def changes(self) -> Changes:
        """State changes since the last call, to be stored in one transaction with the events."""
        self._changed.update(dict.fromkeys(self._assembler.given_up()))
        traces = tuple(self._stored_trace(key) for key in self._changed)
        self._changed.clear()
        orphaned, self._orphaned_turns = tuple(self._orphaned_turns), []
        released_rows = (*self._assembler.released(), *self._processed_turns)
        self._processed_turns = []
        return Changes(
            traces,
            released_rows,
            orphaned,
            *self._pending.changes(),
            *self._conversations.changes(),
            tuple(self._forwarding.changes()),
        )

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

    def restore_turn(self, stored: StoredTurn) -> None:
        """Continue with one turn of an open conversation of an earlier process."""
        invocation = stored.invocation
        reference = self._references.multi_turn(invocation)
        if reference is None:
            key = invocation.tenant, invocation.trace_id, invocation.span_id
            self._orphaned_turns.append(key)
            return
        turn = self._conversations.restore(stored, reference)
        if turn is not None:
            match = self._references.match(invocation, turn.number)
            turn.record(self._evaluator.evaluate(invocation, match, revision=turn.revision))

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
            max_conversation_bytes=self._conversations.max_bytes,
        )

    @property
    def full(self) -> bool:
        """Whether memory is used up, so that senders should retry later."""
        return self._assembler.full

"""The whole flow from spans to evaluations. Start reading here.

    spans and log records
      -> Assembler      collects them by trace and decides when a trace can be read
      -> read           finds the agent invocations in a trace, whatever framework made it
      -> Turns          finds the reference of an invocation; numbers the turns of conversations
      -> Scoring        scores the invocation and compares the scores with thresholds
      -> Sessions       scores all turns of a conversation together when it has ended
      -> PipelineEvent  evaluations and conversation scores, for the sinks and the store

The pipeline has no clock, no I/O and no threads: callers pass the time as `now`, and call `expire`
at `deadline`. This makes every run repeatable.

Late spans may change an invocation that was already published. It is then evaluated again, and the
new *revision* replaces the earlier evaluation. Counters treat it as one invocation: it is counted
once, either as scored or as skipped with a reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from dataclasses import replace

from pathgauge.collector.core.evaluations.conversation import HOLD_S
from pathgauge.collector.core.evaluations.conversations import MAX_BYTES, Conversations
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment
from pathgauge.collector.core.evaluations.scorer_watch import UNWATCHED, ScorerWatch
from pathgauge.collector.core.evaluations.shadow import Shadow
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.feedback.answer import Answer
from pathgauge.collector.core.feedback.reading import FeedbackReader
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.invocations import DEFAULT_KEYS
from pathgauge.collector.core.invocations.dialects import Registry
from pathgauge.collector.core.otlp.spans import LogRecord, Span
from pathgauge.collector.core.partitioning import WHOLE, Partition
from pathgauge.collector.core.pipeline_events import (
    Changes,
    FeedbackGiven,
    ForwardedTurn,
    PipelineEvent,
    StoredTrace,
)
from pathgauge.collector.core.published import PublishedTraces
from pathgauge.collector.core.reading_budget import CpuClock
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.scoring import Scoring, WhetherJudged
from pathgauge.collector.core.sessions.session import SessionBounds
from pathgauge.collector.core.sessions.sessions import Sessions
from pathgauge.collector.core.sessions.stored_session import StoredSession
from pathgauge.collector.core.sessions.tracking import SessionTracking
from pathgauge.collector.core.trace_evaluation import TraceEvaluation
from pathgauge.collector.core.trace_reading import TraceReader
from pathgauge.collector.core.traces import Assembler, Bounds, Recall, TraceKey
from pathgauge.collector.core.traces.explain import Waiting, explain
from pathgauge.collector.core.turns import Turns
from pathgauge.collector.core.usage import PipelineUsage


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
        judging: WhetherJudged | None = None,
        synthetic_tenants: Set[str] = frozenset(),
        cpu_clock: CpuClock = lambda: 0.0,
        partition: Partition = WHOLE,
        session_bounds: SessionBounds | None = None,
        shadow: Shadow | None = None,
        judging_in_shadow: WhetherJudged | None = None,
        takes_feedback: bool = True,
        watch: ScorerWatch = UNWATCHED,
        shadow_watch: ScorerWatch = UNWATCHED,
    ) -> None:
        """Times are in seconds.

        `recall` reads the records of spilled traces back from the journal; without it, nothing is
        spilled. `judging` decides for an invocation and its scenario id whether judges are asked;
        without it, they never are. Invocations of `synthetic_tenants` are scored, but they are no
        agent's, and counted as such. `cpu_clock` measures how long traces are read.

        `partition` is the part of all traces and conversations that this pipeline gets. While there
        are criteria for sessions, these get half of `max_conversation_bytes`. `shadow` scores
        everything but sessions once more, with other criteria or references, of which
        `judging_in_shadow` decides as `judging` does. Without `takes_feedback`, answers of people
        are counted and dropped. `watch` and `shadow_watch` see the calls of scorers.
        """
        self._bounds = bounds or Bounds()
        self._assembler = Assembler(self._bounds, telemetry, registry.may_be_entry, recall)
        self._conversations = Conversations(
            conversation_idle,
            max_bytes=max_conversation_bytes,
            hold=HOLD_S if partition.total > 1 else 0.0,
        )
        self._telemetry = telemetry
        self._scoring = Scoring(
            evaluator,
            telemetry,
            judging,
            synthetic_tenants,
            shadow,
            judging_in_shadow=judging_in_shadow,
            watch=watch,
            shadow_watch=shadow_watch,
        )
        reader = TraceReader(
            registry,
            telemetry,
            scenario_keys,
            synthetic_tenants,
            max_cpu_s=self._bounds.max_reading_cpu,
            cpu_clock=cpu_clock,
        )
        self.records = reader.records
        """What is known of the telemetry of each agent version."""
        self._published = PublishedTraces(self._bounds, self._assembler.holds)
        self._changed: dict[TraceKey, None] = {}
        self._feedback = FeedbackReader(telemetry)
        self._takes_feedback = takes_feedback
        self._turns = Turns(
            self._conversations,
            partition,
            published=self._published,
            scoring=self._scoring,
            references=references,
            telemetry=telemetry,
            on_change=self._note_change,
        )
        self._evaluation = TraceEvaluation(
            reader,
            turns=self._turns,
            scoring=self._scoring,
            published=self._published,
            telemetry=telemetry,
            on_change=self._note_change,
            on_too_slow=self._assembler.abandon,
        )
        self._sessions = SessionTracking(
            Sessions(session_bounds, max_conversation_bytes // 2),
            scoring=self._scoring,
            references=references,
            telemetry=telemetry,
            untracked=synthetic_tenants,
            partition=partition,
        )
        self._max_conversation_bytes = max_conversation_bytes
        self._share_memory()

    def configure(
        self, evaluator: Evaluator, references: ReferenceSet, shadow: Shadow | None = None
    ) -> None:
        """Apply new criteria and references to everything that is read from now on."""
        self._scoring.configure(evaluator, shadow)
        self._turns.configure(references)
        self._sessions.configure(references)
        self._share_memory()

    def feed(
        self, spans: Iterable[Span], logs: Iterable[LogRecord], now: float, row: int = 0
    ) -> list[PipelineEvent]:
        """Process records that arrived at `now`. `row` is their journal row; 0 means no journal."""
        spans = tuple(spans)
        logs, answers = self._feedback.of_logs(tuple(logs))
        answers += self._feedback.of_spans(spans)
        given = list(self._given(answers))
        events = self._evaluation.each(self._assembler.feed(spans, logs, now, row), now)
        return [*given, *self._sessions.follow(events, now)]

    def feed_turn(self, turn: ForwardedTurn, now: float, row: int = 0) -> list[PipelineEvent]:
        """Process a turn that another partition has forwarded, from the journal row `row`, which is
        not needed any more.
        """
        if turn.session is not None:
            return self._sessions.receive(turn, now, row)
        self._sessions.expect(turn)
        return self._sessions.follow(self._turns.receive(turn, now, row), now)

    def hear(self, reached: float) -> None:
        """What is known of the time of other partitions, for whose turns conversations wait:
        `ConversationClock.hear` says what. Before the first call, there are none.
        """
        self._conversations.hear(reached)

    def expire(self, now: float) -> list[PipelineEvent]:
        """Process everything that became ready by `now`: quiet traces, idle conversations."""
        ended = self._sessions.expire(now)  # before the turns that arrive now open them again
        events = self._evaluation.each(self._assembler.expire(now), now)
        events += self._turns.expire(now)
        self._published.expire(now)
        return [*ended, *self._sessions.follow(events, now), *self._sessions.expire(now)]

    def deadline(self) -> float | None:
        """The earliest time at which `expire` may have something to do; calling it earlier is
        harmless. `None`: nothing is waiting.
        """
        parts = (self._assembler, self._turns, self._sessions)
        deadlines = [part.deadline() for part in parts]
        return min((time for time in deadlines if time is not None), default=None)

    def judged(self, pending: PendingJudgment, evaluation: Evaluation) -> list[PipelineEvent]:
        """Process the results of judges. They are ignored if the evaluation was revised or
        withdrawn in the meantime.
        """
        if pending.in_shadow:
            found = self._scoring.judged_in_shadow(pending, evaluation)
            return [] if found is None else [found]
        event = self._scoring.judged(pending, evaluation)
        if event is None:
            return []
        if evaluation.session is None:
            self._turns.add_scores(evaluation)
        return self._sessions.follow([event])

    def awaits(self, pending: PendingJudgment) -> bool:
        """Whether the results of judges are still waited for: not those of a purged trace."""
        return self._scoring.awaits(pending)

    def read_open(self, now: float) -> list[PipelineEvent]:
        """Read all open traces at once, complete or not. All are read before the first is scored,
        so that their order does not matter.
        """
        events = self._evaluation.together(self._assembler.drain(now), now)
        return self._sessions.follow(events, now)

    def finish_conversations(self) -> list[PipelineEvent]:
        """Score all open conversations and sessions at once, without waiting for further turns."""
        return self._sessions.follow(self._turns.drain()) + self._sessions.drain()

    def drain(self, now: float) -> list[PipelineEvent]:
        """Read all open traces and score all open conversations."""
        return [*self.read_open(now), *self.finish_conversations()]

    def _given(self, answers: Iterable[Answer]) -> Iterator[FeedbackGiven]:
        """The answers, without those about traces that were purged."""
        for answer in answers:
            if not self._takes_feedback:
                self._telemetry.feedback_dropped.add("off")
            elif self._assembler.is_purged((answer.tenant, answer.trace_id)):
                self._telemetry.feedback_dropped.add("purged")
            else:
                yield FeedbackGiven(answer)

    def _note_change(self, key: TraceKey) -> None:
        self._changed[key] = None

    @property
    def has_changes(self) -> bool:
        """Whether `changes` would return anything."""
        return (
            bool(self._changed)
            or self._turns.has_changes
            or self._scoring.has_changes
            or self._sessions.has_changes
            or self._assembler.has_released
        )

    def changes(self) -> Changes:
        """State changes since the last call, to be stored in one transaction with the events."""
        self._changed.update(dict.fromkeys(self._assembler.given_up()))
        traces = tuple(self._stored_trace(key) for key in self._changed)
        self._changed.clear()
        begun, ended = self._scoring.changes()
        turns = self._turns.changes()
        return Changes(
            traces=traces,
            released_rows=(
                *self._assembler.released(),
                *turns.processed_rows,
                *self._sessions.processed_rows(),
            ),
            orphaned_turns=turns.orphaned_turns,
            judgments_begun=begun,
            judgments_ended=ended,
            turns=turns.turns,
            ended_conversations=turns.ended_conversations,
            forwarded=(
                *map(self._sessions.handed_over, turns.forwarded),
                *self._sessions.forwarded(),
            ),
            sessions=self._sessions.changes(),
        )

    def _share_memory(self) -> None:
        shares = 2 if self._scoring.of_sessions else 1
        self._conversations.max_bytes = self._max_conversation_bytes // shares

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
        self._turns.restore(stored)

    def restore_session(self, stored: StoredSession) -> None:
        """Continue with a session of an earlier process."""
        self._sessions.restore(stored)

    def restore_pending(self, pending: PendingJudgment) -> None:
        """Wait for judges again, as an earlier process did."""
        self._scoring.restore(pending)

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
        self._turns.discard(traces)
        self._sessions.discard(traces)
        self._scoring.discard(traces)
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
            conversation_bytes=self._conversations.size + self._sessions.sessions.size,
            max_conversation_bytes=self._max_conversation_bytes,
        )

    @property
    def full(self) -> bool:
        """Whether memory is used up, so that senders should retry later."""
        return self._assembler.full

"""The whole way from spans to evaluations, without clock, I/O or threads: what arrived and the time
come in, `PipelineEvent`s go out.

One pipeline serves one partition of the trace ids. It keeps the ledger: every invocation that is
read is either scored or skipped with a reason, once, however often late telemetry has it read
again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import dataclass, field, replace

from pathgauge.collector.core.evaluations.accounting import (
    count_evaluation,
    count_scored,
    counted_case,
)
from pathgauge.collector.core.evaluations.conversations import MAX_BYTES, Conversations
from pathgauge.collector.core.evaluations.evaluator import Evaluation, Evaluator, WhenJudged
from pathgauge.collector.core.evaluations.fingerprint import fingerprint
from pathgauge.collector.core.evaluations.pending_judgments import PendingJudgment, PendingJudgments
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.invocations import DEFAULT_KEYS, read
from pathgauge.collector.core.invocations.dialects import BUILT_IN, Registry
from pathgauge.collector.core.otlp.spans import LogRecord, Span, Trace
from pathgauge.collector.core.pipeline_events import (
    Changes,
    Judged,
    PipelineEvent,
    Remembered,
    Unreadable,
    Withdrawn,
)
from pathgauge.collector.core.references import Match, ReferenceSet
from pathgauge.collector.core.traces import Assembler, Bounds, Recall, TraceKey
from pathgauge.collector.core.traces.explain import Waiting, explain
from pathgauge.scorers.types import Invocation


@dataclass(slots=True)
class _Published:
    at: float
    fingerprints: dict[str, tuple[str, int]] = field(default_factory=dict)


class Pipeline:
    """Assembler, dialects, references, conversations and evaluator in their order."""

    def __init__(
        self,
        evaluator: Evaluator,
        references: ReferenceSet,
        telemetry: InternalTelemetry,
        bounds: Bounds | None = None,
        *,
        scenario_keys: tuple[str, ...] = DEFAULT_KEYS,
        registry: Registry = BUILT_IN,
        conversation_idle: float = 1800.0,
        max_conversation_bytes: int = MAX_BYTES,
        recall: Recall | None = None,
        judging: Callable[[Invocation, str | None], WhenJudged] | None = None,
    ) -> None:
        """Times are in seconds. `recall` reads from the journal what was spilled; without it
        nothing is.

        `judging` says which invocations, of which scenario, wait for judges; without it nobody
        judges.
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
        self._awaited = PendingJudgments()
        self._published: OrderedDict[TraceKey, _Published] = OrderedDict()
        self._changed: dict[TraceKey, None] = {}
        self._dropped_turns: list[tuple[str, str, str]] = []

    @property
    def open_traces(self) -> int:
        """Traces that wait to be read."""
        return self._assembler.open_traces

    @property
    def retained_traces(self) -> int:
        """Traces that were read and are kept for spans that come late."""
        return self._assembler.retained_traces

    @property
    def spilled_traces(self) -> int:
        """Traces that wait to be read and whose records only the journal holds."""
        return self._assembler.spilled_traces

    @property
    def open_bytes(self) -> int:
        """What the open traces hold."""
        return self._assembler.open_bytes

    @property
    def conversation_bytes(self) -> int:
        """What the turns of open conversations hold."""
        return self._conversations.size

    @property
    def full(self) -> bool:
        """Whether senders should be asked to retry later."""
        return self._assembler.full

    def configure(self, evaluator: Evaluator, references: ReferenceSet) -> None:
        """Put other criteria and references in force, for what is read from now on."""
        self._evaluator = evaluator
        self._references = references

    def feed(
        self, spans: Iterable[Span], logs: Iterable[LogRecord], now: float, row: int = 0
    ) -> list[PipelineEvent]:
        """Take in what arrived at `now`, in one row of the journal if there is one."""
        return self._read_all(self._assembler.feed(spans, logs, now, row), now)

    def expire(self, now: float) -> list[PipelineEvent]:
        """Whatever time has made ready by `now`."""
        outcomes = self._read_all(self._assembler.expire(now), now)
        outcomes.extend(
            counted_case(case, self._telemetry) for case in self._conversations.expire(now)
        )
        self._forget(now)
        return outcomes

    def deadline(self) -> float | None:
        """When `expire` may next have something to do."""
        times = [
            time
            for time in (self._assembler.deadline(), self._conversations.deadline())
            if time is not None
        ]
        return min(times, default=None)

    def drain(self, now: float) -> list[PipelineEvent]:
        """Read everything that is open, complete or not, and finish every conversation."""
        return [*self.read_open(now), *self.finish_conversations()]

    def read_open(self, now: float) -> list[PipelineEvent]:
        """Read everything that is open, complete or not."""
        return self._read_all(self._assembler.drain(now), now)

    def finish_conversations(self) -> list[PipelineEvent]:
        """Score every conversation that is open, as if nothing more would come of it."""
        return [counted_case(case, self._telemetry) for case in self._conversations.drain()]

    @property
    def has_changes(self) -> bool:
        """Whether `changes` has something to tell."""
        return (
            bool(self._changed or self._dropped_turns)
            or self._awaited.has_changes
            or self._assembler.has_released
        )

    def changes(self) -> Changes:
        """What changed since this was asked last."""
        self._changed.update(dict.fromkeys(self._assembler.given_up()))
        traces = tuple(self._remembered(key) for key in self._changed)
        self._changed.clear()
        dropped, self._dropped_turns = tuple(self._dropped_turns), []
        return Changes(traces, tuple(self._assembler.released()), dropped, *self._awaited.changes())

    def waiting(self, now: float, most: int) -> list[Waiting]:
        """What is open and why, the oldest traces first."""
        return [explain(trace, self._bounds, now) for trace in self._assembler.oldest(most)]

    def restore(self, remembered: Iterable[Remembered], now: float) -> None:
        """Go on where another process stopped. Nothing is counted, and nothing that was said is
        said again.
        """
        published = []
        for trace in remembered:
            self._assembler.restore(trace.standing, now)
            if trace.fingerprints:
                read_at = now if trace.standing.closed_at is None else trace.standing.closed_at
                published.append(
                    (trace.standing.key, _Published(read_at, dict(trace.fingerprints)))
                )
        self._published.update(sorted(published, key=lambda one: one[1].at))
        self._forget(now)

    def restore_turn(self, invocation: Invocation, now: float, beyond: int = 0) -> None:
        """Know an evaluated turn of an unfinished conversation again; or only how many were not
        kept, if it is `beyond` those that are.
        """
        reference = self._references.multi_turn(invocation)
        if reference is None:
            self._dropped_turns.append((invocation.tenant, invocation.trace_id, invocation.span_id))
            return
        if beyond:
            self._conversations.restore_beyond(invocation, reference, beyond, now)
            return
        for turn, index in self._conversations.place(invocation, reference, now):
            self._conversations.record_scores(
                self._evaluator.evaluate(turn, self._references.match(turn, index))
            )

    def restore_awaited(self, awaited: PendingJudgment) -> None:
        """Wait for judges again, as an earlier process did."""
        self._awaited.restore(awaited)

    def judged(self, awaited: PendingJudgment, evaluation: Evaluation) -> list[PipelineEvent]:
        """Take in what judges said; nothing comes of it when the evaluation was revised or
        withdrawn in the meantime.
        """
        if not self._awaited.is_current(awaited):
            return []
        self._awaited.end(awaited.key)
        self._conversations.add(evaluation)
        if awaited.unscored:
            count_scored(evaluation, self._telemetry)
        return [Judged(evaluation, awaited.first)]

    def suspect(self, row: int) -> None:
        """Journal rows up to `row` may be lost, nobody knows of which traces."""
        self._assembler.suspect(row)

    def forget_read(self, traces: int) -> int:
        """Give up that many of the traces that were read longest ago, so that the journal gets
        room; returns how many there were.
        """
        return self._assembler.forget_retained(traces)

    def discard(self, traces: Set[TraceKey]) -> None:
        """Forget traces at once, read or not, as if they had never come; what was counted stays
        counted, what still comes is dropped.
        """
        self._assembler.discard(traces)
        self._conversations.discard(traces)
        self._awaited.discard(traces)
        for key in traces:
            self._published.pop(key, None)
            self._changed.pop(key, None)

    def _remembered(self, key: TraceKey) -> Remembered:
        standing, published = self._assembler.standing(key), self._published.get(key)
        if published is None:
            return Remembered(standing, {})
        if standing.forgotten:
            standing = replace(standing, closed_at=published.at)
        return Remembered(standing, dict(published.fingerprints))

    def _read_all(self, traces: Iterable[Trace], now: float) -> list[PipelineEvent]:
        outcomes: list[PipelineEvent] = []
        for trace in traces:
            try:
                outcomes.extend(self._read(trace, now))
            # telemetry of any shape may come: what nobody foresaw must not touch the others
            except Exception as error:
                self._telemetry.traces_skipped.add("unreadable")
                outcomes.append(Unreadable(trace.trace_id, error))
        return outcomes

    def _read(self, trace: Trace, now: float) -> Iterator[PipelineEvent]:
        key = trace.tenant, trace.trace_id
        self._changed[key] = None
        invocations = _read_and_release(trace, self._scenario_keys, self._registry)
        published = self._published.get(key)
        if published is None:
            if not invocations:
                self._telemetry.traces_skipped.add("no_agent_spans" if trace.spans else "no_spans")
                return
            published = self._published[key] = _Published(now)
        published.at = now
        self._published.move_to_end(key)
        yield from self._withdrawn(
            trace, published, {invocation.span_id for invocation in invocations}
        )
        for invocation in invocations:
            yield from self._evaluate(invocation, trace, published, now)

    def _withdrawn(
        self, trace: Trace, published: _Published, entry_agents: set[str]
    ) -> Iterator[Withdrawn]:
        """Take back what was said of anchors that a larger invocation now encloses."""
        for span_id in {
            span.span_id for span in trace.spans
        } & published.fingerprints.keys() - entry_agents:
            del published.fingerprints[span_id]
            withdrawn = Withdrawn((trace.tenant, trace.trace_id, span_id))
            self._conversations.withdraw(withdrawn.key)
            awaited = self._awaited.end(withdrawn.key)
            if awaited is not None and awaited.unscored:
                self._telemetry.invocations_skipped.add("withdrawn")
            self._telemetry.withdrawn.add()
            yield withdrawn

    def _evaluate(
        self, invocation: Invocation, trace: Trace, published: _Published, now: float
    ) -> Iterator[Evaluation]:
        known = published.fingerprints.get(invocation.span_id)
        if known is not None and known[0] == fingerprint(invocation):
            return
        for bound, match in self._matches(invocation, now):
            turn_of = (
                published
                if bound.trace_id == trace.trace_id
                else self._published.get((bound.tenant, bound.trace_id))
            )
            if turn_of is None:
                continue
            before = turn_of.fingerprints.get(bound.span_id)
            revision = before[1] + 1 if before else 0
            turn_of.fingerprints[bound.span_id] = fingerprint(bound), revision
            self._changed[bound.tenant, bound.trace_id] = None
            judging = self._judging_of(bound, match)
            evaluation = self._evaluator.evaluate(
                bound, match, closed_by=trace.closed_by, revision=revision, judging=judging
            )
            self._conversations.record_scores(evaluation)
            count_evaluation(evaluation, self._telemetry)
            self._await(evaluation)
            yield evaluation

    def _judging_of(self, invocation: Invocation, match: Match) -> WhenJudged:
        if self._judging is None:
            return "unconfigured"
        if (invocation.tenant, invocation.trace_id, invocation.span_id) in self._awaited:
            return "later"  # it has its place already
        return self._judging(
            invocation,
            invocation.scenario_id if match.reference is None else match.reference.scenario_id,
        )

    def _await(self, evaluation: Evaluation) -> None:
        before = (
            self._awaited.begin(evaluation)
            if evaluation.awaits
            else self._awaited.end(evaluation.key)
        )
        if before is not None and before.unscored and (evaluation.scored or not evaluation.awaits):
            count_scored(evaluation, self._telemetry)

    def _matches(self, invocation: Invocation, now: float) -> list[tuple[Invocation, Match]]:
        """The invocation with its reference turn, and other turns of its conversation that it
        moved.
        """
        reference = self._references.multi_turn(invocation)
        if reference is None or invocation.conversation_id is None:
            return [(invocation, self._references.match(invocation, invocation.turn))]
        placed = self._conversations.place(invocation, reference, now)
        if not placed:
            return [
                (
                    invocation,
                    Match(
                        unmatched="unexpected_turn", beyond=self._conversations.beyond(invocation)
                    ),
                )
            ]
        return [(turn, self._references.match(turn, index)) for turn, index in placed]

    def _forget(self, now: float) -> None:
        """Drop what was remembered for revisions of traces that the assembler has given up."""
        kept = self._bounds.late_ttl + self._bounds.max_age
        while self._published:
            key, published = next(iter(self._published.items()))
            if now < published.at + kept and len(self._published) <= self._bounds.max_forgotten:
                return
            del self._published[key]


def _read_and_release(
    trace: Trace, scenario_keys: tuple[str, ...], registry: Registry
) -> list[Invocation]:
    """The assembler keeps the spans for revisions: they should cost their bytes alone."""
    try:
        return read(trace, scenario_keys, registry)
    finally:
        for span in trace.spans:
            span.release()
        for log in trace.logs:
            log.release()

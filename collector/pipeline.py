"""The whole way from spans to evaluations, without clock, I/O or threads: what arrived and the time come in, `Outcome`s go out.

One pipeline serves one partition of the trace ids. It keeps the ledger: every invocation that is read is either scored or skipped with
a reason, once, however often late telemetry has it read again.
"""

from __future__ import annotations

import marshal
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from operator import attrgetter

from collector.assembler import Assembler, Bounds
from collector.conversations import Case, Conversations
from collector.dialects import BUILT_IN, Registry
from collector.evaluator import Evaluation, Evaluator
from collector.reading import DEFAULT_KEYS, read
from collector.references import Match, ReferenceSet
from collector.spans import LogRecord, Span, Trace
from collector.telemetry import Ledger
from scorers.types import Invocation, ToolCall


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """An evaluation is void, as what it judged proved to be a part of a larger invocation. `key` is the evaluation's."""

    key: tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A trace that no dialect could read without an error; its invocations are lost, its neighbours are not."""

    trace_id: str
    error: Exception


Outcome = Evaluation | Withdrawn | Case | Unreadable


@dataclass(slots=True)
class _Published:
    """What was said of the invocations of one trace, by anchor: a digest of the content, and the revision."""

    at: float
    digests: dict[str, tuple[int, int]] = field(default_factory=dict)


class Pipeline:
    """Assembler, dialects, references, conversations and evaluator in their order."""

    def __init__(
        self,
        evaluator: Evaluator,
        references: ReferenceSet,
        ledger: Ledger,
        bounds: Bounds | None = None,
        *,
        scenario_keys: tuple[str, ...] = DEFAULT_KEYS,
        registry: Registry = BUILT_IN,
        conversation_idle: float = 1800.0,
    ) -> None:
        """Times are in seconds."""
        self._bounds = bounds or Bounds()
        self._assembler = Assembler(self._bounds, ledger, registry.may_be_anchor)
        self._conversations = Conversations(conversation_idle)
        self._evaluator = evaluator
        self._references = references
        self._ledger = ledger
        self._scenario_keys = scenario_keys
        self._registry = registry
        self._published: OrderedDict[tuple[str, str], _Published] = OrderedDict()

    @property
    def open_traces(self) -> int:
        """Traces that wait to be read."""
        return self._assembler.open_traces

    @property
    def open_bytes(self) -> int:
        """What the open traces hold."""
        return self._assembler.open_bytes

    @property
    def full(self) -> bool:
        """Whether senders should be asked to retry later."""
        return self._assembler.full

    def configure(self, evaluator: Evaluator, references: ReferenceSet) -> None:
        """Put other criteria and references in force, for what is read from now on."""
        self._evaluator = evaluator
        self._references = references

    def feed(self, spans: Iterable[Span], logs: Iterable[LogRecord], now: float) -> list[Outcome]:
        """Take in what arrived at `now`."""
        return self._read_all(self._assembler.feed(spans, logs, now), now)

    def expire(self, now: float) -> list[Outcome]:
        """Whatever time has made ready by `now`."""
        outcomes = self._read_all(self._assembler.expire(now), now)
        outcomes.extend(self._count_case(case) for case in self._conversations.expire(now))
        self._forget(now)
        return outcomes

    def deadline(self) -> float | None:
        """When `expire` may next have something to do."""
        times = [time for time in (self._assembler.deadline(), self._conversations.deadline()) if time is not None]
        return min(times, default=None)

    def drain(self, now: float) -> list[Outcome]:
        """Read everything that is open, complete or not, and finish every conversation."""
        outcomes = self._read_all(self._assembler.drain(now), now)
        outcomes.extend(self._count_case(case) for case in self._conversations.drain())
        return outcomes

    def _read_all(self, traces: Iterable[Trace], now: float) -> list[Outcome]:
        outcomes: list[Outcome] = []
        for trace in traces:
            try:
                outcomes.extend(self._read(trace, now))
            except Exception as error:  # telemetry of any shape may come: what nobody foresaw must not touch the others
                self._ledger.traces_skipped.add("unreadable")
                outcomes.append(Unreadable(trace.trace_id, error))
        return outcomes

    def _read(self, trace: Trace, now: float) -> Iterator[Outcome]:
        key = trace.tenant, trace.trace_id
        invocations = _read_and_release(trace, self._scenario_keys, self._registry)
        published = self._published.get(key)
        if published is None:
            if not invocations:
                self._ledger.traces_skipped.add("no_agent_spans" if trace.spans else "no_spans")
                return
            published = self._published[key] = _Published(now)
        published.at = now
        self._published.move_to_end(key)
        yield from self._withdrawn(trace, published, {invocation.span_id for invocation in invocations})
        for invocation in invocations:
            yield from self._evaluate(invocation, trace, published, now)

    def _withdrawn(self, trace: Trace, published: _Published, anchors: set[str]) -> Iterator[Withdrawn]:
        """Take back what was said of anchors that a larger invocation now encloses."""
        for span_id in {span.span_id for span in trace.spans} & published.digests.keys() - anchors:
            del published.digests[span_id]
            withdrawn = Withdrawn((trace.tenant, trace.trace_id, span_id))
            self._conversations.withdraw(withdrawn.key)
            self._ledger.withdrawn.add()
            yield withdrawn

    def _evaluate(self, invocation: Invocation, trace: Trace, published: _Published, now: float) -> Iterator[Evaluation]:
        known = published.digests.get(invocation.span_id)
        if known is not None and known[0] == _digest(invocation):
            return
        for bound, match in self._matches(invocation, now):
            turn_of = published if bound.trace_id == trace.trace_id else self._published.get((bound.tenant, bound.trace_id))
            if turn_of is None:
                continue
            before = turn_of.digests.get(bound.span_id)
            revision = before[1] + 1 if before else 0
            turn_of.digests[bound.span_id] = _digest(bound), revision
            evaluation = self._evaluator.evaluate(bound, match, closed_by=trace.closed_by, revision=revision)
            self._conversations.settle(evaluation)
            self._count(evaluation)
            yield evaluation

    def _matches(self, invocation: Invocation, now: float) -> list[tuple[Invocation, Match]]:
        """The invocation with its reference turn, and other turns of its conversation that it moved."""
        reference = self._references.multi_turn(invocation)
        if reference is None or invocation.conversation_id is None:
            return [(invocation, self._references.match(invocation, invocation.turn))]
        placed = self._conversations.place(invocation, reference, now)
        if not placed:
            return [(invocation, Match(unmatched="unexpected_turn"))]
        return [(turn, self._references.match(turn, index)) for turn, index in placed]

    def _count(self, evaluation: Evaluation) -> None:
        if evaluation.revision > 0:
            self._ledger.revisions.add()
            return
        invocation, ledger = evaluation.invocation, self._ledger
        ledger.invocations_read.add(invocation.dialect)
        for flag in invocation.flags:
            ledger.invocation_flags.add(invocation.dialect, flag)
        if evaluation.match.unmatched:
            ledger.invocations_unmatched.add(evaluation.match.unmatched)
        if evaluation.scored:
            ledger.invocations_scored.add()
        else:
            ledger.invocations_skipped.add(evaluation.match.unmatched or ("not_evaluated" if evaluation.results else "no_criteria"))

    def _count_case(self, case: Case) -> Case:
        for state, turns in (("matched", case.matched), ("missing", case.missing), ("unexpected", case.unexpected)):
            self._ledger.case_turns.add(state, n=turns)
        return case

    def _forget(self, now: float) -> None:
        """Drop what was remembered for revisions of traces that the assembler has given up."""
        kept = self._bounds.late_ttl + self._bounds.max_age
        while self._published:
            key, published = next(iter(self._published.items()))
            if now < published.at + kept and len(self._published) <= self._bounds.max_forgotten:
                return
            del self._published[key]


def _read_and_release(trace: Trace, scenario_keys: tuple[str, ...], registry: Registry) -> list[Invocation]:
    """The assembler keeps the spans for revisions: they should cost their bytes alone."""
    try:
        return read(trace, scenario_keys, registry)
    finally:
        for span in trace.spans:
            span.release()
        for log in trace.logs:
            log.release()


_JSON_FIELDS = ("tool_calls", "tool_schemas")
_JSON_FIELDS_OF_CALL = ("arguments", "result")
"""Fields that hold values without a hash."""
_hashable_of = attrgetter(*(f.name for f in fields(Invocation) if f.name not in _JSON_FIELDS))
_hashable_of_call = attrgetter(*(f.name for f in fields(ToolCall) if f.name not in _JSON_FIELDS_OF_CALL))
_json_of_call = attrgetter(*_JSON_FIELDS_OF_CALL)

_MARSHALLED = 2
"""The version of the format: from the next one on, equal values differ by how many others refer to them."""


def _digest(invocation: Invocation) -> int:
    """Differs when anything of the invocation differs. Marshalling, unlike `repr`, does not recurse in Python."""
    calls = ((*_hashable_of_call(call), marshal.dumps(_json_of_call(call), _MARSHALLED)) for call in invocation.tool_calls)
    return hash((*_hashable_of(invocation), marshal.dumps(dict(invocation.tool_schemas), _MARSHALLED), *calls))

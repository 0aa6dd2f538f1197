"""Several pipelines, each with a partition of the traces and conversations, give the results of one
that has all of them, whatever arrives in which order.

`Outcome` leaves out what may differ: the numbers of revisions, how many there are, the time at
which a turn is evaluated, and whether its first evaluation finds a turn of the reference. The last
depends on which turns of its conversation have arrived, as in one pipeline.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeAlias

from hypothesis import HealthCheck, given, settings, strategies as st

from pathgauge import ToolTrajectoryF1
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import (
    Criterion,
    Evaluation,
    EvaluationKey,
    Evaluator,
)
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.partitioning import Partition, partition_of_trace
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import (
    ForwardedTurn,
    PipelineEvent,
    PublishedEvent,
    Unreadable,
    Withdrawn,
)
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.testing import span
from pathgauge.scorers.types import ExpectedCall, Reference, ReferenceTurn
from support.dialects import INSTALLED
from support.examples import examples

SETTLE_S, IDLE_S, ROUND_S = 1.0, 100_000.0, 10.0
"""Conversations end only at the end of a run: when they end in between depends on when their turns
arrive, and forwarded turns arrive later.
"""
BOUNDS = Bounds(settle=SETTLE_S, idle=IDLE_S, max_age=2 * IDLE_S, late_ttl=IDLE_S)
CRITERIA = (Criterion("f1", ToolTrajectoryF1(), threshold=1.0),)
REFERENCES = ReferenceSet(
    [
        Reference("one", (ReferenceTurn(tool_calls=(ExpectedCall("a"),)),)),
        *(
            Reference(
                scenario, tuple(ReferenceTurn(tool_calls=(ExpectedCall(tool),)) for tool in tools)
            )
            for scenario, tools in (("talk", "abc"), ("chat", "ba"))
        ),
    ]
)
_UNEXPECTED = "unexpected_turn"


@dataclass(frozen=True, slots=True)
class Turn:
    """A trace: the spans of its two parts are sent at different times."""

    number: int
    scenario: str
    conversation: str
    tools: str
    later: str = ""
    """What the second part says that the first does not: a `tool`, the `scenario`, the
    `conversation`, or a `caller` that encloses the invocation.
    """
    stated: bool = False
    """Whether the invocation states its own turn."""

    def parts(self) -> tuple[list[Span], list[Span]]:
        name = f"turn {self.number}"
        start = 10.0 * self.number
        named: dict[str, Any] = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "a"}
        stated: dict[str, Any] = {}
        if self.scenario:
            stated["pathgauge.scenario.id"] = self.scenario
        if self.conversation:
            stated["gen_ai.conversation.id"] = self.conversation
        if self.stated:
            named["pathgauge.turn"] = self.number % 3
        late = {
            "scenario": "pathgauge.scenario.id",
            "conversation": "gen_ai.conversation.id",
        }.get(self.later)
        changed = {late: stated.pop(late)} if late in stated else {}
        root = span(
            name,
            "invoke_agent a",
            named | stated,
            trace=name,
            parent=f"{name} caller" if self.later == "caller" else None,
            start=start,
            end=start + 9,
            remote_parent=True,
        )
        # Without an answer of a model, an invocation without tool calls would be scored by what its
        # agent has shown in other traces.
        model = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reasons": ["stop"]}
        first = [root, _called(name, "chat", model, start)]
        first += [
            _called(name, tool, _tool(tool), start + 1 + at) for at, tool in enumerate(self.tools)
        ]
        second: list[Span] = []
        if changed:
            second = [_called(name, "late", model | changed, start + 5)]
        elif self.later == "tool":
            second = [_called(name, "c", _tool("c"), start + 5)]
        elif self.later == "caller":
            caller = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "caller"}
            second = [
                span(
                    f"{name} caller",
                    "invoke_agent caller",
                    caller | stated,
                    trace=name,
                    start=start - 1,
                    end=start + 9.5,
                ),
                _called(f"{name} caller", "chat", model, start - 0.9, trace=name),
            ]
        return first, second


def _tool(name: str) -> dict[str, Any]:
    return {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": name}


def _called(of: str, name: str, attributes: dict[str, Any], at: float, trace: str = "") -> Span:
    return span(
        f"{of} {name} {at}",
        name,
        attributes,
        trace=trace or of,
        parent=of,
        start=at,
        end=at + 0.5,
    )


@dataclass(slots=True)
class Outcome:
    """What must not depend on the number of partitions."""

    evaluations: dict[EvaluationKey, Any] = field(default_factory=dict)
    """The newest revision of each evaluation that was not withdrawn."""
    conversations: Counter[Any] = field(default_factory=Counter)
    counts: Counter[tuple[str, ...]] = field(default_factory=Counter)


class Gauge:
    """What whoever reads the events of all partitions knows at the end, in any order of them."""

    def __init__(self) -> None:
        self._newest: dict[EvaluationKey, Evaluation] = {}
        self._withdrawn: set[EvaluationKey] = set()
        self._firsts: Counter[EvaluationKey] = Counter()
        self.outcome = Outcome()

    def read(self, events: Iterable[PublishedEvent]) -> None:
        for event in events:
            if isinstance(event, Withdrawn):
                self._withdrawn.add(event.key)
            elif isinstance(event, Evaluation):
                known = self._newest.get(event.key)
                assert known is None or known.revision != event.revision, "a revision is repeated"
                if known is None or event.revision > known.revision:
                    self._newest[event.key] = event
                self._withdrawn.discard(event.key)
                self._firsts[event.key] += event.revision == 0
            elif isinstance(event, ConversationResult):
                self.outcome.conversations[_of_conversation(event)] += 1

    def finish(self, telemetries: Iterable[InternalTelemetry]) -> Outcome:
        assert set(self._firsts.values()) <= {1}, "evaluations have one first revision"
        self.outcome.evaluations = {
            key: _of_evaluation(one)
            for key, one in self._newest.items()
            if key not in self._withdrawn
        }
        for telemetry in telemetries:
            for counter in telemetry:
                for labels, count in counter.items():
                    self.outcome.counts[_counted(counter.name, *labels)] += count
        del self.outcome.counts[_counted("evaluation_revisions")]
        return self.outcome


def _counted(name: str, *labels: str) -> tuple[str, ...]:
    """Under which name a count is compared."""
    if name == "invocations_scored" or (name, *labels) == ("invocations_skipped", _UNEXPECTED):
        return ("scored or unexpected",)
    if (name, *labels) == ("invocations_unmatched", _UNEXPECTED):
        return ("evaluation_revisions",)
    return (name, *labels)


def _of_evaluation(one: Evaluation) -> Any:
    reference = one.match.reference
    return (
        one.invocation,
        reference and reference.scenario_id,
        one.match.turn_index,
        one.match.unmatched,
        one.closed_by,
        tuple((result.criterion.name, result.score, result.verdict) for result in one.results),
    )


def _of_conversation(one: ConversationResult) -> Any:
    return (
        one.tenant,
        one.conversation_id,
        one.reference.scenario_id,
        one.agent,
        one.agent_version,
        tuple((score.criterion.name, score.value) for score in one.scores),
        one.matched,
        one.missing,
        one.unexpected,
    )


@dataclass(slots=True)
class Scorer:
    """One partition."""

    pipeline: Pipeline
    telemetry: InternalTelemetry
    published: deque[list[PublishedEvent]] = field(default_factory=deque)
    """What the gauge has not read."""
    sent: dict[int, deque[ForwardedTurn]] = field(default_factory=dict)
    """What the other partitions have not received."""

    def keep(self, number: int, events: Sequence[PipelineEvent], total: int) -> None:
        published: list[PublishedEvent] = []
        for event in events:
            assert not isinstance(event, Unreadable), event.error
            published.append(event)
        self.published.append(published)
        for turn in self.pipeline.changes().forwarded:
            for other in range(total):
                if other != number and turn.target in (None, other):
                    self.sent.setdefault(other, deque()).append(turn)


class Partitions:
    """Pipelines in virtual time. Each does its next step at random."""

    def __init__(self, total: int, random: Random) -> None:
        self._random = random
        self._gauge = Gauge()
        self._now = 0.0
        self._scorers = []
        for number in range(total):
            telemetry = InternalTelemetry()
            pipeline = Pipeline(
                INSTALLED,
                Evaluator(CRITERIA),
                REFERENCES,
                telemetry,
                BOUNDS,
                conversation_idle=IDLE_S,
                partition=Partition(number, total),
            )
            self._scorers.append(Scorer(pipeline, telemetry))

    def send(self, spans: Sequence[Span]) -> None:
        """One request, of which each partition gets its part."""
        parts: dict[int, list[Span]] = {}
        for one in spans:
            number = partition_of_trace(one.trace_id, len(self._scorers))
            parts.setdefault(number, []).append(one)
        for number, part in parts.items():
            self._keep(number, self._scorers[number].pipeline.feed(part, (), self._now))

    def wait(self, seconds: float) -> None:
        """Let time pass, while some of what the partitions have sent arrives."""
        self._now += seconds
        for number in self._shuffled():
            self._keep(number, self._scorers[number].pipeline.expire(self._now))
            if self._random.random() < 0.5:
                self._deliver(self._random.choice(self._shuffled()))
            if self._random.random() < 0.5:
                self._read(number)

    def finish(self) -> Outcome:
        """Deliver everything, and end all conversations."""
        while any(map(self._is_busy, self._shuffled())):
            self.wait(ROUND_S)
        self._now += 2 * IDLE_S
        for number in self._shuffled():
            self._keep(number, self._scorers[number].pipeline.drain(self._now))
        while waiting := [n for n in self._shuffled() if self._scorers[n].published]:
            self._read(waiting[0])
        return self._gauge.finish(scorer.telemetry for scorer in self._scorers)

    def _shuffled(self) -> list[int]:
        return self._random.sample(range(len(self._scorers)), len(self._scorers))

    def _is_busy(self, number: int) -> bool:
        scorer = self._scorers[number]
        deadline = scorer.pipeline.deadline()
        is_due = deadline is not None and deadline < self._now + ROUND_S
        return is_due or any(scorer.sent.values())

    def _deliver(self, number: int) -> None:
        """Have this partition receive some turns of each other one, in their order."""
        for sender in self._scorers:
            turns = sender.sent.get(number, deque())
            for _ in range(self._random.randint(0, len(turns))):
                events = self._scorers[number].pipeline.feed_turn(turns.popleft(), self._now)
                self._keep(number, events)

    def _read(self, number: int) -> None:
        published = self._scorers[number].published
        if published:
            self._gauge.read(published.popleft())

    def _keep(self, number: int, events: Sequence[PipelineEvent]) -> None:
        self._scorers[number].keep(number, events, len(self._scorers))


def played(turns: Sequence[Turn], total: int, seed: int) -> Outcome:
    """The outcome of a course with so many partitions. When what arrives is the same for the same
    seed.
    """
    arrivals = Random(seed)
    partitions = Partitions(total, Random(seed))
    requests = [part for turn in turns for part in turn.parts() if part]
    arrivals.shuffle(requests)
    while requests:
        batch = [requests.pop() for _ in range(min(len(requests), arrivals.randint(1, 3)))]
        partitions.send([one for part in batch for one in part])
        for _ in range(arrivals.randint(0, 5)):
            partitions.wait(arrivals.choice((0.1, 0.5, 2 * SETTLE_S, 7.0)))
    return partitions.finish()


Traffic: TypeAlias = "list[Turn]"


@st.composite
def traffic(draw: st.DrawFn) -> Traffic:
    """Traces of a few conversations."""
    return [
        Turn(
            number,
            draw(st.sampled_from(["talk", "talk", "chat", "one", ""])),
            draw(st.sampled_from(["x", "y", "z", ""])),
            draw(st.text("abc", max_size=3)),
            draw(st.sampled_from(["", "", "tool", "scenario", "conversation", "caller"])),
            draw(st.booleans()),
        )
        for number in range(draw(st.integers(1, 8)))
    ]


@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(traffic(), st.integers(1, 5), st.integers(0, 1 << 30))
def test_any_number_of_partitions_gives_the_results_of_one(
    turns: Traffic, total: int, seed: int
) -> None:
    assert played(turns, total, seed) == played(turns, 1, seed)

"""With several partitions, a turn is held before its first evaluation, until those that were read
earlier have come from the others. Whatever happens to it in between, it has one first evaluation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count
from typing import Any

import pytest

from pathgauge import ToolCalls
from pathgauge.collector.core.evaluations.conversation import HOLD_S
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.partitioning import (
    Partition,
    partition_of_conversation,
    partition_of_trace,
)
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import (
    Changes,
    ForwardedTurn,
    PipelineEvent,
    Withdrawn,
)
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.traces import Bounds, Recalled
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import Reference, ReferenceTurn
from support.dialects import INSTALLED

TOTAL = 2
HERE = partition_of_conversation(("", "one", "talk"), TOTAL)
"""The partition that has the conversation."""
AWAY = 1 - HERE
TALK = ReferenceSet([Reference("talk", (ReferenceTurn(),) * 3)])
BOUNDS = Bounds(settle=0.5, late_ttl=1_000.0)
WAIT_S = 2.0
"""How long spans wait until their trace is read; late ones wait longer than `BOUNDS.settle`."""
IDLE_S = 100.0


class Scorer:
    """One partition in virtual time."""

    def __init__(
        self,
        number: int = HERE,
        *,
        references: ReferenceSet = TALK,
        stored: Changes | None = None,
        total: int = TOTAL,
    ) -> None:
        """`stored` is what an earlier process has stored."""
        self.telemetry = InternalTelemetry()
        self._received: list[Span] = []
        self._pipeline = Pipeline(
            INSTALLED,
            Evaluator((Criterion("tool_calls", ToolCalls()),)),
            references,
            self.telemetry,
            BOUNDS,
            conversation_idle=IDLE_S,
            recall=lambda key, rows: [Recalled(0.0, self._received_of(key[1]), ())],
            partition=Partition(number, total),
        )
        if stored is not None:
            self._pipeline.restore(stored.traces, 0.0)
            for one in stored.turns:
                self._pipeline.restore_turn(one)

    def read(self, spans: Sequence[Span], now: float) -> list[Any]:
        """Receive spans, and read their trace `now`."""
        fed = self._pipeline.feed(spans, (), now - WAIT_S, row=1)
        self._received += spans
        return seen([*fed, *self._pipeline.expire(now)])

    def _received_of(self, trace: str) -> list[Span]:
        return [one for one in self._received if one.trace_id == trace]

    def receive(self, turns: Iterable[ForwardedTurn], now: float) -> list[Any]:
        """Receive what was forwarded."""
        return seen(event for one in turns for event in self._pipeline.feed_turn(one, now))

    def wait(self, now: float) -> list[Any]:
        """Let time pass until `now`."""
        return seen(self._pipeline.expire(now))

    def drain(self, now: float) -> list[Any]:
        """End all conversations."""
        return seen(self._pipeline.drain(now))

    def tool_calls(self, now: float) -> list[float | None]:
        """Their numbers in the evaluations until `now`."""
        events = self._pipeline.expire(now)
        return [one.results[0].score.value for one in events if isinstance(one, Evaluation)]

    def deadline(self) -> float | None:
        return self._pipeline.deadline()

    def purge(self, trace: str) -> None:
        self._pipeline.discard({("", trace)})

    def changes(self) -> Changes:
        return self._pipeline.changes()

    def counts(self) -> tuple[int, int]:
        """Invocations that were counted, and revisions of evaluations."""
        counters = self.telemetry.invocations_read, self.telemetry.revisions
        read, revisions = (sum(n for _, n in counter.items()) for counter in counters)
        return read, revisions


def seen(events: Iterable[PipelineEvent]) -> list[Any]:
    """Of an evaluation the name, the turn or why it is none, and the revision; of a conversation
    the matched and the missing turns.
    """
    found: list[Any] = []
    for event in events:
        if isinstance(event, Evaluation):
            match = event.match
            name = event.invocation.agent
            found.append((name, match.unmatched or match.turn_index, event.revision))
        elif isinstance(event, Withdrawn):
            found.append("withdrawn")
        elif isinstance(event, ConversationResult):
            found.append((event.matched, event.missing))
    return found


def trace_of(name: str, of: int) -> str:
    """The name of a trace that the partition `of` reads."""
    names = (f"{name} {number}" for number in count())
    return next(one for one in names if partition_of_trace(trace_id(one), TOTAL) == of)


def agent(name: str, **stated: Any) -> dict[str, Any]:
    """The attributes of an agent."""
    return {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": name,
        "gen_ai.conversation.id": "one",
        "pathgauge.scenario.id": "talk",
        **{f"pathgauge.{key}": value for key, value in stated.items()},
    }


def turn(name: str, start: float, of: int = HERE, **stated: Any) -> list[Span]:
    """A turn whose trace the partition `of` reads: the span of its agent, whose caller is not
    known, and two tool calls.
    """
    trace = trace_of(name, of)
    tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look_up"}
    return [
        span(
            trace,
            "invoke_agent",
            agent(name, **stated),
            trace=trace,
            parent=f"{trace} caller",
            remote_parent=True,
            start=start,
            end=start + 9.0,
        ),
        *(
            span(f"{trace} {at}", "execute_tool", tool, trace=trace, parent=trace, start=start + at)
            for at in (1, 2)
        ),
    ]


def caller(name: str, start: float, of: int = HERE) -> Span:
    """An agent that encloses this turn."""
    trace = trace_of(name, of)
    return span(
        f"{trace} caller", "invoke_agent", agent("caller"), trace=trace, start=start, end=start + 10
    )


def forwarded(spans: Sequence[Span], now: float) -> tuple[ForwardedTurn, ...]:
    """What the other partition forwards when it has read a trace."""
    other = Scorer(AWAY)
    assert other.read(spans, now) == []
    return other.changes().forwarded


def test_turns_that_arrive_in_another_order_are_evaluated_once_with_their_numbers() -> None:
    scorer = Scorer()
    first = forwarded(turn("first", 0.0, AWAY), 9.0)
    assert scorer.read(turn("second", 10.0), 20.0) == []
    assert scorer.deadline() == 20.0 + HOLD_S
    assert scorer.read(turn("third", 20.0), 21.0) == []
    assert scorer.receive(first, 22.0) == []
    assert scorer.wait(19.9 + HOLD_S) == []
    assert scorer.wait(20.0 + HOLD_S) == [("second", 1, 0)]
    assert scorer.wait(22.0 + HOLD_S) == [("first", 0, 0), ("third", 2, 0)]
    assert scorer.wait(90.0) == []
    assert scorer.counts() == (3, 0)


def test_a_turn_that_the_reference_does_not_have_is_held_too() -> None:
    scorer = Scorer()
    for number in range(3):
        scorer.read(turn(f"stated {number}", 10.0 * number, turn=number), 40.0)
    assert scorer.read(turn("fourth", 30.0), 40.0) == []
    assert scorer.wait(40.0 + HOLD_S) == [("fourth", "unexpected_turn", 0)]


def test_a_turn_that_states_its_number_is_not_held() -> None:
    scorer = Scorer()
    assert scorer.read(turn("own", 10.0, turn=1), 20.0) == [("own", 1, 0)]
    stated = forwarded(turn("other", 0.0, AWAY, turn=0), 20.0)
    assert scorer.receive(stated, 20.0) == [("other", 0, 0)]


def test_a_single_partition_holds_nothing() -> None:
    assert Scorer(0, total=1).read(turn("own", 0.0), 9.0) == [("own", 0, 0)]


@pytest.mark.parametrize("of", [HERE, AWAY])
def test_a_turn_that_is_held_is_evaluated_by_the_process_that_continues(of: int) -> None:
    earlier = Scorer()
    spans = turn("first", 0.0, of)
    if of == HERE:
        earlier.read(spans, 9.0)
    else:
        earlier.receive(forwarded(spans, 9.0), 9.0)
    later = Scorer(stored=earlier.changes())
    assert later.wait(10.0) == []
    assert later.wait(9.0 + HOLD_S) == [("first", 0, 0)]
    assert later.counts() == (1, 0)
    again = Scorer(stored=later.changes())
    assert again.wait(50.0) == []
    assert again.counts() == (0, 0)


def test_late_spans_that_change_nothing_after_a_restart_cause_no_revision() -> None:
    earlier, spans = Scorer(), turn("first", 0.0)
    earlier.read(spans, 9.0)
    later = Scorer(stored=earlier.changes())
    assert later.wait(9.0 + HOLD_S) == [("first", 0, 0)]
    assert later.read(spans, 30.0) == []
    assert later.wait(50.0) == []


@pytest.mark.parametrize(
    ("references", "found"),
    [
        (ReferenceSet([]), "unknown_scenario"),
        (ReferenceSet([Reference("talk", (ReferenceTurn(),))]), 0),
    ],
)
def test_a_turn_that_is_held_is_evaluated_also_if_there_is_no_conversation_any_more(
    references: ReferenceSet, found: object
) -> None:
    earlier = Scorer()
    earlier.receive(forwarded(turn("first", 0.0, AWAY), 9.0), 9.0)
    later = Scorer(references=references, stored=earlier.changes())
    assert later.deadline() == 9.0
    assert later.wait(9.0) == [("first", found, 0)]
    assert [key[0] for key in later.changes().orphaned_turns] == [""]
    assert later.deadline() is None
    assert later.wait(50.0) == []


def test_late_spans_change_a_turn_that_is_held_before_its_only_evaluation() -> None:
    scorer = Scorer()
    first, call, late = turn("first", 0.0)
    assert scorer.read([first, call], 9.0) == []
    assert scorer.read([late], 12.0) == []
    assert scorer.tool_calls(9.0 + HOLD_S) == [2.0]
    assert scorer.counts() == (1, 0)


def test_late_spans_after_the_end_of_the_conversation_cause_a_revision() -> None:
    scorer = Scorer()
    first, call, late = turn("first", 0.0)
    scorer.read([first, call], 9.0)
    assert scorer.wait(9.0 + HOLD_S) == [("first", 0, 0)]
    assert scorer.wait(10.0 + IDLE_S) == [(1, 2)]
    assert scorer.read([late], 200.0) == [("first", 0, 1)]
    assert scorer.wait(210.0 + IDLE_S) == []


def test_late_spans_of_another_partition_leave_a_turn_of_an_ended_conversation_its_number() -> None:
    other, scorer = Scorer(AWAY), Scorer()
    late_spans: list[Span] = []
    for name, start in (("first", 0.0), ("second", 20.0)):
        *early, late_span = turn(name, start, AWAY)
        other.read(early, 40.0 + start)
        late_spans.append(late_span)
    assert scorer.receive(other.changes().forwarded, 61.0) == []
    assert scorer.wait(61.0 + HOLD_S) == [("first", 0, 0), ("second", 1, 0)]
    assert scorer.wait(80.0 + IDLE_S) == [(2, 1)]
    other.read(late_spans[1:], 200.0)
    assert scorer.receive(other.changes().forwarded, 201.0) == [("second", 1, 16)]
    assert scorer.wait(210.0 + IDLE_S) == []


def test_late_spans_of_another_partition_end_the_hold() -> None:
    first, call, late = turn("first", 0.0, AWAY)
    other, scorer = Scorer(AWAY), Scorer()
    other.read([first, call], 9.0)
    assert scorer.receive(other.changes().forwarded, 9.0) == []
    other.read([late], 12.0)
    events = scorer.receive(other.changes().forwarded, 12.0)
    assert events == [("first", 0, 0), ("first", 0, 16)]
    assert scorer.wait(50.0) == []
    assert scorer.counts() == (1, 1)


def test_an_enclosed_turn_that_is_held_is_evaluated_before_it_is_withdrawn() -> None:
    scorer = Scorer()
    scorer.read(turn("first", 0.0), 9.0)
    assert scorer.read([caller("first", -1.0)], 12.0) == [("first", 0, 0), "withdrawn"]
    assert scorer.wait(12.0 + HOLD_S) == [("caller", 0, 0)]
    assert scorer.counts() == (2, 0)


def test_an_enclosed_turn_of_another_partition_is_evaluated_before_it_is_withdrawn() -> None:
    other, scorer = Scorer(AWAY), Scorer()
    other.read(turn("first", 0.0, AWAY), 9.0)
    assert other.read([caller("first", -1.0, AWAY)], 12.0) == ["withdrawn"]
    events = scorer.receive(other.changes().forwarded, 12.0)
    assert events == [("first", 0, 0), "withdrawn"]
    assert scorer.wait(12.0 + HOLD_S) == [("caller", 0, 0)]
    assert scorer.counts() == (2, 0)


def test_an_enclosed_turn_without_a_conversation_is_evaluated_before_it_is_withdrawn() -> None:
    other, earlier = Scorer(AWAY), Scorer()
    other.read(turn("first", 0.0, AWAY), 9.0)
    earlier.receive(other.changes().forwarded, 9.0)
    other.read([caller("first", -1.0, AWAY)], 12.0)
    later = Scorer(references=ReferenceSet([]), stored=earlier.changes())
    assert later.receive(other.changes().forwarded, 12.0) == [
        ("first", "unknown_scenario", 0),
        "withdrawn",
        ("caller", "unknown_scenario", 0),
    ]


@pytest.mark.parametrize("restarts", [False, True])
def test_a_turn_that_is_purged_while_it_is_held_is_not_evaluated(restarts: bool) -> None:
    scorer = Scorer()
    scorer.read(turn("first", 0.0), 9.0)
    if restarts:
        scorer = Scorer(references=ReferenceSet([]), stored=scorer.changes())
    scorer.purge(trace_id(trace_of("first", HERE)))
    assert scorer.wait(50.0) == []
    assert scorer.counts() == (0, 0)


def test_a_conversation_that_ends_early_has_the_scores_of_turns_that_are_held() -> None:
    scorer = Scorer()
    scorer.read(turn("first", 0.0), 9.0)
    assert scorer.drain(10.0) == [("first", 0, 0), (1, 2)]

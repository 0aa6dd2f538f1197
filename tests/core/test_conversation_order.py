"""The order in which the turns of a conversation arrive changes neither their final scores nor what
is counted, and costs a bounded number of evaluations for each.
"""

from __future__ import annotations

import math
import random
import sqlite3
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pytest
from hypothesis import given, settings, strategies as st

from pathgauge import ToolTrajectoryF1
from pathgauge.collector.core.evaluations.conversation import MAX_RENUMBERINGS, RENUMBER_S
from pathgauge.collector.core.evaluations.conversations import ConversationResult
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Evaluator
from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import PublishedEvent, Unreadable
from pathgauge.collector.core.references import ReferenceSet
from pathgauge.collector.core.traces import Bounds
from pathgauge.collector.store import Progress, results, scorer_state
from pathgauge.collector.store.restore import restore
from pathgauge.collector.testing import span, trace_id
from pathgauge.scorers.types import ExpectedCall, Reference, ReferenceTurn
from support.dialects import INSTALLED
from support.examples import examples
from support.memory_store import memory_store

SETTLE_S, IDLE_S = 0.1, 1800.0
BOUNDS = Bounds(settle=SETTLE_S, idle=SETTLE_S, late_ttl=60.0, max_age=120.0)
MAX_EVALUATIONS = 1 + MAX_RENUMBERINGS + 1
"""The first, those that other turns cause, and the one at the end of the conversation."""
MAX_ROW_BYTES = 1000


class Said(NamedTuple):
    """One evaluation of a turn."""

    at: float
    number: int | None
    score: float | None
    revision: int
    closed_by: str


def dialogue(turns: int) -> Reference:
    """Each turn expects a tool of its own."""
    return Reference(
        "talk",
        tuple(ReferenceTurn(tool_calls=(ExpectedCall(f"tool {n}"),)) for n in range(turns)),
    )


def turn(number: int) -> list[Span]:
    """The turn that the reference expects at this place. The traces of odd ones are incomplete."""
    name, start = f"turn {number}", 10.0 * number
    parent = f"{name}/caller" if number % 2 else None
    named = {
        "gen_ai.operation.name": "invoke_agent",
        "test.case.id": "talk",
        "gen_ai.conversation.id": "conversation",
    }
    called = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": f"tool {number}"}
    return [
        span(name, "invoke_agent a", named, trace=name, parent=parent, start=start, end=start + 9),
        span(
            f"{name}/tool",
            "execute_tool",
            called,
            trace=name,
            parent=name,
            start=start + 1,
            end=start + 2,
        ),
    ]


@dataclass(slots=True)
class Run:
    """What became of one conversation."""

    now: float = 0.0
    said: defaultdict[str, list[Said]] = field(default_factory=lambda: defaultdict(list))
    """All evaluations, by trace id."""
    finished: list[ConversationResult] = field(default_factory=list)
    rows: Counter[str] = field(default_factory=Counter)
    """Results in the store, by trace id."""
    row_bytes: int = 0
    turns: int = 0
    """Turns in the store at the end."""
    telemetry: InternalTelemetry = field(default_factory=InternalTelemetry)

    @property
    def max_evaluations(self) -> int:
        """Of the turn that was evaluated most often."""
        return max(map(len, self.said.values()))

    def last(self) -> dict[str, tuple[int | None, float | None]]:
        """The newest number and score of each turn."""
        return {trace: (said[-1].number, said[-1].score) for trace, said in self.said.items()}

    def take(self, events: Iterable[PublishedEvent]) -> None:
        for event in events:
            if isinstance(event, ConversationResult):
                self.finished.append(event)
            elif isinstance(event, Evaluation):
                [score] = [result.score.value for result in event.results] or [None]
                number, now = event.match.turn_index, round(self.now, 3)
                said = Said(now, number, score, event.revision, event.closed_by)
                self.said[event.invocation.trace_id].append(said)


@dataclass(slots=True)
class Collector:
    """A pipeline with a store in memory, without a clock and threads."""

    expected: int
    run: Run = field(default_factory=Run)
    core: Pipeline = field(init=False)
    store: sqlite3.Connection = field(init=False)

    def __post_init__(self) -> None:
        self.store = memory_store()
        self.start()

    def start(self) -> None:
        """Begin, or continue with what is stored."""
        evaluator = Evaluator((Criterion("f1", ToolTrajectoryF1(), 1.0),))
        references = ReferenceSet([dialogue(self.expected)])
        self.core = Pipeline(
            INSTALLED, evaluator, references, self.run.telemetry, BOUNDS, conversation_idle=IDLE_S
        )
        restored = restore(self.store, lambda *damaged: pytest.fail(f"{damaged} is damaged"))
        self.core.restore(restored.traces, self.run.now)
        for stored in restored.turns:
            self.core.restore_turn(stored)

    def send(self, numbers: Iterable[int]) -> None:
        """Have these turns read together, and commit."""
        self.core.feed([one for number in numbers for one in turn(number)], (), self.run.now)
        self.wait(SETTLE_S)

    def wait(self, seconds: float) -> None:
        """Let time pass, and commit."""
        until, events = self.run.now + seconds, list[PublishedEvent]()
        while (deadline := self.core.deadline()) is not None and deadline <= until:
            self.run.now = max(self.run.now, deadline)
            new = self.core.expire(self.run.now)
            assert not [event for event in new if isinstance(event, Unreadable)]
            events += (event for event in new if not isinstance(event, Unreadable))
            self.run.take(events[-len(new) :] if new else [])
        self.run.now = until
        changes = self.core.changes()
        progress = Progress(0, self.run.now, 0.0, events, changes)
        results.write_results(self.store, progress)
        scorer_state.write(self.store, progress)

    def stop(self) -> Run:
        """What the store holds at the end."""
        for trace, size in self.store.execute("SELECT trace_id, length(body) FROM results"):
            self.run.rows[trace] += 1
            self.run.row_bytes += size
        [self.run.turns] = self.store.execute("SELECT count(*) FROM turns").fetchone()
        self.store.close()
        return self.run


def played(
    batches: Sequence[tuple[float, Sequence[int]]],
    expected: int,
    *,
    restarts: bool = False,
    ends: bool = True,
) -> Run:
    """Send the turns of each batch together after so many seconds, with a restart after each or
    none. Unless it `ends`, the conversation is still open then.
    """
    collector = Collector(expected)
    for pause, numbers in batches:
        collector.wait(pause)
        collector.send(numbers)
        if restarts:
            collector.start()
    if ends:
        collector.wait(IDLE_S)
    return collector.stop()


def in_order(turns: int, expected: int) -> Run:
    return played([(1.0, [number]) for number in range(turns)], expected)


def broken_rules(
    run: Run, turns: int, expected: int, max_evaluations: int = MAX_EVALUATIONS
) -> list[str]:
    """The rules that do not hold for a conversation whose turns arrived in some order."""
    right = in_order(turns, expected)
    every = run.said.values()
    rules = {
        "every turn ends with the scores of in-order arrival": run.last() == right.last(),
        "so does the conversation": run.finished == right.finished != [],
        "no turn is evaluated too often": run.max_evaluations <= max_evaluations,
        "every turn is counted once": run.telemetry.invocations_read.total() == turns,
        "revisions are numbered": all(
            [one.revision for one in said] == list(range(len(said))) for said in every
        ),
        "revisions close as the first": all(
            len({one.closed_by for one in said}) == 1 for said in every
        ),
        "every turn has a first and a newest result": max(run.rows.values()) <= 2,
        "results are small": run.row_bytes <= turns * 2 * MAX_ROW_BYTES,
        "nothing is left of a finished conversation": run.turns == 0,
    }
    return [rule for rule, holds in rules.items() if not holds]


@st.composite
def arrivals(draw: st.DrawFn, max_turns: int) -> tuple[list[tuple[float, list[int]]], int, int]:
    """Batches of turns in any order, the number of turns, and how many turns are expected."""
    turns = draw(st.integers(2, max_turns))
    expected = draw(st.integers(max(2, math.ceil(turns / 4)), turns + 2))
    order = list(range(turns))
    match draw(st.sampled_from(["reverse", "random", "nearly in order"])):
        case "reverse":
            order.reverse()
        case "random":
            random.Random(draw(st.integers(0, 2**32))).shuffle(order)
        case _:
            shift = random.Random(draw(st.integers(0, 2**32)))
            order.sort(key=lambda number: number + shift.uniform(0, 3))
    pauses = st.sampled_from([0.0, 0.5, RENUMBER_S, 60.0, 1000.0])
    pause, size = draw(pauses), draw(st.sampled_from([1, 1, 7, turns]))
    batches = [(pause, order[start : start + size]) for start in range(0, turns, size)]
    return batches, turns, expected


@settings(max_examples=examples(15), deadline=None)
@given(arrivals(max_turns=40))
def test_turns_in_any_order_have_the_scores_of_turns_in_order(
    arrival: tuple[list[tuple[float, list[int]]], int, int],
) -> None:
    batches, turns, expected = arrival
    assert broken_rules(played(batches, expected), turns, expected) == []


@settings(max_examples=examples(8), deadline=None)
@given(arrivals(max_turns=20))
def test_restarts_change_no_score(
    arrival: tuple[list[tuple[float, list[int]]], int, int],
) -> None:
    batches, turns, expected = arrival
    run = played(batches, expected, restarts=True)
    assert broken_rules(run, turns, expected, max_evaluations=2 + len(batches)) == []


@pytest.mark.slow
@settings(max_examples=examples(150, fewer=30), deadline=None)
@given(arrivals(max_turns=200))
def test_many_turns_in_any_order_have_the_scores_of_turns_in_order(
    arrival: tuple[list[tuple[float, list[int]]], int, int],
) -> None:
    batches, turns, expected = arrival
    assert broken_rules(played(batches, expected), turns, expected) == []


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.0, 1.0, 30.0, 600.0])
def test_newest_first_costs_few_evaluations_whatever_the_pace(pause: float) -> None:
    run = played([(pause, [number]) for number in reversed(range(200))], 50)
    assert broken_rules(run, 200, 50) == []


@pytest.mark.slow
def test_turns_that_come_newest_first_for_hours_are_evaluated_ever_more_seldom() -> None:
    run = played([(60.0 - SETTLE_S, [number]) for number in reversed(range(90))], 90)
    assert broken_rules(run, 90, 90) == []
    assert run.max_evaluations == MAX_EVALUATIONS
    assert [said.at for said in run.said[trace_id("turn 89")]] == [
        # At first with each turn that comes before it, at the end with the conversation.
        60, 120, 180, 240, 300, 360, 440, 600, 920, 1560, 2840, 90 * 60 + IDLE_S,
    ]  # fmt: skip


def test_turns_that_come_newest_first_in_a_burst_are_numbered_soon_after_it() -> None:
    burst = [(0.1, [number]) for number in reversed(range(12))]
    run = played([*burst, (10.0, [])], 12, ends=False)
    assert run.last() == expected_scores(12)
    assert [said[0].number for said in run.said.values()] == [0] * 12
    assert [said.at for said in run.said[trace_id("turn 11")]] == [0.2, 0.4, 5.4]
    assert [said.at for said in run.said[trace_id("turn 10")]] == [0.4, 1.4, 6.4]


def test_a_restart_forgets_no_turn_that_waits_for_its_number() -> None:
    collector = Collector(12)
    for number in reversed(range(12)):
        collector.send([number])
    collector.start()
    collector.wait(1.0)
    assert collector.stop().last() == expected_scores(12)


def expected_scores(turns: int) -> dict[str, tuple[int, float]]:
    return {trace_id(f"turn {number}"): (number, 1.0) for number in range(turns)}


def test_turns_that_are_read_together_renumber_their_conversation_once() -> None:
    run = played([(0.0, list(reversed(range(20))))], 20)
    assert run.max_evaluations == 1


def test_one_late_turn_renumbers_those_after_it_at_once() -> None:
    run = played([(0.0, [0]), (1.0, [2]), (1.0, [3]), (1.0, [1])], 4, ends=False)
    assert run.last() == expected_scores(4)
    assert [len(run.said[trace_id(f"turn {number}")]) for number in range(4)] == [1, 1, 2, 2]


def test_swapped_neighbours_are_renumbered_within_a_second_however_often_that_happens() -> None:
    pairs = [(1.0, [number]) for start in range(0, 100, 2) for number in (start + 1, start)]
    run = played([*pairs, (1.0, [])], 100, ends=False)
    assert run.last() == expected_scores(100)
    assert run.max_evaluations == 2

"""Open conversations: turns that are replaced, moved, withdrawn or restored."""

from __future__ import annotations

import math
from dataclasses import replace
from time import process_time

import pytest

from pathgauge.collector.core.evaluations.conversation import RENUMBER_S
from pathgauge.collector.core.evaluations.conversations import Conversations
from pathgauge.collector.core.evaluations.evaluator import Criterion, Evaluation, Result
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.collector.core.references import Match
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn, Score
from support.sink_harness import ranged

TALK = Reference("talk", (ReferenceTurn(),) * 4)


def turn(name: str, start: int, conversation: str = "c", stated: int | None = None) -> Invocation:
    return Invocation(
        name,
        "s",
        "test",
        conversation_id=conversation,
        scenario_id="talk",
        start_ns=start,
        turn=stated,
    )


def opened(*turns: Invocation) -> Conversations:
    """All turns arrived at 0 and were evaluated."""
    conversations = Conversations(idle=100.0)
    for one in turns:
        assert conversations.place(one, TALK, 0.0)
    evaluate(conversations, 0.0)
    return conversations


def evaluate(conversations: Conversations, now: float) -> dict[str, int]:
    """Evaluate what is due; returns the number of each turn."""
    numbers = {}
    for one, index in conversations.numbered(now):
        numbers[one.invocation.trace_id] = index
        evaluation = Evaluation(one.invocation, Match(), (), one.closed_by, one.revision + 1)
        conversations.record(one, evaluation)
    return numbers


def stored(conversations: Conversations) -> list[tuple[str, str | None, int | None, int]]:
    """The turns that changed: trace, conversation, number and revision."""
    return [
        (one.invocation.trace_id, one.invocation.conversation_id, one.number, one.revision)
        for one in conversations.changes()[0]
    ]


def test_a_withdrawn_turn_renumbers_those_after_it() -> None:
    conversations = opened(turn("a", 1), turn("b", 2), turn("c", 3))
    assert conversations.withdraw(("", "b", "s"))
    assert not conversations.withdraw(("", "b", "s"))
    assert conversations.deadline() == 0.0
    assert evaluate(conversations, 5.0) == {"c": 1}


def test_a_purged_turn_renumbers_those_after_it() -> None:
    conversations = opened(turn("a", 1), turn("b", 2), turn("c", 3))
    conversations.discard({("", "a"), ("other tenant", "c")})
    assert evaluate(conversations, 5.0) == {"b": 0, "c": 1}
    assert stored(conversations) == [("b", "c", 0, 1), ("c", "c", 1, 1)]


def test_a_turn_that_is_withdrawn_before_it_was_evaluated_is_not_evaluated() -> None:
    conversations = opened(turn("b", 2), turn("a", 1))
    conversations.place(turn("c", 3), TALK, 0.5)
    conversations.withdraw(("", "c", "s"))
    assert evaluate(conversations, 0.5) == {}
    assert evaluate(conversations, 5.0) == {}


def test_a_turn_whose_conversation_changes_leaves_the_earlier_one() -> None:
    conversations = opened(turn("a", 1), turn("b", 2))
    assert conversations.place(turn("a", 1, conversation="d"), TALK, 5.0)
    assert evaluate(conversations, 5.0) == {"a": 0, "b": 0}
    assert stored(conversations) == [("b", "c", 0, 1), ("a", "d", 0, 1)]
    assert [(one.key[1], len(one.conversation.turns)) for one in conversations.drain()] == [
        ("c", 1),
        ("d", 1),
    ]


def test_a_turn_that_late_spans_change_is_evaluated_at_once_and_renumbered_no_sooner() -> None:
    conversations = opened(turn("z", 9))
    conversations.place(turn("y", 8), TALK, 1.0)
    assert evaluate(conversations, 1.0) == {"y": 0, "z": 1}
    conversations.place(replace(turn("z", 9), final_response="late"), TALK, 2.0)
    conversations.place(turn("x", 7), TALK, 2.0)
    assert evaluate(conversations, 2.0) == {"x": 0, "y": 1, "z": 2}
    conversations.place(turn("w", 6), TALK, 4.0)
    assert evaluate(conversations, 4.0) == {"w": 0, "x": 1}
    assert evaluate(conversations, 1.0 + RENUMBER_S) == {"z": 3}
    assert evaluate(conversations, 2.0 + RENUMBER_S) == {"y": 2}


def test_a_turn_beyond_the_reference_counts_as_unexpected_whatever_number_it_states() -> None:
    turns = [turn("a", 1), turn("b", 2, stated=-5), turn("c", 3, stated=4)]
    [ended] = opened(*turns).drain()
    assert ended.conversation.end() == []
    result = ended.conversation.result(ended.key)
    assert (result.matched, result.missing, result.unexpected) == (1, 3, 2)


def test_a_conversation_belongs_to_the_agent_of_its_last_turn_that_the_reference_has() -> None:
    expected = replace(turn("a", 1), agent="desk", agent_version="2")
    unexpected = replace(turn("b", 2, stated=4), agent="survey", agent_version="1")
    agents = []
    for turns in ([expected, unexpected], [unexpected]):
        [ended] = opened(*turns).drain()
        result = ended.conversation.result(ended.key)
        agents.append((result.agent, result.agent_version))
    assert agents == [("desk", "2"), ("survey", "1")]


@pytest.mark.parametrize(
    ("low", "high", "higher_is_better", "mean"),
    [
        (0.0, 1.0, True, 0.5),
        (0.0, 1.0, False, 1.0),
        (1.0, 5.0, True, 1.0),
        (1.0, 5.0, False, 3.0),
        (-3.0, 1.0, True, -1.0),
        (-math.inf, 1.0, True, None),
        (0.0, math.inf, True, 0.5),
        (0.0, math.inf, False, None),
    ],
)
def test_a_missing_and_an_unexpected_turn_count_as_the_worst_value(
    low: float, high: float, higher_is_better: bool, mean: float | None
) -> None:
    criterion = Criterion("own", ranged(low, high, higher_is_better=higher_is_better), 0.5)
    talk = replace(TALK, turns=TALK.turns[:3])
    conversations = Conversations()
    for actual in (turn("a", 1, stated=0), turn("b", 2, stated=1), turn("c", 3, stated=9)):
        conversations.place(actual, talk, 0.0)
    for one, index in conversations.numbered(0.0):
        results = (Result(criterion, Score(1.0), "passed"),) if index < 3 else ()
        conversations.record(one, Evaluation(one.invocation, Match(), results, one.closed_by))
    [ended] = conversations.drain()
    result = ended.conversation.result(ended.key)
    assert (result.missing, result.unexpected) == (1, 1)
    assert [(score.criterion, score.value) for score in result.scores] == [(criterion, mean)]


@pytest.mark.parametrize("worst", [math.inf, 1.7e308])
def test_huge_scores_of_a_conversation_have_a_mean(worst: float) -> None:
    criterion = Criterion("own", ranged(0.0, worst, higher_is_better=False))
    conversations = Conversations()
    stated = [0, 1, 2] if math.isfinite(worst) else [0, 1, 2, 3]
    for number in stated:
        conversations.place(turn(str(number), number, stated=number), TALK, 0.0)
    for one, _ in conversations.numbered(0.0):
        results = (Result(criterion, Score(1e308), "informational"),)
        conversations.record(one, Evaluation(one.invocation, Match(), results, one.closed_by))
    [ended] = conversations.drain()
    [score] = ended.conversation.result(ended.key).scores
    assert score.value == pytest.approx(1e308 if worst == math.inf else 1.175e308)


@pytest.mark.parametrize(
    ("stated", "turns", "mean"),
    [
        ((0, 1, 2), (3, 0, 0), 1.0),
        ((0, 0, 1, 2), (4, 0, 0), 1.0),
        ((0, 0, 0), (3, 2, 0), 3 / 5),
        ((0, 0, 7), (2, 2, 1), 2 / 5),
        ((None, None, None, None), (3, 0, 1), 3 / 4),
    ],
)
def test_every_turn_counts_once_also_if_several_state_the_same_number(
    stated: tuple[int | None, ...], turns: tuple[int, int, int], mean: float
) -> None:
    criterion = Criterion("own", ranged(0.0, 1.0, higher_is_better=True), 0.5)
    talk = replace(TALK, turns=TALK.turns[:3])
    conversations = Conversations()
    for start, number in enumerate(stated):
        conversations.place(turn(str(start), start, stated=number), talk, 0.0)
    for one, index in conversations.numbered(0.0):
        results = (Result(criterion, Score(1.0), "passed"),) if index < 3 else ()
        conversations.record(one, Evaluation(one.invocation, Match(), results, one.closed_by))
    [ended] = conversations.drain()
    result = ended.conversation.result(ended.key)
    assert (result.matched, result.missing, result.unexpected) == turns
    assert [score.value for score in result.scores] == [pytest.approx(mean)]


def test_a_conversation_with_all_turns_needs_no_worst_value() -> None:
    criterion = Criterion("own", ranged(0.0, math.inf, higher_is_better=False))
    conversations = Conversations()
    for start in range(4):
        conversations.place(turn(str(start), start), TALK, 0.0)
    for one, index in conversations.numbered(0.0):
        results = (Result(criterion, Score(float(index)), "informational"),)
        conversations.record(one, Evaluation(one.invocation, Match(), results, one.closed_by))
    [ended] = conversations.drain()
    assert [score.value for score in ended.conversation.result(ended.key).scores] == [1.5]


def test_turns_that_are_not_kept_are_counted_in_the_store_until_the_conversation_ends() -> None:
    conversations = opened(*(turn(str(start), start) for start in range(16)))
    assert not conversations.place(turn("more", 16), TALK, 1.0)
    assert not conversations.place(turn("still more", 17), TALK, 1.0)
    assert [one.dropped_turns for one in conversations.changes()[0]][-1:] == [2]
    assert not conversations.place(turn("too late", 18), TALK, 1.0)
    [ended] = conversations.drain()
    assert conversations.changes() == ((), (ended.key,))
    assert not conversations.has_changes
    assert ended.conversation.result(ended.key).unexpected == 12 + 3


def test_the_score_of_a_conversation_takes_no_time_for_turns_that_are_not_kept() -> None:
    criterion = Criterion("own", ranged(1.0, 5.0, higher_is_better=True), 2.0)
    conversations = Conversations()
    conversations.restore(StoredTurn(turn("more", 9), 0.0, dropped_turns=10**15), TALK)
    conversations.place(turn("first", 1, stated=0), TALK, 0.0)
    for one, _ in conversations.numbered(0.0):
        results = (Result(criterion, Score(5.0), "passed"),)
        conversations.record(one, Evaluation(one.invocation, Match(), results, one.closed_by))
    [ended] = conversations.drain()
    result = ended.conversation.result(ended.key)
    assert result.unexpected == 10**15
    assert [score.value for score in result.scores] == [pytest.approx(1.0)]


def test_turns_stored_by_an_earlier_version_are_numbered_once() -> None:
    conversations = Conversations()
    for name, start in (("b", 2), ("a", 1)):
        conversations.restore(StoredTurn(turn(name, start), 7.0), TALK)
    assert conversations.deadline() == 7.0
    assert evaluate(conversations, 7.0) == {"a": 0, "b": 1}
    assert evaluate(conversations, 50.0) == {}


def test_the_numbers_of_a_conversation_are_compared_once_a_second() -> None:
    talk = replace(TALK, turns=(ReferenceTurn(),) * 100)
    conversations, now = Conversations(), 0.0
    for start in range(100, 0, -1):
        conversations.place(turn(str(start), start), talk, now)
        evaluate(conversations, now)
        now += 0.05
    comparisons = 0
    while (deadline := conversations.deadline()) is not None and deadline < 30.0:
        evaluate(conversations, deadline)
        comparisons += 1
    assert 5 < comparisons <= 26
    assert evaluate(conversations, 30.0) == {}


def test_the_work_for_turns_that_are_held_is_not_the_square_of_their_number() -> None:
    turns = 16_000
    talk = replace(TALK, turns=(ReferenceTurn(),) * turns)
    conversations = Conversations(hold=5.0)
    before = process_time()
    for number in range(turns):
        now = 4.0 * number / turns
        conversations.place(turn(str(number), turns - number), talk, now)
        assert evaluate(conversations, now) == {}
    assert len(evaluate(conversations, 10.0)) == turns
    assert process_time() - before < 4  # usually 0.8 s; 10 s if each turn looks at all others


def test_a_turn_that_is_renumbered_again_and_again_is_scheduled_once() -> None:
    conversations = opened(turn("last", 10**6))
    for second in range(1, 5):
        conversations.place(turn(str(second), 10**6 - second), TALK, second / 10)
        evaluate(conversations, second / 10)
    assert len(conversations._due) <= 2

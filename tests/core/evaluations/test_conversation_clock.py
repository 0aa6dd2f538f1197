"""The time by which conversations end, when the turns of other partitions are awaited."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, strategies as st

from pathgauge.collector.core.evaluations.conversation_clock import (
    LEVEL_S,
    PATIENCE_S,
    ConversationClock,
)
from pathgauge.collector.core.evaluations.conversations import Conversations
from pathgauge.collector.core.evaluations.stored_turn import StoredTurn
from pathgauge.scorers.types import Invocation, Reference, ReferenceTurn

IDLE_S = 100.0
TALK = Reference("talk", (ReferenceTurn(),) * 4)
TIMES = st.integers(0, 3 * int(PATIENCE_S)).map(float)


def turn(name: str, conversation: str) -> Invocation:
    return Invocation(
        name, "s", "test", conversation_id=conversation, scenario_id="talk", start_ns=1
    )


def names(conversations: Conversations, now: float) -> list[str]:
    """The conversations that end."""
    return [one.key[1] for one in conversations.expire(now)]


def test_without_others_the_time_is_that_of_the_partition() -> None:
    clock = ConversationClock()
    assert (clock.advance(7.0), clock.when(9.0)) == (7.0, 9.0)
    assert clock.of_turn(None, 8.0) == 8.0


@pytest.mark.parametrize(
    ("others", "now", "time"),
    [
        (-math.inf, 1e9, -math.inf),
        (1000.0, 900.0, 900.0),
        (1000.0, 1000.0 + LEVEL_S, 1000.0 + LEVEL_S),
        (1000.0, 1001.0 + LEVEL_S, 1000.0),
        (1000.0, 1000.0 + PATIENCE_S, 1000.0),
        (1000.0, 1500.0 + PATIENCE_S, 1500.0),
    ],
    ids=["unknown", "ahead", "level", "behind", "far behind", "further than is waited for"],
)
def test_the_time_is_that_of_the_partition_that_is_furthest_behind(
    others: float, now: float, time: float
) -> None:
    clock = ConversationClock()
    clock.hear(others)
    assert clock.advance(now) == time


def test_the_time_never_goes_back() -> None:
    clock = ConversationClock()
    assert clock.advance(500.0) == 500.0
    clock.hear(100.0)
    assert clock.advance(1000.0) == 500.0
    clock.hear(-math.inf)
    assert clock.advance(1001.0) == 500.0
    assert clock.when(500.0) == 500.0


def test_a_turn_is_not_older_than_the_time_that_was_reached() -> None:
    clock = ConversationClock()
    clock.hear(1000.0)
    assert clock.of_turn(1200.0, 900.0) == 1200.0
    assert clock.of_turn(1030.0, 2000.0) == 1030.0
    assert clock.of_turn(800.0, 2000.0) == 1000.0


@given(st.lists(st.tuples(st.sampled_from(["own", "others"]), TIMES), min_size=1), TIMES)
def test_a_time_is_reached_when_it_was_foretold(
    course: list[tuple[str, float]], time: float
) -> None:
    clock, now = ConversationClock(), 0.0
    for what, at in course:
        if what == "own":
            now = max(now, at)
            clock.advance(now)
        else:
            clock.hear(at)
    reached, foretold = clock.advance(now), clock.when(time)
    assert (foretold <= now) == (time <= reached)
    if foretold < math.inf:
        assert clock.advance(max(now, foretold)) >= time


def opened(others: float, *turns: tuple[str, float]) -> Conversations:
    """Conversations with one turn each, that another partition has read at this time. All arrive
    at 0.
    """
    conversations = Conversations(IDLE_S)
    conversations.hear(others)
    for name, at in turns:
        conversations.place(turn(name, name), TALK, 0.0, read_at=at)
    return conversations


def test_a_conversation_ends_after_its_last_turn_as_the_other_partition_saw_it() -> None:
    conversations = opened(1000.0, ("a", 300.0))
    assert conversations.deadline() == 400.0
    assert names(conversations, 399.0) == []
    assert names(conversations, 400.0) == ["a"]


def test_an_older_turn_does_not_end_a_conversation_sooner() -> None:
    conversations = opened(1000.0, ("a", 300.0))
    conversations.place(turn("older", "a"), TALK, 1.0, read_at=250.0)
    conversations.place(turn("own", "a"), TALK, 2.0)
    assert names(conversations, 399.0) == []
    assert names(conversations, 400.0) == ["a"]


def test_conversations_end_in_the_order_in_which_their_last_turns_were_read() -> None:
    conversations = opened(1000.0, ("c", 30.0), ("a", 10.0), ("b", 20.0))
    conversations.place(turn("again", "a"), TALK, 0.0, read_at=25.0)
    assert names(conversations, 120.0) == ["b"]
    assert names(conversations, 130.0) == ["a", "c"]
    assert conversations.deadline() is None


def test_beyond_the_limit_the_conversation_ends_whose_last_turn_was_read_first() -> None:
    conversations = opened(1000.0, ("a", 300.0), ("b", 200.0))
    conversations.max_bytes = conversations.size - 1
    assert conversations.deadline() == 0.0
    assert names(conversations, 0.0) == ["b"]


def test_a_conversation_waits_for_a_partition_that_is_behind_without_being_looked_at() -> None:
    conversations = opened(50.0, ("a", 40.0))
    assert names(conversations, 1000.0) == []
    assert conversations.deadline() == 140.0 + PATIENCE_S
    conversations.hear(140.0)
    assert conversations.deadline() == 140.0
    assert names(conversations, 1000.0) == ["a"]


def test_nothing_ends_until_the_others_are_known_but_by_the_end_of_everything() -> None:
    conversations = opened(-math.inf, ("a", 40.0))
    assert (names(conversations, 1e9), conversations.deadline()) == ([], None)
    assert [one.key[1] for one in conversations.drain()] == ["a"]


def test_a_restored_conversation_ends_as_if_there_had_been_no_restart() -> None:
    conversations = opened(1000.0, ("a", 300.0), ("b", 200.0))
    again = Conversations(IDLE_S)
    for one in conversations.drain():
        [kept] = one.conversation.turns.values()
        again.restore(StoredTurn(kept.invocation, kept.at, number=0), TALK)
    assert names(again, 299.0) == []
    assert names(again, 300.0) == ["b"]
    assert names(again, 400.0) == ["a"]

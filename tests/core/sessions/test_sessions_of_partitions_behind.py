"""Turns of a session that were read in a partition which is not as far as that of the session."""

from __future__ import annotations

from itertools import count

import pytest

from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.core.otlp.spans import Span
from pathgauge.collector.core.partitioning import (
    partition_of_session,
    partition_of_trace,
)
from pathgauge.collector.core.pipeline import Pipeline
from pathgauge.collector.core.pipeline_events import ForwardedTurn, PipelineEvent
from pathgauge.collector.testing import trace_id
from support.session_course import (
    SESSION,
    TRACE_S,
    Sent,
    partition_pipeline,
    turn,
)

OWN, OTHER, TOTAL = 0, 1, 2
CONVERSATION = next(
    name for name in map(str, count()) if partition_of_session("", name, TOTAL) == OWN
)
NUMBERS = [n for n in range(50) if partition_of_trace(trace_id(f"turn {n}"), TOTAL) == OTHER]
AHEAD = 5 * SESSION.idle


def pipeline(number: int) -> Pipeline:
    return partition_pipeline(number, TOTAL)


def spans(number: int) -> list[Span]:
    return turn(Sent(0.0, CONVERSATION, NUMBERS[number]))


def forwarded(sender: Pipeline, number: int, now: float) -> ForwardedTurn:
    """A turn that another partition has read."""
    sender.feed(spans(number), (), now)
    sender.expire(now + TRACE_S)
    [found] = sender.changes().forwarded
    return found


def sizes(events: list[PipelineEvent]) -> list[int]:
    """How many turns the sessions have that end."""
    results = (one.session for one in events if isinstance(one, Evaluation))
    return [len(session.members) for session in results if session is not None]


def test_a_session_goes_on_while_its_partition_is_behind_its_turns() -> None:
    sender, receiver = pipeline(OTHER), pipeline(OWN)
    receiver.expire(1.0)
    receiver.feed_turn(forwarded(sender, 0, AHEAD), 1.0)
    assert sizes(receiver.expire(AHEAD + SESSION.idle)) == []
    receiver.feed_turn(forwarded(sender, 1, AHEAD + SESSION.idle - TRACE_S), AHEAD + SESSION.idle)
    assert sizes(receiver.expire(AHEAD + 2 * SESSION.idle - 1.0)) == []
    assert sizes(receiver.expire(AHEAD + 2 * SESSION.idle)) == [2]


def test_a_turn_that_was_read_long_ago_opens_no_session_that_has_ended() -> None:
    sender, receiver = pipeline(OTHER), pipeline(OWN)
    receiver.expire(AHEAD)
    receiver.feed_turn(forwarded(sender, 0, 1.0), AHEAD)
    assert sizes(receiver.expire(AHEAD + SESSION.idle - 1.0)) == []
    assert sizes(receiver.expire(AHEAD + SESSION.idle)) == [1]


@pytest.mark.parametrize("first", [0, 1])
def test_an_older_turn_does_not_end_a_session_sooner(first: int) -> None:
    sender, receiver = pipeline(OTHER), pipeline(OWN)
    turns = [forwarded(sender, 0, 2.0), forwarded(sender, 1, AHEAD)]
    for number in (first, 1 - first):
        receiver.feed_turn(turns[number], 3.0)
    assert sizes(receiver.expire(AHEAD + SESSION.idle)) == []
    assert sizes(receiver.expire(AHEAD + SESSION.idle + TRACE_S)) == [2]

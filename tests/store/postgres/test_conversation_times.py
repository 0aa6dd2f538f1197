"""A conversation goes on for its idle time after its last turn, however far the partitions that
have its turns, and its own, are behind each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from pathgauge.collector.core.evaluations.conversation_clock import LEVEL_S, PATIENCE_S
from pathgauge.collector.service.cluster.partition_scorers import COMMIT_S
from pathgauge.collector.service.publisher import IDLE_COMMIT_S
from support.examples import examples
from support.virtual_cluster import (
    BEGIN,
    IDLE_S,
    STEP_S,
    TOTAL,
    VirtualCluster,
    conversation_in,
    turn_in,
)

MINUTE, HOUR = 60.0, 3600.0
OWN, OTHER, THIRD = range(TOTAL)
"""The partition of the conversation, and those of turns."""
CONVERSATION = conversation_in(OWN)


@pytest.fixture
def cluster(address: str) -> Iterator[VirtualCluster]:
    with closing(VirtualCluster(address)) as started:
        yield started


def say(cluster: VirtualCluster, partition: int) -> str:
    """Send the next turn; returns its trace id."""
    spans = turn_in(partition, CONVERSATION, cluster.now - BEGIN)
    cluster.send(*spans)
    return spans[0].trace_id


def last(cluster: VirtualCluster, *traces: str) -> list[int | None]:
    """The newest number of each turn."""
    return [cluster.numbers[trace][-1] for trace in traces]


@pytest.mark.parametrize("behind", [40 * MINUTE, 2 * PATIENCE_S], ids=["minutes", "hours"])
def test_a_conversation_goes_on_while_its_partition_is_behind_its_turns(
    cluster: VirtualCluster, behind: float
) -> None:
    cluster.wait(MINUTE)
    cluster.stopped = {OWN}
    cluster.wait(behind, step=behind / 40)
    first = say(cluster, OTHER)
    cluster.wait(MINUTE)
    cluster.stopped = set()
    cluster.catch_up(OWN, records=1)
    second = say(cluster, OTHER)
    cluster.wait(MINUTE)
    assert last(cluster, first, second) == [0, 1]
    assert cluster.finished == []


@pytest.mark.parametrize("behind", [40 * MINUTE, 5 * HOUR], ids=["minutes", "hours"])
@pytest.mark.parametrize("first_in", [OWN, THIRD], ids=["own", "other"])
def test_a_conversation_goes_on_while_the_partition_of_a_turn_is_behind(
    cluster: VirtualCluster, behind: float, first_in: int
) -> None:
    cluster.wait(MINUTE)
    cluster.stopped = {OTHER}
    first = say(cluster, first_in)
    cluster.wait(MINUTE)
    second = say(cluster, OTHER)
    cluster.wait(behind, step=behind / 40)
    assert cluster.finished == []
    cluster.stopped = set()
    cluster.wait(2 * MINUTE)
    assert last(cluster, first, second) == [0, 1]


def test_a_conversation_ends_although_a_partition_has_no_scorer(cluster: VirtualCluster) -> None:
    cluster.wait(MINUTE)
    cluster.stopped = {OTHER}
    say(cluster, OWN)
    cluster.wait(IDLE_S + PATIENCE_S, step=10 * MINUTE)
    assert cluster.finished == []
    cluster.wait(10 * MINUTE)
    assert len(cluster.finished) == 1


def test_a_conversation_ends_on_time_while_all_partitions_are_up_to_date(
    cluster: VirtualCluster,
) -> None:
    cluster.wait(MINUTE)
    first = say(cluster, OTHER)
    cluster.wait(IDLE_S)
    assert cluster.finished == []
    cluster.wait(3 * STEP_S)
    assert len(cluster.finished) == 1
    second = say(cluster, OTHER)
    cluster.wait(MINUTE)
    assert last(cluster, first, second) == [0, 0]


def test_a_scorer_that_takes_a_partition_over_knows_when_turns_were_read(
    cluster: VirtualCluster,
) -> None:
    cluster.wait(MINUTE)
    cluster.stopped = {OWN}
    cluster.wait(40 * MINUTE)
    first = say(cluster, OTHER)
    cluster.wait(MINUTE)
    for _ in range(2):
        cluster.restart(OWN)
        cluster.catch_up(OWN, records=1)
    cluster.restart(OTHER)
    cluster.stopped = set()
    second = say(cluster, OTHER)
    cluster.wait(MINUTE)
    assert last(cluster, first, second) == [0, 1]


class Course(NamedTuple):
    """What happens next."""

    pause: float
    partition: int
    """Of the trace of a turn."""
    stopped: frozenset[int]
    """The partitions that have no scorer until the next turn."""
    restarted: int | None
    """A partition that another scorer takes over before."""
    is_new: bool
    """Whether the conversation ends before, and a new one begins."""


@st.composite
def courses(draw: st.DrawFn) -> list[Course]:
    partitions = st.integers(0, TOTAL - 1)
    return [
        Course(
            draw(st.sampled_from([MINUTE, 10 * MINUTE, 25 * MINUTE])),
            draw(partitions),
            draw(st.frozensets(partitions, max_size=2)),
            draw(st.none() | partitions),
            draw(st.integers(0, 5)) == 0,
        )
        for _ in range(draw(st.integers(2, 8)))
    ]


@dataclass(frozen=True)
class Outcome:
    """What must not depend on the number of partitions, or on how far they are behind."""

    numbers: dict[str, int | None]
    """The newest number of each turn."""
    finished: Counter[Any]


def played(address: str, course: Sequence[Course], total: int) -> Outcome:
    """With one partition, there is none that could be behind."""
    with closing(VirtualCluster(address, total)) as cluster:
        for one in course:
            if one.is_new:
                cluster.stopped = set()
                cluster.wait(IDLE_S + 3 * MINUTE, step=MINUTE)
            say(cluster, one.partition)
            if total > 1:
                cluster.stopped = set(one.stopped)
            if one.restarted is not None:
                cluster.restart(one.restarted % total)
            cluster.wait(one.pause, step=MINUTE)
        cluster.stopped = set()
        cluster.wait(IDLE_S + 3 * MINUTE, step=MINUTE)
        results = (one for _, one in cluster.finished)
        return Outcome(
            {trace: numbers[-1] for trace, numbers in cluster.numbers.items()},
            Counter((one.matched, one.missing, one.unexpected, one.scores) for one in results),
        )


@pytest.mark.slow
@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(courses())
def test_whatever_is_behind_a_conversation_has_the_turns_that_one_scorer_finds(
    address: str, course: list[Course]
) -> None:
    assert played(address, course, TOTAL) == played(address, course, 1)


def test_a_partition_without_requests_commits_often_enough_to_hold_up_no_conversation() -> None:
    assert IDLE_COMMIT_S + 10 * COMMIT_S < LEVEL_S

"""A process that is evicted again and again waits longer."""

from __future__ import annotations

from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.service.cluster.rejoining import FIRST_S, MAX_S, STEADY_S, Pauses, fenced


def test_pauses_become_longer_while_a_process_is_evicted_again() -> None:
    pauses, now, found = Pauses(), 1_000.0, []
    for _ in range(7):
        found.append(pauses.next(now))
        now += found[-1] + STEADY_S - 1
    assert found == [3.0, 6.0, 12.0, 24.0, 48.0, 60.0, 60.0]
    assert (found[0], found[-1]) == (FIRST_S, MAX_S)


def test_a_process_that_stayed_begins_with_the_first_pause() -> None:
    pauses = Pauses()
    assert pauses.next(0.0) == pauses.next(FIRST_S + STEADY_S) == FIRST_S


def test_the_name_of_a_scorer_is_a_likely_reason() -> None:
    kafka = Kafka(client={"bootstrap.servers": "127.0.0.1:1"})
    text = "another process has claimed a partition of this one"
    assert fenced(kafka) == text
    named = kafka.model_copy(update={"group_instance_id": "scorer-1"})
    assert fenced(named) == f"{text}: does it have the same kafka.group_instance_id 'scorer-1'?"

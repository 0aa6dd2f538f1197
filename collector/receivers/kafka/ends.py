"""Asks brokers again and again where partitions end, without waiting for the answers.

A consumer that receives nothing cannot tell a quiet topic from a broker that does not answer. The
difference matters: time may pass for open traces only if no record waits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from confluent_kafka import IsolationLevel, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from pathgauge.collector.receivers.kafka.lanes import End, Lane

INTERVAL_S = 1.0
_TIMEOUT_S = 3.0
_LOOK_S = 0.3


class Ends:
    """Keeps `Lane.end` up to date. For one thread."""

    def __init__(self, settings: Mapping[str, Any], clock: Callable[[], float]) -> None:
        """`clock`: Unix time in seconds."""
        self._admin = AdminClient(dict(settings))
        self._clock = clock
        self._asked = 0.0
        self._failed: set[str] = set()
        """Topics with a partition whose leader gave no answer."""

    def refresh(self, lanes: Iterable[tuple[int, Lane]]) -> None:
        """Ask for the ends of these partitions and lanes if the last question is a while ago."""
        now = self._clock()
        if abs(now - self._asked) < INTERVAL_S:
            return
        self._asked = now
        self._admin.poll(0)  # passes on what librdkafka logs
        self._renew_leaders()
        asked = {TopicPartition(lane.topic, partition): lane for partition, lane in lanes}
        if not asked:
            return
        latest = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        question: dict[TopicPartition, OffsetSpec] = dict.fromkeys(asked, latest)
        answers = self._admin.list_offsets(
            question, isolation_level=IsolationLevel.READ_COMMITTED, request_timeout=_TIMEOUT_S
        )
        for place, future in answers.items():
            future.add_done_callback(self._answer(asked[place], now))

    def _answer(self, lane: Lane, asked: float) -> Callable[[Future[Any]], None]:
        def answered(future: Future[Any]) -> None:
            if future.exception() is None:
                lane.end = End(future.result().offset, asked)
            else:
                self._failed.add(lane.topic)

        return answered

    def _renew_leaders(self) -> None:
        """librdkafka asks the former leader of a partition for ever, unless it is told to look."""
        failed, self._failed = self._failed, set()
        for topic in failed:
            with suppress(KafkaException):
                self._admin.list_topics(topic, timeout=_LOOK_S)

"""The records of one partition number, from both topics, in the order of their times.

Spans and log records are in two topics, which Kafka delivers independently. After an outage one of
them may be read hours ahead of the other, and its times would end traces whose other half is still
unread. So a record is delivered only when nothing older can come from the other topic: its next
record is known, or its end was reached.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from confluent_kafka import Message

from pathgauge.collector.core.otlp import Reason, Signal
from pathgauge.collector.receivers.kafka.records import (
    KafkaRecord,
    RecordDecoder,
    Skip,
    SkippedError,
)

MAX_LANE_BYTES = 4 << 20
"""Values of one topic and partition that wait for delivery; beyond it, fetching pauses."""
MAX_AHEAD_S = 5.0
"""How far the time of a record may be ahead of the clock. Further ones have wrong times."""
FRESH_S = 5.0
"""How long the end of a partition counts as known."""

Deliver: TypeAlias = Callable[[KafkaRecord], bool]
"""Returns whether the record was taken; else it is offered again later."""


class End(NamedTuple):
    """What a broker reported about a partition."""

    offset: int
    """The offset of the next record that is written."""
    asked: float
    """Unix time of the question."""


class Lane:
    """One topic and partition. For the polling thread; `end` may be set by any."""

    def __init__(self, topic: str, start: int | None) -> None:
        """`start`: the first offset to read; `None` for the oldest record."""
        self.topic = topic
        self.waiting: deque[Message] = deque()
        self.size = 0
        self.fetched = start
        """The offset after the last record that was received."""
        self.at_end = False
        """Whether nothing was left to fetch when the last record was received."""
        self.paused = False
        self.end: End | None = None

    def add(self, message: Message) -> None:
        """Add a record. One that was received before is ignored."""
        offset = message.offset() or 0
        if self.fetched is None or offset >= self.fetched:
            self.waiting.append(message)
            self.size += len(message)
            self.fetched = offset + 1
            self.at_end = False

    def ended(self, offset: int) -> None:
        """The end was reached. The last offsets may belong to no record, after a transaction."""
        self.fetched = max(offset, self.fetched or 0)
        self.at_end = True

    def pop(self) -> None:
        """Remove the first record, which was delivered or skipped."""
        self.size -= len(self.waiting.popleft())

    @property
    def next(self) -> int | None:
        """The offset to continue from; `None` if it is not known yet."""
        return self.waiting[0].offset() if self.waiting else self.fetched

    def is_read(self, now: float) -> bool:
        """Whether everything was received that the topic had a moment ago."""
        end = self.end
        return (
            end is not None
            and self.fetched is not None
            and self.fetched >= end.offset
            and abs(now - end.asked) <= FRESH_S
        )


class Merged:
    """Both lanes of a partition, as one sequence of decoded records."""

    def __init__(
        self,
        lanes: Sequence[Lane],
        decoder: RecordDecoder,
        skipped: Callable[[Skip, int], None],
        rejected: Callable[[Signal, Mapping[Reason, int]], None],
    ) -> None:
        """`skipped` and `rejected` count what is not delivered."""
        self.lanes = lanes
        self.at = 0.0
        """The time of the last record that was delivered; it never goes back."""
        self.blocked = False
        """Whether the receiver had no capacity for the next record."""
        self._decoder = decoder
        self._skipped = skipped
        self._rejected = rejected
        self._decoded: tuple[Message, KafkaRecord] | None = None

    def deliver(self, deliver: Deliver, now: float) -> None:
        """Deliver records until one is not taken, or until an older one may still come. `now`: Unix
        time in seconds.
        """
        self.blocked = False
        for lane in self._in_order():
            record = self._record(lane)
            if record is not None:
                at = max(self.at, min(record.at, now + MAX_AHEAD_S))
                if not deliver(record._replace(at=at)):
                    self.blocked = True
                    return
                self.at = at
            self._decoded = None
            lane.pop()

    def is_at_end(self, now: float) -> bool:
        """Whether everything that the topics had a moment ago was delivered."""
        return all(not lane.waiting and lane.is_read(now) for lane in self.lanes)

    def _in_order(self) -> Iterator[Lane]:
        while all(lane.waiting or lane.at_end for lane in self.lanes):
            found = [lane for lane in self.lanes if lane.waiting]
            if not found:
                return
            yield min(found, key=lambda lane: lane.waiting[0].timestamp()[1])

    def _record(self, lane: Lane) -> KafkaRecord | None:
        """The first record of a lane, decoded once; `None` if it has nothing to deliver."""
        message = lane.waiting[0]
        if self._decoded is not None and self._decoded[0] is message:
            return self._decoded[1]
        try:
            record = self._decoder.decode(message)
        except SkippedError as error:
            self._skipped(error.reason, 1)
            return None
        if record.rejected:
            self._rejected(record.batch.origin.signal, record.rejected)
        self._decoded = message, record
        return None if record.is_empty else record

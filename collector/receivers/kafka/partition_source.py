"""One partition as its scorer sees it, and what a scorer has to offer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

from pathgauge.collector.receivers.kafka.lanes import Lane, Merged
from pathgauge.collector.receivers.kafka.records import KafkaRecord
from pathgauge.collector.receivers.kafka.rereading import Place, Rereader


class Position(NamedTuple):
    """Where a scorer continues."""

    offsets: Mapping[str, int]
    """The first offset to read, by topic. A topic without one is read from its oldest record."""
    at: float = 0.0
    """The time that was reached. Records with an older one get this one."""


class Listener(Protocol):
    """What is done with partitions. The polling thread calls it; all calls together may take
    `MAX_POLL_INTERVAL_S`. An exception ends the consumer.
    """

    def assigned(self, source: PartitionSource) -> Position:
        """A partition is about to be read, by this process alone."""
        ...

    def deliver(self, partition: int, record: KafkaRecord) -> bool:
        """Take a record. `False`: there is no capacity, the record is offered again soon."""
        ...

    def revoked(self, partition: int) -> None:
        """Finish and commit: after this call another process gets the partition."""
        ...

    def lost(self, partition: int) -> None:
        """Drop everything: another process may have the partition already."""
        ...


class PartitionSource:
    """The records of a partition of both topics."""

    def __init__(
        self, partition: int, merged: Merged, rereader: Rereader, listener: Listener
    ) -> None:
        self.partition = partition
        self.merged = merged
        self._rereader = rereader
        self._listener = listener

    def at_end(self, now: float) -> bool:
        """Whether every record was delivered that the topics had a moment ago, so that time may
        pass for open traces. `False` while no broker answers. `now`: Unix time in seconds. For any
        thread.
        """
        return self.merged.is_at_end(now)

    def offsets(self) -> Mapping[str, int]:
        """The offsets after the records that were delivered or skipped. For the polling thread."""
        return {lane.topic: lane.next for lane in self.merged.lanes if lane.next is not None}

    def lag(self) -> int:
        """Number of records that wait, as far as it is known. For any thread."""
        return sum(
            len(lane.waiting) + max(0, lane.end.offset - (lane.fetched or 0))
            for lane in self.merged.lanes
            if lane.end is not None
        )

    def fetch(self, places: Sequence[Place]) -> Iterator[KafkaRecord]:
        """Read records again, by topic and offset, in this order; those that are gone are left out.
        Their times are those of the topic. Waits while no broker answers. For any thread.
        """
        return self._rereader.fetch(self.partition, places)

    def deliver(self, record: KafkaRecord) -> bool:
        """Offer a record to the scorer."""
        return self._listener.deliver(self.partition, record)

    def lane(self, topic: str | None) -> Lane | None:
        """The lane of a topic."""
        return next((lane for lane in self.merged.lanes if lane.topic == topic), None)

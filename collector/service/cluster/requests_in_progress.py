"""The requests of a partition that are needed, or not committed yet: where each is in Kafka.

Rows number the requests in the order in which this process reads them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from pathgauge.collector.receivers.kafka.records import KafkaRecord
from pathgauge.collector.store.postgres.heads import Head


class RequestsInProgress:
    """Not thread-safe: the caller guards what changes it."""

    def __init__(self) -> None:
        self._heads: dict[int, Head] = {}
        self._committed = 0
        self.offsets: Mapping[str, int] = {}
        """Behind the last request that was committed, by topic."""

    def __len__(self) -> int:
        return len(self._heads)

    def restore(self, row: int, heads: Iterable[Head], offsets: Mapping[str, int]) -> None:
        """Continue behind the commit of `row`."""
        self._committed = row
        self._heads = {head.row: head for head in heads}
        self.offsets = dict(offsets)

    def add(self, row: int, record: KafkaRecord, at: float) -> None:
        """A request is delivered as `row` at the time `at`."""
        batch = record.batch
        self._heads[row] = Head(
            row,
            record.topic,
            record.offset,
            at,
            record.at,
            batch.origin.tenant,
            sorted({one.trace_id for one in batch.spans or batch.logs}),
        )

    def get(self, row: int) -> Head | None:
        """The request `row`, while it is needed; for any thread."""
        return self._heads.get(row)

    def uncommitted(self, row: int) -> Sequence[Head]:
        """The requests up to `row` that are to be committed."""
        return list(self._in(range(self._committed + 1, row + 1)))

    def committed(self, row: int, offsets: Mapping[str, int], released: Iterable[int]) -> None:
        """The requests up to `row` are durable, without those that were released."""
        self._committed = row
        self.offsets = dict(offsets)
        for one in released:
            self._heads.pop(one, None)

    def next_at(self, after: int, last: int) -> float:
        """The time of the first request behind the row `after`, up to the row `last`."""
        return next((head.at for head in self._in(range(after + 1, last + 1))), math.inf)

    def _in(self, rows: range) -> Iterator[Head]:
        return (self._heads[row] for row in rows if row in self._heads)

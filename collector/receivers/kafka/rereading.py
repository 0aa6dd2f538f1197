"""Reads single records again, by their offsets: the spans of open traces stay in Kafka.

A consumer of its own does this, so that the sequence of new records is not disturbed. Records next
to a wanted one are received anyway, and are kept for a while, because traces that arrived together
are read together.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import structlog
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from pathgauge.collector.receivers.kafka import LogError
from pathgauge.collector.receivers.kafka.records import KafkaRecord, RecordDecoder, SkippedError

_log = structlog.get_logger(__name__)

MAX_CACHE_BYTES = 16 << 20
"""Size of the values that are kept."""
_NEAR = 500
"""Records up to the wanted one that are read rather than jumped over."""
_AT_ONCE = 500
_POLL_S = 0.2
_WATERMARK_S = 5.0
_ATTEMPTS_AT_END = 10
"""After a change of the leader, the end of a partition may seem lower for a moment."""
_OVERHEAD = 200
"""Bytes of a cached record besides its value."""

Place: TypeAlias = tuple[str, int]
"""Topic and offset."""


class _Key(NamedTuple):
    topic: str
    partition: int
    offset: int

    @property
    def assignment(self) -> list[TopicPartition]:
        return [TopicPartition(*self)]


class _Cached(NamedTuple):
    found: Message | KafkaRecord | None
    """`None`: the record is gone or cannot be read."""
    size: int


class Rereader:
    """For any threads; they take turns."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        decoder: RecordDecoder,
        gone: Callable[[int], None],
    ) -> None:
        """`gone` counts wanted records that the topic no longer has."""
        self._consumer = Consumer(dict(settings))
        self._decoder = decoder
        self._gone = gone
        self._cache: OrderedDict[_Key, _Cached] = OrderedDict()
        self._cached_bytes = 0
        self._next: _Key | None = None
        """What the consumer reads next; `None` if it reads nothing."""
        self._turn = threading.Lock()
        self._closed = False

    def fetch(self, partition: int, places: Sequence[Place]) -> Iterator[KafkaRecord]:
        """The records of these topics and offsets, in this order, without those that are gone or
        cannot be read. Waits while no broker answers. After `close` raises `LogError`: half of a
        trace must not be taken for all of it.
        """
        for topic, offset in places:
            record = None
            with self._turn:
                if not self._closed:  # a closed consumer raises RuntimeError
                    record = self._record(_Key(topic, partition, offset))
            if record is None and self._closed:
                raise LogError(f"partition {partition}: its requests cannot be read any more")
            if record is not None:
                yield record

    def close(self) -> None:
        """End waiting calls of `fetch`, and close the connections."""
        self._closed = True
        with self._turn:
            self._cache.clear()
            self._consumer.close()

    def _record(self, key: _Key) -> KafkaRecord | None:
        cached = self._cache.get(key)
        found = cached.found if cached is not None else self._read(key)
        if not isinstance(found, Message):
            return found
        try:
            record = self._decoder.decode(found)
        except SkippedError:
            record = None
        if (kept := self._cache.get(key)) is not None:
            self._cache[key] = kept._replace(found=record)
        return record

    def _read(self, key: _Key) -> Message | None:
        """Read a record, and keep those that arrive with it."""
        for attempt in range(_ATTEMPTS_AT_END):
            found = self._look(key)
            if found is not None or self._closed:
                return found
            if self._next is not None and attempt:  # a later record came, after a new assignment
                break
            self._next = None
            time.sleep(attempt and _POLL_S)
        _log.error("a record of an open trace is no longer in the topic", **key._asdict())
        self._gone(1)
        self._store(key, None)
        return None

    def _look(self, key: _Key) -> Message | None:
        """Receive until the record, a later one or the end was reached."""
        self._seek(key)
        found = None
        while not self._closed and self._next is not None and self._next.offset <= key.offset:
            for message in self._received():
                self._keep(message)
                if message.error() is None and _key(message) == key:
                    found = message
        return found

    def _seek(self, key: _Key) -> None:
        near = self._next
        if near is not None and near[:2] == key[:2] and 0 <= key.offset - near.offset <= _NEAR:
            return
        self._consumer.assign(key.assignment)
        self._next = key

    def _received(self) -> list[Message]:
        first = self._consumer.poll(_POLL_S)
        return [] if first is None else [first, *self._consumer.consume(_AT_ONCE, 0)]

    def _keep(self, message: Message) -> None:
        key, error = _key(message), message.error()
        if self._next is None or key[:2] != self._next[:2]:
            return  # of an assignment before
        if error is None:
            self._store(key, message)
            self._next = key._replace(offset=key.offset + 1)
        elif error.code() == KafkaError._PARTITION_EOF:
            self._next = None
        elif error.code() == KafkaError._AUTO_OFFSET_RESET:
            self._next = self._after_deleted(self._next)

    def _after_deleted(self, key: _Key) -> _Key | None:
        """What to read next when the topic does not have an offset; `None` if it is at the end."""
        try:
            oldest, end = self._consumer.get_watermark_offsets(
                TopicPartition(*key[:2]), timeout=_WATERMARK_S
            )
        except KafkaException:
            oldest, end = 0, key.offset + 1  # asks again
        if max(oldest, key.offset) >= end:
            return None
        following = key._replace(offset=max(oldest, key.offset))
        self._consumer.assign(following.assignment)
        return following

    def _store(self, key: _Key, message: Message | None) -> None:
        if key in self._cache:
            return
        size = _OVERHEAD + (len(message.value() or b"") if message is not None else 0)
        self._cache[key] = _Cached(message, size)
        self._cached_bytes += size
        while self._cached_bytes > MAX_CACHE_BYTES and len(self._cache) > 1:
            _, oldest = self._cache.popitem(last=False)
            self._cached_bytes -= oldest.size


def _key(message: Message) -> _Key:
    return _Key(message.topic() or "", message.partition() or 0, message.offset() or 0)

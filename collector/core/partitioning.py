"""Assigns traces and conversations to partitions, so that several scorers can share the work.

The hash is FNV-1a of the hexadecimal id, as in the partitioner `fnv1a` of librdkafka and in the
Kafka exporter of the OpenTelemetry Collector. So spans of one trace meet in one partition, whoever
has written them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pathgauge.collector.core.evaluations.conversation import ConversationKey

_OFFSET, _PRIME, _MASK = 0x811C9DC5, 0x01000193, 0xFFFFFFFF
_SIGN = 0x80000000
_CACHED, _MAX_CACHED_LENGTH = 65_536, 128
"""Senders choose the ids of conversations, and long ones would fill the memory."""


@dataclass(frozen=True, slots=True)
class Partition:
    """One of `total` partitions, from 0."""

    number: int = 0
    total: int = 1


WHOLE = Partition()
"""The partition of a process that scores everything."""


def partition_of_trace(trace_id: str, partitions: int) -> int:
    """The partition of a trace, from 0; `trace_id` in hexadecimal."""
    return key_hash(trace_id) % partitions


def partition_of_conversation(key: ConversationKey, partitions: int) -> int:
    """The partition of a conversation, from 0."""
    return key_hash(conversation_id(key)) % partitions


def partition_of_session(tenant: str, conversation: str, partitions: int) -> int:
    """The partition of the sessions of a conversation, from 0, whatever their scenario."""
    return partition_of_conversation((tenant, conversation, ""), partitions)


def conversation_id(key: ConversationKey) -> str:
    """The tenant, the conversation id and the scenario id as one text."""
    return "\x1f".join(key)


def key_hash(key: str) -> int:
    """FNV-1a with 32 bits, without its sign: the clients of Kafka take it as a signed number."""
    return _cached_hash(key) if len(key) <= _MAX_CACHED_LENGTH else _hash(key)


def _hash(key: str) -> int:
    value = _OFFSET
    for byte in key.encode("utf-8", "surrogatepass"):
        value = (value ^ byte) * _PRIME & _MASK
    return value if value < _SIGN else (1 << 32) - value


_cached_hash = lru_cache(_CACHED)(_hash)

"""What shares the memory of the collector: the bounds that fill up and stay full.

Each has a default, a minimum with which the collector is still useful, and a cost: the memory that
a byte of it takes. Requests that are received at the moment are not listed. The guard refuses them
while there is no memory for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pathgauge.collector.config import Config
from pathgauge.collector.config.section import Section
from pathgauge.collector.core.evaluations.conversations import MAX_BYTES as MAX_CONVERSATION_BYTES
from pathgauge.collector.judging.queue import MAX_QUEUE_BYTES as MAX_JUDGE_QUEUE_BYTES
from pathgauge.collector.receivers.export import PROTOBUF_COST
from pathgauge.collector.store.retention import Retention
from pathgauge.collector.store.sqlite.reader import MAX_CACHE_BYTES
from pathgauge.scorers.judges.model_client.cache import MAX_BYTES as MAX_JUDGE_CACHE_BYTES

MiB = 1 << 20

MAX_QUEUE_BYTES = 64 * MiB
"""Requests that wait in memory for the pipeline, with a store in memory."""
MAX_QUEUE_BYTES_WITH_JOURNAL = 16 * MiB
"""The same with a journal, where the queue only saves reading the journal."""

OPEN = "assembly.max_open_bytes"
RETAINED = "assembly.max_retained_bytes"
TRACE = "assembly.max_trace_bytes"
REQUEST = "decoding of one request"
CONVERSATIONS = "open conversations"
QUEUE = "queue of the pipeline"
CACHE = "cache of the journal"
JUDGE_QUEUE = "queue of the judges"
JUDGE_CACHE = "cache of the judges"

_PARSING_BYTES = 66 * MiB
"""What the pipeline takes briefly for the longest text in the form of Python's `repr`."""
_TRACE_COST = 3
"""Memory that a trace takes while it is read, beside its spans, for each of their bytes."""
_SERIES_BYTES = 18 * 1024
"""Memory of a label set with its window."""
_PROTOCOLS = "receivers.otlp.protocols"


@dataclass(frozen=True, slots=True)
class Part:
    """A bound, in bytes."""

    name: str
    default: int
    lowest: int
    cost: float = 1.0
    configured: Mapping[str, int] = field(default_factory=dict)
    """The values of keys in the configuration."""
    factor: int = 1
    """What a configured value of 1 needs."""
    may_be_more: bool = False
    """Whether the bound may be more than what is configured."""

    @property
    def least(self) -> int:
        """The lowest possible value."""
        needed = self.factor * max(self.configured.values(), default=0)
        if self.configured and not self.may_be_more:
            return needed
        return max(self.lowest, needed)

    @property
    def most(self) -> int:
        """The value with enough memory."""
        if self.configured and not self.may_be_more:
            return self.least
        return max(self.default, self.least)


def parts(config: Config) -> Iterable[Part]:
    """All bounds that share the memory."""
    open_, retained, trace = (_configured(config.assembly, key) for key in (OPEN, RETAINED, TRACE))
    # A trace must fit into the memory of all open traces.
    yield Part(OPEN, 192 * MiB, max(8 * MiB, trace.get(TRACE, 0)), configured=open_)
    yield Part(RETAINED, 32 * MiB, 2 * MiB, configured=retained)
    yield Part(TRACE, 16 * MiB, min(4 * MiB, open_.get(OPEN, 4 * MiB)), 0, trace)
    yield Part(REQUEST, 240 * MiB, 16 * MiB, 1, _requests(config), PROTOBUF_COST, may_be_more=True)
    yield Part(CONVERSATIONS, _stored(config, MAX_CONVERSATION_BYTES), 2 * MiB)
    # Requests in the queue and the cache are decoded, and take three times as much.
    if config.store is None:
        yield Part(QUEUE, MAX_QUEUE_BYTES, 1 * MiB, 3)
    else:
        yield Part(QUEUE, MAX_QUEUE_BYTES_WITH_JOURNAL, 1 * MiB, 3)
        yield Part(CACHE, MAX_CACHE_BYTES, 1 * MiB, 3)
    if config.judge is not None:
        yield Part(JUDGE_QUEUE, _stored(config, MAX_JUDGE_QUEUE_BYTES), 4 * MiB)
        yield Part(JUDGE_CACHE, MAX_JUDGE_CACHE_BYTES, 2 * MiB)


def needed_bytes(config: Config, shares: Iterable[Part], sizes: Mapping[str, int]) -> float:
    """The memory that parts of these sizes need together."""
    exporter = config.exporters.prometheus
    tenants = len(config.auth.tenants) if config.auth is not None else 1
    series = min(exporter.max_series * tenants, exporter.max_series_total)
    filled = sum(sizes[part.name] * part.cost for part in shares)
    return filled + reading_bytes(sizes) + series * _SERIES_BYTES


def reading_bytes(sizes: Mapping[str, int]) -> int:
    """What the pipeline needs briefly, to read a trace or to decode a request of the journal. The
    guard cannot refuse that.
    """
    return max(_PARSING_BYTES + _TRACE_COST * sizes[TRACE], sizes[REQUEST])


def _stored(config: Config, default: int) -> int:
    """The bound of a part that the store holds, too."""
    if config.store is None:
        return default
    return min(default, Retention(config.store.max_bytes).max_open_bytes)


def _configured(section: Section, key: str) -> dict[str, int]:
    name = key.rpartition(".")[2]
    return {key: getattr(section, name)} if name in section.model_fields_set else {}


def _requests(config: Config) -> dict[str, int]:
    protocols = config.receivers.otlp.protocols
    found: dict[str, int] = {}
    for protocol, section in (("grpc", protocols.grpc), ("http", protocols.http)):
        if section is not None:
            found |= _configured(section, f"{_PROTOCOLS}.{protocol}.max_request_bytes")
    return found

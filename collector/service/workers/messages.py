"""What the parent and its scorer processes tell each other.

Messages to a scorer come first, then those from a scorer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from prometheus_client.core import Metric

from pathgauge.collector.config import Config
from pathgauge.collector.config.active import KnownReferences
from pathgauge.collector.core.otlp import Encoding
from pathgauge.collector.core.otlp.batch import Origin
from pathgauge.collector.core.stored_series import Row
from pathgauge.collector.core.traces import TraceKey
from pathgauge.collector.sinks.prometheus.store_metrics import CollectorUsage
from pathgauge.collector.store import Selection, Unread
from pathgauge.collector.store.outbox import Acknowledged, Outgoing


@dataclass(frozen=True, slots=True)
class Start:
    """The first message: what the scorer is."""

    config: Config
    name: str
    """Of its store among all that the parent has ever had."""
    folder: Path
    """Of its store."""
    number: int
    total: int
    published: int
    """The last publication that the gauge has read."""
    references: KnownReferences | None = None
    """Those that are active, if the files have changed since."""


@dataclass(frozen=True, slots=True)
class Append:
    """A call: make a part of a request durable. The answer is whether it is."""

    origin: Origin
    sent_as: Encoding | None
    body: bytes


@dataclass(frozen=True, slots=True)
class Relay:
    """A call: make turns of another scorer durable. The answer is whether they are."""

    scorer: str
    turns: Sequence[Outgoing]


@dataclass(frozen=True, slots=True)
class Purge:
    """A call: remove what is selected, and these traces, which other stores have selected."""

    selection: Selection
    traces: frozenset[TraceKey] = frozenset()


@dataclass(frozen=True, slots=True)
class Hold:
    """A call: the traces of which anything is stored."""


@dataclass(frozen=True, slots=True)
class Explain:
    """A call: what the oldest open traces wait for."""

    max_traces: int


@dataclass(frozen=True, slots=True)
class Configure:
    """A call: apply other criteria and references."""

    config: Config


@dataclass(frozen=True, slots=True)
class Learn:
    """What other scorers have learned about the telemetry of agent versions."""

    records: Sequence[Row]


@dataclass(frozen=True, slots=True)
class Flush:
    """A call: commit, and answer when the parent has acknowledged everything."""


@dataclass(frozen=True, slots=True)
class Stop:
    """A call: process what is queued, and close the store. The answer comes when the parent has
    acknowledged everything, or after `timeout` seconds.
    """

    timeout: float


@dataclass(frozen=True, slots=True)
class Received:
    """What the parent has stored or passed on."""

    acknowledged: Acknowledged


class QueueLevel(NamedTuple):
    """How full a queue is."""

    size: float
    capacity: float


@dataclass(frozen=True, slots=True)
class Status:
    """How a scorer is, once a second."""

    usage: CollectorUsage
    queues: Mapping[str, QueueLevel]
    unready: Sequence[str]
    stuck: Sequence[str]
    unread: Unread
    metrics: Sequence[Metric]
    """What only this process knows."""


@dataclass(frozen=True, slots=True)
class Published:
    """Publications, in order."""

    publications: Sequence[Outgoing]


@dataclass(frozen=True, slots=True)
class Forwarded:
    """Turns for other scorers, in order."""

    turns: Sequence[Outgoing]

"""Scorers and gauges of a PostgreSQL database, and what they write in tests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg

from pathgauge.collector.core.pipeline_events import Changes, PublishedEvent
from pathgauge.collector.receivers.kafka.records import KafkaRecord
from pathgauge.collector.receivers.kafka.rereading import Place
from pathgauge.collector.store import Progress
from pathgauge.collector.store.evidence.table import EvidencePolicy
from pathgauge.collector.store.postgres.gauge import GaugeDatabase
from pathgauge.collector.store.postgres.heads import Head
from pathgauge.collector.store.postgres.partition import PartitionDatabase
from pathgauge.collector.store.postgres.sharing import SharedCleaning
from pathgauge.collector.store.postgres.steps import Step
from support.evaluated import WALL


class NoRecords:
    """A partition that nothing was written to."""

    def at_end(self, now: float) -> bool:
        return True

    def fetch(self, places: Sequence[Place]) -> Iterator[KafkaRecord]:
        return iter(())


def head(row: int, *traces: str, tenant: str = "") -> Head:
    """A request that arrived at running time `row`."""
    return Head(row, "otlp_spans", 100 + row, float(row), WALL + row, tenant, traces)


def step(
    row: int,
    events: Sequence[PublishedEvent] = (),
    *,
    changes: Changes | None = None,
    heads: Sequence[Head] = (),
    wall: float = WALL,
    publication: bytes | None = None,
    consumed: Sequence[int] = (),
) -> Step:
    """A commit after the request `row`, which arrived at running time `row`."""
    progress = Progress(
        row, float(row), wall, events, changes or Changes(), publication=publication
    )
    return Step(progress, {"otlp_spans": 101 + row}, heads, consumed=consumed)


@contextmanager
def scorer(
    address: str, partition: int = 0, evidence: EvidencePolicy | None = None
) -> Iterator[PartitionDatabase]:
    """A scorer that has claimed a partition."""
    database = PartitionDatabase(address, partition, evidence)
    try:
        database.claim(f"process {os.getpid()}")
        yield database
    finally:
        database.close()


@contextmanager
def gauge(address: str, cleaning: SharedCleaning | None = None) -> Iterator[GaugeDatabase]:
    """A process that may become the gauge."""
    database = GaugeDatabase(address, cleaning or SharedCleaning())
    try:
        yield database
    finally:
        database.close()


def rows(address: str, query: LiteralString, *values: object) -> list[tuple[Any, ...]]:
    """What a query finds; `%s` stands for values."""
    with psycopg.connect(address, autocommit=True) as connection:
        cursor = connection.execute(query, values)
        return cursor.fetchall() if cursor.description else []


def cut_connections(address: str, share: float = 1.0) -> int:
    """End connections to the database at the server, all or a random share; returns how many."""
    found = rows(
        address,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < %s",
        share,
    )
    return len(found)

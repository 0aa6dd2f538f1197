"""Moves a store on disk into a cluster: `pathgauge migrate`.

Its state is first divided among as many scorers as the topics have partitions, as for `workers`.
The requests that are still needed become records of Kafka, everything else rows of PostgreSQL, in
one transaction. The store is only read after it was divided, so a migration that fails can be
repeated, once the topics are empty again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pathgauge.collector.config import Config
from pathgauge.collector.config.kafka import Kafka
from pathgauge.collector.receivers.kafka import topics
from pathgauge.collector.service.migration.requests import Producing, refuse_records
from pathgauge.collector.service.migration.rows import copy_results, copy_state, refuse_rows
from pathgauge.collector.store import StoreError
from pathgauge.collector.store.outbox import OutboxReader
from pathgauge.collector.store.postgres import partition_count
from pathgauge.collector.store.postgres.connection import PostgresConnection, connect
from pathgauge.collector.store.postgres.schema import migrate as migrate_schema
from pathgauge.collector.store.purge import mark
from pathgauge.collector.store.resharding import reshard
from pathgauge.collector.store.resharding.source import locked, opened
from pathgauge.collector.store.sqlite import files
from pathgauge.scorers.types import Invocation


@dataclass(frozen=True, slots=True)
class Migrated:
    """What was moved."""

    results: int
    requests: int
    """Requests that open traces need, or that were not processed."""


def migrate(
    folder: Path, config: Config, kafka: Kafka, conninfo: str, is_turn: Callable[[Invocation], bool]
) -> Migrated:
    """Move the store in `folder`, which no process has open, into empty topics and an empty
    database. Raises `StoreError` and `LogError`; then the database is as it was.
    """
    found = topics.check(kafka, config.assembly.max_age + config.assembly.late_ttl)
    refuse_records(kafka, found.partitions)
    scorers = reshard(folder, found.partitions, is_turn=is_turn)
    _refuse_purge((folder, *scorers))
    if OutboxReader(folder).publications(0, 1):
        raise StoreError(
            f"{folder}: found results that are not published, expected a store whose collector was"
            " stopped in order: start and stop it once, and migrate again"
        )
    try:
        with closing(connect(conninfo, {"statement_timeout": "0"})) as database:
            migrate_schema(database)
            refuse_rows(database)
            with database.transaction():
                names = (kafka.traces_topic, kafka.logs_topic)
                counted = partition_count.PartitionCount(found.partitions, names)
                partition_count.write(database, counted)
                return _move(folder, scorers, database, Producing(kafka, found.max_message_bytes))
    except psycopg.Error as error:
        raise StoreError(f"postgres: nothing was moved: {error}") from error


def _refuse_purge(stores: Sequence[Path]) -> None:
    """What is to be removed must not be in the cluster, where no purge would go on."""
    for store in stores:
        with closing(files.connect_reader(store)) as reader:
            if mark.read(reader) is not None:
                raise StoreError(
                    f"{store}: found a purge that is not finished, expected none: start and stop"
                    " the collector once, and migrate again"
                )


def _move(
    folder: Path, scorers: Sequence[Path], database: PostgresConnection, producing: Producing
) -> Migrated:
    with ExitStack() as stack:
        stack.enter_context(locked(folder))
        main = stack.enter_context(opened(folder, ""))
        results = copy_results(main.connection, database)
        requests = 0
        for partition, scorer in enumerate(scorers):
            stack.enter_context(locked(scorer))
            source = stack.enter_context(opened(scorer, scorer.name))
            shift = time.time() - source.at  # in a cluster, running time is Unix time
            records = producing.produce(source.connection, partition, source.row, shift)
            copy_state(source, database, partition, records, shift)
            requests += records.number
    return Migrated(results, requests)

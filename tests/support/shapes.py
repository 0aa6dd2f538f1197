"""One process, several scorers on one machine, and a cluster: starts each with the same
configuration, and reads what it has stored.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import psycopg
import pytest

from pathgauge.collector.core.evidence.evidence import to_json
from pathgauge.collector.store.evidence.bodies import unpacked
from support import kafka, postgres
from support.running import Collector

SHAPES = ("one process", "workers", "cluster")
EACH_SHAPE = [pytest.param(name, marks=pytest.mark.long_table) for name in SHAPES]
"""As parameters of a test."""
PARTITIONS = 5
SETTLED_S = 4.0
"""What is on its way between two scorers takes two commits."""
RESULTS = (
    "SELECT tenant, trace_id, span_id, agent, scenario, verdict, category, signature, body"
    " FROM results WHERE withdrawn = 0 ORDER BY revision"
)
EVIDENCE = "SELECT tenant, trace_id, span_id, body FROM evidence"
TURNS = "SELECT conversation, scenario, trace_id, span_id, body FROM turns"
CHECKSUMS = "SELECT trace_id, crc FROM results UNION ALL SELECT trace_id, crc FROM turns"
READ = (
    "SELECT coalesce(sum(read::bigint), 0)"
    " FROM partitions CROSS JOIN LATERAL jsonb_each_text(offsets) AS topic (name, read)"
)
"""How many records of Kafka the scorers have processed and committed."""
WAITING = (
    "SELECT (SELECT count(*) FROM forwarded) + (SELECT count(*) FROM awaited)"
    """ + (SELECT count(*) FROM turns WHERE body LIKE '%"held":true%')"""
)
PUBLICATIONS = "SELECT count(*) FROM publications"


@dataclass(frozen=True)
class Stored:
    """What a shape has found, without what depends on time and on the order of arrival."""

    results: dict[tuple[str, ...], Any]
    evidence: dict[tuple[str, ...], Any]
    turns: dict[tuple[str, ...], Any]


@dataclass(frozen=True)
class Shape:
    """One that runs."""

    receiver: Collector
    gauge: Collector
    scorers: Sequence[Collector]
    select: Callable[[str], Sequence[Sequence[Any]]]
    """The rows of a statement, from all databases."""
    unread: Callable[[], float]
    """Number of acknowledged requests that no scorer has processed."""

    def is_settled(self) -> bool:
        """Whether nothing is open, queued or on its way."""
        if self.unread() or any(one.value("pathgauge_traces_open") for one in self.scorers):
            return False
        return not any(sum(row) for row in self.select(WAITING)) and not self._unpublished()

    def _unpublished(self) -> float:
        """On one machine, a scorer deletes what was published with its next commit, which comes
        after 30 s if nothing happens. So the parent is asked.
        """
        if self.scorers[0] is self.gauge:
            return self.gauge.value("pathgauge_publications_unread")
        return sum(sum(row) for row in self.select(PUBLICATIONS))

    def partitions(self) -> dict[int, Collector]:
        """The scorer of each partition of a cluster, as far as there is one."""
        return {
            int(number): scorer
            for scorer in self.scorers
            if scorer.process.poll() is None
            for (number,) in scorer.series("pathgauge_partition_lag_records", "partition")
        }

    def is_shared(self) -> bool:
        """Whether each partition of a cluster has a scorer, and each scorer a partition. Until then
        partitions move, and what a process counts of them ends with it.
        """
        if self.scorers[0] is self.gauge:
            return True
        found = self.partitions()
        owners = {id(one) for one in found.values()}
        return len(found) == PARTITIONS and len(owners) == len(self.scorers)

    def settles(self, patience: float) -> bool:
        """Wait until nothing is on its way, and no result has changed for a while."""
        ends = time.monotonic() + patience
        seen, since = self.checksums(), time.monotonic()
        while time.monotonic() < min(ends, since + SETTLED_S):
            time.sleep(1.0)
            if not self.is_settled() or self.checksums() != seen:
                seen, since = self.checksums(), time.monotonic()
        return time.monotonic() < ends

    def checksums(self) -> list[Sequence[Any]]:
        """What changes when results or turns change."""
        return [*self.select(CHECKSUMS)]

    def stored(self) -> Stored:
        """The newest results."""
        return Stored(
            {tuple(row[:3]): (*row[3:8], _result(row[8])) for row in self.select(RESULTS)},
            {tuple(row[:3]): _evidence(row[3]) for row in self.select(EVIDENCE)},
            {tuple(row[:4]): _turn(row[4]) for row in self.select(TURNS)},
        )


class Servers:
    """A broker and a database for several clusters, which take as long to start as a cluster.
    Whoever enters this stops them at the end.
    """

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._running: tuple[kafka.Broker, postgres.Server] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._running = None
        self._stack.close()

    def running(self) -> tuple[kafka.Broker, postgres.Server]:
        """Start them if no test has."""
        if self._running is None:
            broker = self._stack.enter_context(kafka.running_broker())
            self._running = broker, self._stack.enter_context(postgres.server())
        return self._running


SERVERS = Servers()


@contextmanager
def started(
    name: str, folder: Path, settings: Mapping[str, Any], scorers: int = 2
) -> Iterator[Shape]:
    """One of `SHAPES`, in a new folder; a cluster has topics and a database of its own on
    `SERVERS`.
    """
    if name != "cluster":
        with on_one_machine(folder, scorers if name == "workers" else 1, settings) as shape:
            yield shape
        return
    with cluster(folder, *SERVERS.running(), settings, scorers) as shape:
        yield shape


@contextmanager
def on_one_machine(folder: Path, workers: int, settings: Mapping[str, Any]) -> Iterator[Shape]:
    """One process, or a parent with scorers."""
    folder.mkdir()
    with Collector(folder, **settings, store={}, workers=workers) as running:

        def select(statement: str) -> Sequence[Sequence[Any]]:
            files = sorted((folder / "pathgauge-data").rglob("pathgauge.db"))
            return [row for file in files for row in _rows(file, statement)]

        def unread() -> float:
            return running.value("pathgauge_backlog_requests")

        yield Shape(running, running, [running], select, unread)


@contextmanager
def cluster(
    folder: Path,
    broker: kafka.Broker,
    database: postgres.Server,
    settings: Mapping[str, Any],
    scorers: int = 2,
) -> Iterator[Shape]:
    """A gateway, scorers and a gauge."""
    topics = [broker.topic(partitions=PARTITIONS) for _ in range(2)]
    address = database.database()
    shared = {
        **settings,
        "store": {},
        "kafka": {
            "client": dict(broker.client()),
            "traces_topic": topics[0],
            "logs_topic": topics[1],
            "group": topics[0],  # members that were killed would hold up the next cluster
        },
        "postgres": {"conninfo": address},
    }
    with ExitStack() as stack:

        def start(name: str, role: str) -> Collector:
            (folder / name).mkdir(parents=True)
            running = Collector(folder / name, (), ("--role", role), **shared)
            return stack.enter_context(running)

        gauge, gateway = start("gauge", "gauge"), start("gateway", "gateway")
        several = [start(f"scorer{number}", "scorer") for number in range(scorers)]
        connection = stack.enter_context(psycopg.connect(address, autocommit=True))

        def select(statement: str) -> Sequence[Sequence[Any]]:
            return connection.execute(statement).fetchall()

        def unread() -> float:
            [[read]] = select(READ)
            return sum(map(broker.written, topics)) - int(read)

        yield Shape(gateway, gauge, several, select, unread)


def _rows(file: Path, statement: str) -> Sequence[Sequence[Any]]:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        return connection.execute(statement).fetchall()


def _result(body: str) -> Any:
    return _without(json.loads(body), "revision", "closed_by")


def _evidence(body: bytes) -> Any:
    return _without(to_json(unpacked(body)), "revision", "closed_by")


def _turn(body: str) -> Any:
    return _without(json.loads(body), "revision", "closed_by", "at")


def _without(found: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in names}

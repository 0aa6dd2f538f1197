"""What a span costs in each shape of deployment, in one run: one process, `workers: 2`, and a
cluster of one gateway, one scorer and one gauge over Kafka and PostgreSQL.

The load is the same and so low that every shape scores it as it comes. CPU is user and system time
of all processes of pathgauge, without what they use when nothing arrives, which is shown beside it.
The broker and the database run beside them and are not counted.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
import pytest
import yaml

from benchmarks.servers import (
    CONFIG,
    LONG,
    PATHGAUGE,
    REFERENCE,
    SCORED,
    SECONDS,
    STALLED_S,
    counter,
    cpu_s,
    load,
    ports,
    process,
    resident,
)
from pathgauge.collector.store.postgres.sharing import RESULT_BYTES
from support import kafka, postgres

pytestmark = pytest.mark.slow

RATE = 2_500
"""Spans a second, so that two cores suffice for everything that runs here."""
MAX_RATIO = 1.5
"""CPU of all roles together beside one process. Measured: 1.1 to 1.4, and up to 1.54 while others
use the machine.
"""
MAX_ROUNDS = 3
PARTITIONS = 4
COUNTED_S = 2.0
SCRAPE_S = 1.0
"""How often the test looks at `/metrics`, which takes as long as scoring three invocations."""
_COUNTED = {"results": f"octet_length(body) + {RESULT_BYTES}", "evidence": "size"}
"""What of a row counts for `max_bytes`, by table."""


@dataclass(frozen=True)
class Shape:
    """What one shape did under load."""

    spans: float
    evaluations: float
    cpu_s: Mapping[str, float]
    """By role, without what it uses when nothing arrives."""
    idle_per_s: Mapping[str, float]
    """CPU seconds a second when nothing arrives."""
    rss_mib: Mapping[str, float]
    acked_p99_ms: float

    def us_per_span(self, role: str = "") -> float:
        """CPU of one role, or of all."""
        used = self.cpu_s[role] if role else sum(self.cpu_s.values())
        return used * 1e6 / self.spans

    def rows(self, name: str, beside: float) -> Iterator[str]:
        """The table, with the ratio to `beside`."""
        total = self.us_per_span()
        yield (
            f"{name:24}{'all':10}{total:10.1f}{total / beside:8.2f}"
            f"{sum(self.idle_per_s.values()):8.1%}"
            f"{sum(self.rss_mib.values()):10.0f}{self.acked_p99_ms:10.1f}"
        )
        for role in self.cpu_s if len(self.cpu_s) > 1 else ():
            us = self.us_per_span(role)
            rest = f"{self.idle_per_s[role]:8.1%}{self.rss_mib[role]:10.0f}"
            yield f"{'':24}{role:10}{us:10.1f}{us / beside:8.2f}{rest}"


def test_what_a_span_costs_in_each_shape(tmp_path: Path) -> None:
    """The median of up to three rounds decides, and a good first one is enough."""
    rounds: list[Mapping[str, float]] = []
    while not rounds or (LONG and len(rounds) < MAX_ROUNDS and _too_high(rounds)):
        rounds.append(_round(tmp_path / str(len(rounds))))
    assert not LONG or _too_high(rounds) == {}


def _too_high(rounds: Sequence[Mapping[str, float]]) -> Mapping[str, float]:
    """The shapes that cost too much, with the median of their ratios."""
    medians = {name: median(one[name] for one in rounds) for name in rounds[0]}
    return {name: ratio for name, ratio in medians.items() if ratio > MAX_RATIO}


def _round(folder: Path) -> Mapping[str, float]:
    """The CPU of each shape as a ratio to that of one process."""
    folder.mkdir()
    one = measured(folder / "one", {"all": ()}, {})
    workers = measured(folder / "workers", {"parent": ()}, {"workers": 2})
    shapes = {"one process": one, "workers: 2": workers}
    with kafka.running_broker() as broker, postgres.server() as server:
        topics = [broker.topic(partitions=PARTITIONS) for _ in range(2)]
        address = server.database()
        shapes["gateway, scorer, gauge"] = measured(
            folder / "cluster",
            {"gateway": ("gateway",), "scorer": ("scorer",), "gauge": ("gauge",)},
            {
                "kafka": {
                    "client": dict(broker.client()),
                    "traces_topic": topics[0],
                    "logs_topic": topics[1],
                    "group": topics[0],
                },
                "postgres": {"conninfo": address},
            },
        )
        stored = [*_database(address, shapes["gateway, scorer, gauge"].evaluations)]
    beside = one.us_per_span()
    head = f"{'':24}{'':10}{'us/span':>10}{'ratio':>8}{'idle':>8}{'RSS MiB':>10}{'p99 ms':>10}"
    rows = [row for name, shape in shapes.items() for row in shape.rows(name, beside)]
    print("\n" + "\n".join([head, *rows, *_growth(shapes["gateway, scorer, gauge"]), *stored]))
    return {name: shape.us_per_span() / beside for name, shape in shapes.items()}


def _growth(cluster: Shape) -> Iterator[str]:
    """What limits a cluster: a gateway per core, and one gauge."""
    gauge = cluster.cpu_s["gauge"] * 1e6 / cluster.evaluations
    yield (
        f"one core of a gateway: {1e6 / cluster.us_per_span('gateway'):,.0f} spans/s; of a scorer:"
        f" {1e6 / cluster.us_per_span('scorer'):,.0f} spans/s; the gauge: {gauge:.0f} us for an"
        f" evaluation, {1e6 / gauge:,.0f} evaluations/s, {1e6 / cluster.us_per_span('gauge'):,.0f}"
        " spans/s"
    )


def _database(address: str, evaluations: float) -> Iterator[str]:
    """What PostgreSQL stores and does for an evaluation. It counts its work with a delay."""
    time.sleep(COUNTED_S)
    with psycopg.connect(address, autocommit=True) as database:
        for table, counted in _COUNTED.items():
            database.execute(f"VACUUM {table}")
            found = database.execute(
                f"SELECT count(*), pg_total_relation_size('{table}'), avg({counted})::float"
                f" FROM {table}"
            )
            number, size, kept = found.fetchone() or (0, 0, 0)
            if number:
                yield (
                    f"{table}: {number} rows, {size / number:.0f} bytes each with indexes,"
                    f" {kept:.0f} of them count for max_bytes"
                )
        done = database.execute(
            "SELECT xact_commit, tup_inserted, tup_updated, tup_deleted FROM pg_stat_database"
            " WHERE datname = current_database()"
        )
        commits, *rows = done.fetchone() or (0, 0, 0, 0)
    inserted, updated, deleted = (f"{number / evaluations:.1f}" for number in rows)
    yield (
        f"for an evaluation: {inserted} rows inserted, {updated} updated, {deleted} deleted;"
        f" {commits} commits in all"
    )


def measured(
    folder: Path, roles: Mapping[str, tuple[str, ...]], configuration: Mapping[str, Any]
) -> Shape:
    """Run the processes of a shape under load until everything is scored."""
    folder.mkdir()
    (folder / "reference.yaml").write_text(REFERENCE)
    written = {**yaml.safe_load(CONFIG % "{}"), **configuration}
    file = folder / "pathgauge.yaml"
    file.write_text(json.dumps(written))
    with _running(file, roles) as (started, grpc_port, metrics_port):
        pids = started | _scorers(started)
        before = counter(metrics_port, SCORED)
        idle = _used(pids)
        time.sleep(SECONDS)
        idle_per_s = {name: (used - idle[name]) / SECONDS for name, used in _used(pids).items()}
        began_with, began = _used(pids), time.monotonic()
        sent = load(grpc_port, "mixed", RATE)
        scored, progress = 0.0, time.monotonic()
        while scored < sent["invocations"] and time.monotonic() < progress + STALLED_S:
            time.sleep(SCRAPE_S)
            last, scored = scored, counter(metrics_port, SCORED) - before
            progress = progress if scored == last else time.monotonic()
        assert scored == sent["invocations"]
        took, ended = time.monotonic() - began, _used(pids)
        return Shape(
            sent["spans"],
            scored,
            {name: ended[name] - began_with[name] - took * idle_per_s[name] for name in pids},
            idle_per_s,
            {name: resident(pid, "VmHWM") for name, pid in pids.items()},
            sent["ack_p99_ms"],
        )


@contextmanager
def _running(
    file: Path, roles: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[dict[str, int], int, int]]:
    """The processes by name, the port of the gateway, and that of the gauge."""
    names = dict(roles)
    name, words = names.popitem()
    command = [sys.executable, str(PATHGAUGE), "serve", "--config", str(file)]
    for role in words:
        command += ["--role", role]
    with process(*command) as server:
        found = ports(server)
        if not names:
            yield {name: server.pid}, *found
            return
        with _running(file, names) as (pids, grpc_port, _):
            yield {**pids, name: server.pid}, grpc_port, found[1]


def _scorers(pids: Mapping[str, int]) -> dict[str, int]:
    """The scorer processes that these processes have started."""
    found = [
        int(child)
        for pid in pids.values()
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ]
    return {f"scorer {number}": pid for number, pid in enumerate(found)}


def _used(pids: Mapping[str, int]) -> dict[str, float]:
    return {name: cpu_s(pid) for name, pid in pids.items()}

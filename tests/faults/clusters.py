"""A cluster of real processes over a real Kafka and a real PostgreSQL. Each can be killed and
started again.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from support import kafka, postgres
from support.link import Link
from support.ports import free_port
from support.running import until

from .restarted import ASSEMBLY, DURABLE, Series
from .traffic import CRITERIA
from .truth import SELECT_RESULTS, Seen, seen_rows, setup

SERVE = [sys.executable, "-c", "from pathgauge.collector.cli import app; app()", "serve"]
STARTED_S = 180.0
"""Six processes start at once."""
STOP_S = 120.0
SHOWN_LINES = 15
PARTITIONS = 4


class Member:
    """One process of the cluster."""

    def __init__(
        self,
        folder: Path,
        name: str,
        roles: Sequence[str],
        shared: dict[str, Any],
        ports: Mapping[str, int] | None = None,
    ) -> None:
        self.name = name
        self.ports = ports or {port: free_port() for port in ("grpc", "http", "metrics")}
        grpc, http, metrics = ({"endpoint": f"127.0.0.1:{port}"} for port in self.ports.values())
        self.config = folder / f"{name}.yaml"
        self.config.write_text(
            json.dumps(
                {
                    "receivers": {"otlp": {"protocols": {"grpc": grpc, "http": http}}},
                    "exporters": {"prometheus": metrics},
                    **shared,
                }
            )
        )
        self._roles = [word for role in roles for word in ("--role", role)]
        self._log = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start the process without waiting until it is ready."""
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [*SERVE, "--config", str(self.config), *self._roles], stdout=log, stderr=log
            )

    def wait(self) -> None:
        """Wait until it answers."""
        assert until(lambda: self.get("/healthz") is not None, STARTED_S), self._log.read_text()

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def kill(self) -> None:
        """End it at once."""
        self.send(signal.SIGKILL)
        assert self.process is not None
        self.process.wait()

    def stop(self) -> int:
        """End it in order; returns its exit status. Safe to call twice."""
        if self.process is None:
            return 0
        process, self.process = self.process, None
        process.terminate()
        try:
            return process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def end_of_log(self) -> str:
        """The state of the process, and the end of its log; shown when a test fails."""
        status = self.process.poll() if self.process else None
        lines = self._log.read_text().splitlines() if self._log.exists() else []
        return "\n".join([f"{self.name}: exit status {status}", *lines[-SHOWN_LINES:]])

    def get(self, path: str) -> str | None:
        """The text of a page; `None` if it does not answer, or is not ready."""
        try:
            with urllib.request.urlopen(
                f"http://127.0.0.1:{self.ports['metrics']}{path}", timeout=10
            ) as page:
                return str(page.read().decode())
        except urllib.error.HTTPError as refused:
            refused.close()
        except OSError:
            pass
        return None

    def families(self) -> list[Metric]:
        """The exposition; empty if it does not answer."""
        return list(text_string_to_metric_families(self.get("/metrics") or ""))


class Cluster:
    """Two gateways, some scorers and two gauges, from `start` to `stop`."""

    def __init__(
        self,
        folder: Path,
        broker: kafka.Broker,
        database: postgres.Server,
        scorers: int = 2,
        ports: Mapping[str, int] | None = None,
        **configuration: Any,
    ) -> None:
        """`ports` are those of the first gateway. If the broker has two links, each role has links
        of its own to the broker and the database, and so have the senders.
        """
        self.setup = setup(folder)
        self._folder = folder
        self.settled_s = 5.0  # a turn that is forwarded takes two commits
        self.broker, self.database = broker, database
        self.conninfo = database.database()
        self.links = _links(broker, database)
        names = [broker.topic(partitions=PARTITIONS) for _ in range(2)]
        shared = {
            "references": ["references.yaml"],
            "criteria": CRITERIA,
            "assembly": ASSEMBLY,
            "logging": {"format": "json"},
            "kafka": {
                "traces_topic": names[0],
                "logs_topic": names[1],
                "group": names[0],
            },
            **configuration,
        }
        self.gateways = [
            self._member("gateway0", "gateway", shared, ports),
            self._member("gateway1", "gateway", shared),
        ]
        self.scorers = [self._member(f"scorer{n}", "scorer", shared) for n in range(scorers)]
        self.gauges = [self._member(f"gauge{n}", "gauge", shared) for n in range(2)]

    @property
    def members(self) -> list[Member]:
        """All processes."""
        return [*self.gateways, *self.scorers, *self.gauges]

    def start(self) -> None:
        """Start all processes, and wait until they answer."""
        for member in self.members:
            member.start()
        for member in self.members:
            member.wait()

    def stop(self) -> int:
        """Stop the gateways, then the scorers, then the gauges; returns the worst status."""
        return max(abs(member.stop()) for member in self.members)

    def families(self) -> list[Metric]:
        """The exposition of the process that is the gauge. Waits until one is."""
        return until(lambda: next(self._expositions(), []), STARTED_S)

    def counts(self) -> Series:
        """A scrape of all counts that must survive."""
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families()
            if family.name in DURABLE
            for sample in family.samples
        }

    def has_read(self, spans: int, traces: int) -> bool:
        """Whether so many spans were accepted, so many traces read, and none is open."""
        counts = self.counts()
        accepted = sum(
            value
            for (name, _), value in counts.items()
            if name == "pathgauge_receiver_accepted_spans_total"
        )
        read = sum(
            value
            for (name, _), value in counts.items()
            if name == "pathgauge_traces_completed_total"
        )
        return accepted >= spans and read >= traces and self._open_traces() == 0

    def seen(self) -> Seen:
        """The results in PostgreSQL."""
        with psycopg.connect(self.conninfo) as connection:
            return seen_rows(connection.execute(SELECT_RESULTS))

    def waiting(self) -> int:
        """Publications that no gauge has read."""
        with psycopg.connect(self.conninfo) as connection:
            found = connection.execute("SELECT count(*) FROM publications").fetchone()
        assert found is not None
        return int(found[0])

    def sender_ports(self) -> tuple[int, int]:
        """Where to send: gRPC to the first gateway, HTTP to the second."""
        grpc, http = self.gateways[0].ports["grpc"], self.gateways[1].ports["http"]
        if not self.links:
            return grpc, http
        self.links["sender", "grpc"], self.links["sender", "http"] = Link(grpc), Link(http)
        return self.links["sender", "grpc"].port, self.links["sender", "http"].port

    def _member(
        self,
        name: str,
        role: str,
        shared: Mapping[str, Any],
        ports: Mapping[str, int] | None = None,
    ) -> Member:
        kafka_link = self.links.get((role, "kafka"))
        postgres_link = self.links.get((role, "postgres"))
        client = self.broker.client_over(kafka_link) if kafka_link else self.broker.client()
        conninfo = self.conninfo
        if postgres_link:
            conninfo = self.database.over_tcp(conninfo, postgres_link.port)
        own = {
            "kafka": {**shared["kafka"], "client": dict(client)},
            "postgres": {"conninfo": conninfo},
        }
        return Member(self._folder, name, [role], {**shared, **own}, ports)

    def _open_traces(self) -> float:
        return sum(
            sample.value
            for scorer in self.scorers
            for family in scorer.families()
            for sample in family.samples
            if sample.name == "pathgauge_traces_open"
        )

    def _expositions(self) -> Iterator[list[Metric]]:
        for gauge in self.gauges:
            families = gauge.families()
            if any(
                sample.name == "pathgauge_gauge_active" and sample.value
                for family in families
                for sample in family.samples
            ):
                yield families


def _links(broker: kafka.Broker, database: postgres.Server) -> dict[tuple[str, str], Link]:
    if not broker.links:
        return {}
    to_gateways, to_scorers = broker.links
    return {
        ("gateway", "kafka"): to_gateways,
        ("scorer", "kafka"): to_scorers,
        ("scorer", "postgres"): Link(database.port),
        ("gauge", "postgres"): Link(database.port),
    }


@contextmanager
def running(
    folder: Path, broker: kafka.Broker, database: postgres.Server, **options: Any
) -> Iterator[Cluster]:
    """A cluster that runs."""
    cluster = Cluster(folder, broker, database, **options)
    try:
        cluster.start()
        yield cluster
    except BaseException:
        print(*(member.end_of_log() for member in cluster.members), sep="\n")
        raise
    finally:
        for member in cluster.members:
            if member.process is not None:
                member.process.kill()
                member.process.wait()

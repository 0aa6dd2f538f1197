"""A collector process that is restarted in the same folder and on the same ports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from pathgauge.collector.core.internal_telemetry import InternalTelemetry
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.sinks.prometheus.evaluation_metrics import EvaluationMetrics
from pathgauge.collector.sinks.prometheus.labels import TenantLabel
from support.ports import free_port
from support.running import PATIENCE_S, Collector, until

from .traffic import CRITERIA
from .truth import Seen, seen, setup

Series: TypeAlias = Mapping[tuple[str, frozenset[tuple[str, str]]], float]
"""Durable counts by name and labels."""

PATCHED = Path(__file__).with_name("patched.py")
ASSEMBLY = {"settle": "200ms", "idle": "10m", "max_age": "20m", "late_ttl": "20m"}
"""Only complete traces are read. So there is one correct result, however long a restart takes."""


def _durable() -> frozenset[str]:
    metrics = DurableMetrics()
    EvaluationMetrics(metrics, TenantLabel(False))
    telemetry = (
        f"pathgauge_{counter.name}" for counter in InternalTelemetry() if not counter.local
    )
    return frozenset([*telemetry, *(family.name for family in metrics.collect())])


DURABLE = _durable()
"""The metric families that continue over restarts."""


class RestartedCollector(Collector):
    """Runs between `start` and `kill` or `stop`, any number of times. `configuration` is merged
    into `FREE_PORTS` and `ASSEMBLY`.
    """

    def __init__(
        self,
        folder: Path,
        store: Path | None = None,
        *,
        retention: str = "7d",
        max_bytes: int = 10 << 30,
        max_backlog_age: str = "20s",
        prefix: Sequence[str] = (),
        **configuration: Any,
    ) -> None:
        """`store` is the folder of the store, if it is not the default; `retention`, `max_bytes`
        and `max_backlog_age` are its options.
        `prefix` are the first words of the command, such as those of `support/limited.py`.
        """
        self.folder = folder
        self.store = store or folder / "store"
        self.config = folder / "pathgauge.yaml"
        self.setup = setup(folder)
        # With scorer processes, a turn that is forwarded takes a commit of 1 s, then one of 0.25 s.
        self.settled_s = 3.0 if "workers" in configuration else 1.0
        self._prefix = prefix
        self._log = folder / "log.jsonl"
        self._loggers: list[subprocess.Popen[bytes]] = []
        self.ports = {name: free_port() for name in ("grpc", "http", "metrics")}
        grpc, http, metrics = ({"endpoint": f"127.0.0.1:{port}"} for port in self.ports.values())
        self.configure(
            **{
                "receivers": {"otlp": {"protocols": {"grpc": grpc, "http": http}}},
                "exporters": {"prometheus": metrics},
                "references": ["references.yaml"],
                "criteria": CRITERIA,
                "assembly": ASSEMBLY,
                "store": {
                    "path": str(self.store),
                    "retention": retention,
                    "max_bytes": max_bytes,
                    "max_backlog_age": max_backlog_age,
                },
                **configuration,
            }
        )
        self.process: subprocess.Popen[bytes]

    def change(self, **configuration: Any) -> None:
        """Change the configuration of the next start."""
        self.config.write_text(json.dumps(json.loads(self.config.read_text()) | configuration))

    @property
    def scorers(self) -> list[int]:
        """The scorer processes that run, by their ids."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        try:
            return [int(pid) for pid in children.read_text().split()]
        except OSError:
            return []  # the process has ended

    def launch(self, *patches: str) -> None:
        """Start the process without waiting until it is ready; `patches` are names of patched.py.
        It logs to a pipe, so that faults of its files do not affect the log.
        """
        command = [
            *self._prefix,
            sys.executable,
            str(PATCHED),
            ",".join(patches),
            "serve",
            "--config",
            str(self.config),
        ]
        # Scorers of a process that was killed may still write into its log.
        self._log = self.folder / f"log-{len(self._loggers)}.jsonl"
        with self._log.open("wb") as log:
            logger = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=log)
        self._loggers.append(logger)
        assert logger.stdin is not None
        self.process = subprocess.Popen(command, stderr=logger.stdin, stdout=logger.stdin)
        logger.stdin.close()

    def start(self, *patches: str, patience: float = PATIENCE_S) -> None:
        """Start the process, and wait until it is ready."""
        self.launch(*patches)
        self.wait(patience)

    def wait(self, patience: float = PATIENCE_S) -> None:
        """Wait until the process is ready."""
        ready = until(lambda: self.events("ready") or self.process.poll() is not None, patience)
        assert ready, f"not ready in {patience} s: {self._log.read_text()}"
        assert self.process.poll() is None, (
            f"ended with {self.process.returncode}: {self._log.read_text()}"
        )

    def kill(self) -> None:
        """Send SIGKILL, as the kernel does when memory is short. Scorers may still run then."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop the process; returns its exit status. Safe to call twice."""
        status = super().stop(number)
        self._wait_for_logs()
        return status

    def _wait_for_logs(self) -> None:
        """Wait until every process has closed its log."""
        for logger in self._loggers:
            logger.wait(PATIENCE_S)

    def log(self) -> list[dict[str, Any]]:
        """All complete log lines so far, without the lines of tracebacks, which are not JSON."""
        lines = self._log.read_text().splitlines(keepends=True)
        return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("\n")]

    def has_opened_the_store(self) -> bool:
        """Whether the process has opened the database."""
        try:
            return any(
                os.readlink(fd).startswith(str(self.store / "pathgauge.db"))
                for fd in Path(f"/proc/{self.process.pid}/fd").iterdir()
            )
        except OSError:  # a file that was just closed
            return False

    def counts(self) -> Series:
        """A scrape of all counts that must survive a restart."""
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in self.families()
            if family.name in DURABLE
            for sample in family.samples
        }

    def seen(self) -> Seen:
        """The results on disk, when the process has stopped."""
        return seen(self.store)

    def has_read(self, spans: int, traces: int) -> bool:
        """Whether it has accepted at least so many spans, read so many traces, and has no open
        trace.
        """
        waiting = self.value("pathgauge_traces_open") + self.value(
            "pathgauge_queue_size", queue="ingest"
        )
        completed = self.value("pathgauge_traces_completed_total")
        return (
            waiting == 0
            and completed >= traces
            and self.value("pathgauge_receiver_accepted_spans_total") >= spans
        )

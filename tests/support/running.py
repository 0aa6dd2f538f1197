"""Runs `pathgauge serve` as a process, and reads its ports, log, pages and exit status.

Nothing here waits for a fixed time: `until` polls until a deadline.
"""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from signal import SIGTERM, Signals
from typing import Any, Self, TypeVar

from prometheus_client import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from support.forked import ForkedProcess, can_fork

PATHGAUGE = Path(sys.executable).with_name("pathgauge")
NEW_PROCESS: Sequence[str] = ("env",)
"""The first word of a command that loads its modules itself."""
PATIENCE_S = 60.0
"""Much longer than anything here takes on a busy machine. Only a failing test waits this long."""

FREE_PORTS: Mapping[str, Any] = {
    "receivers": {
        "otlp": {
            "protocols": {"grpc": {"endpoint": "127.0.0.1:0"}, "http": {"endpoint": "127.0.0.1:0"}}
        }
    },
    "exporters": {"prometheus": {"endpoint": "127.0.0.1:0"}},
    "logging": {"format": "json"},
    "store": "memory",
}
QUICK: Mapping[str, Any] = {"settle": "200ms", "idle": "400ms", "max_age": "5s"}
"""An `assembly` with short quiet periods, so that traces are read soon after they are sent."""

T = TypeVar("T")


def until(check: Callable[[], T], patience: float = PATIENCE_S) -> T:
    """Poll `check` until its result is true, and return it. After `patience` seconds, return the
    last result, so that the test can compare it.
    """
    deadline = time.monotonic() + patience
    while not (result := check()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return result


def started(
    words: Sequence[str | Path],
    output: Path,
    environment: Mapping[str, str],
    prefix: Sequence[str] = (),
) -> subprocess.Popen[bytes] | ForkedProcess:
    """Start `pathgauge` with these words. It appends what it prints to `output`. `prefix` are the
    first words of the command.
    """
    if not prefix and can_fork(environment):
        return ForkedProcess(words, output, environment)
    with output.open("ab") as log:
        command = [*prefix, PATHGAUGE, *words]
        return subprocess.Popen(command, stderr=log, stdout=log, env=environment)


def _inherited() -> dict[str, str]:
    """Without what a command of pathgauge has set in this process."""
    return {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}


class Collector:
    """A running collector. `configuration` overrides free ports, a log in JSON and `QUICK`."""

    def __init__(
        self,
        folder: Path,
        prefix: Sequence[str] = (),
        suffix: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        /,
        **configuration: Any,
    ) -> None:
        """`prefix` are the first words of the command, such as those of `support/limited.py`, and
        `suffix` are further options. `environment` is added to that of the test.
        """
        self.folder = folder
        self.config = folder / "pathgauge.yaml"
        self.configure(**configuration)
        self._log = folder / "log.jsonl"
        self._log.write_bytes(b"")
        self.process = started(
            ["serve", "--config", self.config, *suffix],
            self._log,
            {**_inherited(), **(environment or {})},
            prefix,
        )
        ready = until(lambda: self.events("ready") or self.process.poll() is not None)
        assert ready, f"not ready: {self._log.read_text()}"
        assert self.process.poll() is None, self._log.read_text()
        [line] = self.events("ready")
        self.ports: dict[str, int] = {
            name: line[name] for name in ("grpc", "http", "metrics") if name in line
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def configure(self, **configuration: Any) -> None:
        """Write the configuration file; JSON is valid YAML."""
        self.config.write_text(json.dumps({**FREE_PORTS, "assembly": QUICK, **configuration}))

    def log(self) -> list[dict[str, Any]]:
        """All complete log lines so far."""
        return [
            json.loads(line)
            for line in self._log.read_text().splitlines(keepends=True)
            if line.endswith("\n")
        ]

    def events(self, event: str) -> list[dict[str, Any]]:
        """The log lines of one event."""
        return [line for line in self.log() if line["event"] == event]

    def get(self, path: str, accept: str = "", token: str = "") -> tuple[int, str]:
        """Status and text of a page, with a token if it needs one."""
        authorization = {"Authorization": f"Bearer {token}"} if token else {}
        return self._request("metrics", "GET", path, None, {"Accept": accept, **authorization})

    def post(
        self, path: str, body: bytes, content_type: str = "application/x-protobuf", **headers: str
    ) -> tuple[int, str]:
        """Status and response of an OTLP/HTTP request. `_` in names of `headers` means `-`."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._request("http", "POST", path, body, {"Content-Type": content_type, **more})

    def post_page(self, path: str, body: bytes, **headers: str) -> tuple[int, str]:
        """Status and response of a request with JSON to the API or to the pages."""
        more = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._request(
            "metrics", "POST", path, body, {"Content-Type": "application/json", **more}
        )

    def series(self, name: str, *labels: str, **where: str) -> dict[tuple[str, ...], float]:
        """The values of the samples called `name` with the labels in `where`, by the values of
        `labels`.
        """
        return {
            tuple(sample.labels.get(label, "") for label in labels): sample.value
            for family in self.families()
            for sample in family.samples
            if sample.name == name and where.items() <= sample.labels.items()
        }

    def value(self, name: str, **where: str) -> float:
        """The sum of the samples called `name` with the labels in `where`; 0 if there are none."""
        return sum(self.series(name, *self._labels(name), **where).values())

    def families(self) -> list[Metric]:
        """The exposition as Prometheus text."""
        return list(parse_text(self.get("/metrics")[1]))

    def openmetrics(self) -> list[Metric]:
        """The exposition as OpenMetrics, which has exemplars."""
        parse: Callable[[str], Iterator[Metric]] = parse_openmetrics
        return list(parse(self.get("/metrics", "application/openmetrics-text; version=1.0.0")[1]))

    def peak_memory(self) -> int:
        """The peak memory of the process, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        [peak] = [line for line in status.splitlines() if line.startswith("VmHWM")]
        return int(peak.split()[1]) * 1024

    def signal(self, number: Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def stop(self, number: Signals = SIGTERM) -> int:
        """Stop, and return the exit status. Safe to call twice."""
        if self.process.poll() is None:
            self.signal(number)
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()

    def _labels(self, name: str) -> list[str]:
        return sorted(
            {
                label
                for family in self.families()
                for sample in family.samples
                if sample.name == name
                for label in sample.labels
            }
        )

    def _request(
        self, port: str, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self.ports[port], timeout=PATIENCE_S)
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.read().decode(errors="replace")
        finally:
            connection.close()

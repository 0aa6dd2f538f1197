"""Starts one server, loads it from a process beside it, and measures what it did.

Client and server share the machine's cores. CPU is user and system time of the server process from
the first request on.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from support.judge_server import JudgeServer

HERE = Path(__file__).parent
PATHGAUGE = Path(sys.executable).with_name("pathgauge")
LONG = "BENCH_SECONDS" in os.environ
SECONDS = float(os.environ.get("BENCH_SECONDS", "1"))

SCORED = "pathgauge_invocations_scored_total"

DEFAULT_SETTLE_S = 6.0
SETTLE_S = float(os.environ.get("BENCH_SETTLE", DEFAULT_SETTLE_S))
"""The quiet period that a trace waits for. Rates are without it, so a short one saves time only."""
STALLED_S = 30.0
"""A service that scored nothing for so long will not."""

_POLL_S = 0.2
_NEARLY = 0.9

COLUMNS = {
    "bytes/span": 11,
    "acked/s": 10,
    "scored/s": 10,
    "CPU us/span": 12,
    "p50 ms": 8,
    "p99 ms": 8,
    "RSS MiB": 9,
    "refused": 9,
}

CONFIG = """
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:0"}, http: false}}}
exporters: {prometheus: {endpoint: "127.0.0.1:0"}}
references: [reference.yaml]
store: %s
assembly: {settle: SETTLE}
criteria:
  tool_trajectory_avg_score: 1.0
  tool_trajectory_f1: 0.8
  response_match_score: 0.7
  failure: null
  latency: null
""".replace("SETTLE", f"{SETTLE_S:g}s")

JUDGED = """
criteria:
  tool_trajectory_avg_score: 1.0
  tool_trajectory_f1: 0.8
  response_match_score: 0.7
  failure: null
  latency: null
  safety_v1: 1.0
judge: {model: "local:slow", providers: {local: {base_url: "%s", allow_private: true}}}
"""
"""Laid over the criteria above: all is judged, by a model that takes a second."""

REFERENCE = """
scenario: bench
expected_tools: [find_order, check_policy, refund, notify]
expected_response: "Your order A-1001 was refunded: 49.99 USD, you will be notified by mail."
"""


@dataclass(frozen=True)
class Run:
    """What one server did under load."""

    load: dict[str, float]
    scored_after_s: float
    """From the first request until everything was scored, without the time that traces wait to be
    complete.
    """
    cpu_s: float
    """User and system time from the first request on."""
    rss_mib: float

    @property
    def acked_per_s(self) -> float:
        return self.load["spans"] / self.load["seconds"]

    @property
    def scored_per_s(self) -> float:
        return self.load["spans"] / max(self.scored_after_s, self.load["seconds"])

    @property
    def cpu_us_per_span(self) -> float:
        return self.cpu_s * 1e6 / self.load["spans"]

    def row(self, name: str) -> str:
        load = self.load
        rates = f"{load['bytes_per_span']:11.0f}{self.acked_per_s:10,.0f}{self.scored_per_s:10,.0f}"
        latency = f"{load['ack_p50_ms']:8.1f}{load['ack_p99_ms']:8.1f}"
        end = f"{self.rss_mib:9.0f}{load['refused']:9,.0f}"
        return f"{name:34}{rates}{self.cpu_us_per_span:12.1f}{latency}{end}"


def measure_bare(mix: str, seconds: float = SECONDS) -> Run:
    """A server that receives requests and looks at nothing."""
    with bare_server() as (server, port):
        idle_s = cpu_s(server.pid)
        sent = load(port, mix, seconds=seconds)
        return Run(sent, sent["seconds"], cpu_s(server.pid) - idle_s, resident(server.pid, "VmHWM"))


def measure_receiver(folder: Path, mix: str, seconds: float = SECONDS) -> Run:
    """A receiver and its journal, without anything that scores."""
    program = str(HERE / "receiver_server.py")
    with process(sys.executable, program, tempfile.mkdtemp(dir=folder)) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        idle_s = cpu_s(server.pid)
        sent = load(port, mix, seconds=seconds)
        return Run(sent, sent["seconds"], cpu_s(server.pid) - idle_s, resident(server.pid, "VmHWM"))


@contextmanager
def bare_server() -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The process and its port."""
    with process(sys.executable, str(HERE / "bare_server.py")) as server:
        assert server.stdout is not None
        yield server, int(server.stdout.readline())


def measure_service(
    folder: Path,
    mix: str,
    store: str = "{}",
    *,
    rate: float = float("inf"),
    judge: JudgeServer | None = None,
    more: str = "",
    readers: int = 0,
    seconds: float = SECONDS,
    program: Path = PATHGAUGE,
    at_end: Callable[[subprocess.Popen[str]], object] = lambda server: None,
) -> Run:
    """The running service. Fails unless it scores every invocation. `program` is run instead of
    `pathgauge`; `at_end` gets the process before it is killed.
    """
    folder = Path(tempfile.mkdtemp(dir=folder))  # what an earlier run stored would be restored
    written = CONFIG % store
    if judge is not None:
        written = written.partition("criteria:")[0] + JUDGED % judge.url
    config = str(folder / "pathgauge.yaml")
    Path(config).write_text(f"{written}\n{more}\n")
    (folder / "reference.yaml").write_text(REFERENCE)
    with (
        process(sys.executable, str(program), "serve", "--config", config) as server,
        ExitStack() as beside,
    ):
        grpc_port, metrics_port = ports(server)
        if readers:
            address = f"http://127.0.0.1:{metrics_port}"
            reading = sys.executable, str(HERE / "readers.py"), address, str(readers)
            beside.enter_context(process(*reading))
        before, idle_s = counter(metrics_port, SCORED), cpu_s(server.pid)
        began = time.monotonic()
        sent = load(grpc_port, mix, rate, seconds)
        wait_for(metrics_port, SCORED, before + sent["invocations"])
        scored_after_s = time.monotonic() - began - SETTLE_S
        run = Run(sent, scored_after_s, cpu_s(server.pid) - idle_s, resident(server.pid, "VmHWM"))
        at_end(server)
        return run


def load(
    port: int, mix: str, rate: float = float("inf"), seconds: float = SECONDS
) -> dict[str, float]:
    """What `support/load.py` prints."""
    command = [
        sys.executable,
        str(HERE.parent / "support" / "load.py"),
        f"127.0.0.1:{port}",
        str(seconds),
        mix,
        str(rate),
    ]
    result: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, timeout=60 + seconds).stdout
    )
    return result


def cpu_s(pid: int) -> float:
    """User and system time of the process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def resident(pid: int, which: str) -> float:
    """MiB of memory: VmRSS is now, VmHWM the most there ever was."""
    found = re.search(rf"{which}:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0


def ports(server: subprocess.Popen[str]) -> tuple[int, int]:
    """From the line that the service logs when it is ready."""
    assert server.stderr is not None
    for line in server.stderr:
        if "ready" in line:
            found = dict(re.findall(r"(grpc|metrics)=(\d+)", line))
            return int(found.get("grpc", 0)), int(found["metrics"])
    raise AssertionError("the service did not become ready")


def wait_for(port: int, name: str, expected: float) -> None:
    """Wait until a counter of `/metrics` has a value. Fails when it stands still."""
    value, progress = counter(port, name), time.monotonic()
    while value < expected and time.monotonic() < progress + STALLED_S:
        # Rendering `/metrics` costs as much as scoring some traces, so it is rare at first.
        time.sleep(_POLL_S if value > expected * _NEARLY else 5 * _POLL_S)
        last, value = value, counter(port, name)
        progress = progress if value == last else time.monotonic()
    assert value == expected, f"{name}: {value} of {expected}"


def counter(port: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        text = response.read().decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


@contextmanager
def process(
    *arguments: str, environment: Mapping[str, str] = MappingProxyType({})
) -> Iterator[subprocess.Popen[str]]:
    """A process that is killed at the end. `environment` is added to that of this process."""
    with subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | dict(environment),
    ) as running:
        try:
            yield running
        finally:
            running.kill()

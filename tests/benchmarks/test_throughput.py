"""How many spans a second the running service makes durable and scores, beside one that keeps them
in memory, and beside a server that only receives them, in one run.

Both get the same load from a process beside them, so client and server share the machine's cores.
CPU is user and system time of the server process from the first request on. `make bench` runs it
for long enough to mean something; by default it is short, and shows that nothing is lost.
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
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.judge_server import JudgeServer, answering

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
PATHGAUGE = Path(sys.executable).with_name("pathgauge")
LONG = "BENCH_SECONDS" in os.environ
SECONDS = float(os.environ.get("BENCH_SECONDS", "1"))
FIRST_BAR, BARE_THERE = 30_000, 215_000
"""Spans a second on two cores, load generator included, durable; and those of a bare receiver on
the machine for which that was set.
"""
DURABLE = "pathgauge, mixed"

CALM = 10_000
"""Spans a second at which latency and memory are looked at."""

STEADY = 4_000
"""Spans a second that a slow machine can score as they come, at which judges are looked at."""

READERS = 20
"""People who look at the pages at the same time."""

SCORED = "pathgauge_invocations_scored_total"

SETTLE_S = 6.0
"""The default of `assembly.settle`."""
STALLED_S = 30.0
"""A service that scored nothing for so long will not."""

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
criteria:
  tool_trajectory_avg_score: 1.0
  tool_trajectory_f1: 0.8
  response_match_score: 0.7
  failure: null
  latency: null
"""

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


def test_throughput_beside_a_bare_receiver(tmp_path: Path) -> None:
    bare = measure_bare("mixed")
    runs = {"receive and discard, mixed": bare, DURABLE: measure_service(tmp_path, "mixed")}
    if LONG:
        runs |= {
            "pathgauge in memory, mixed": measure_service(tmp_path, "mixed", "memory"),
            "pathgauge, agent spans only": measure_service(tmp_path, "agents"),
            f"pathgauge, mixed, {CALM:,} spans/s": measure_service(tmp_path, "mixed", rate=CALM),
        }
    print(
        f"\n{os.cpu_count()} cores, load generator included; requests of 100 spans, gzip;"
        f" {SECONDS:g} s of load each"
    )
    print(
        "".join(
            (f"{'server, load':34}", *(f"{heading:>{width}}" for heading, width in COLUMNS.items()))
        )
    )
    for name, run in runs.items():
        print(run.row(name))
    for name, run in list(runs.items())[1:4]:
        speed, cost = run.acked_per_s / bare.acked_per_s, run.cpu_us_per_span / bare.cpu_us_per_span
        print(f"{name}: {speed:.2f} of the bare spans/s at {cost:.1f} times its CPU")
    durable = runs[DURABLE].acked_per_s
    absolute, relative = (
        _met(durable, FIRST_BAR),
        _met(durable / bare.acked_per_s, FIRST_BAR / BARE_THERE),
    )
    print(
        f"first bar, durable: {FIRST_BAR:,} spans/s {absolute}; as a share of the bare,"
        f" {FIRST_BAR / BARE_THERE:.2f}, {relative}"
    )


def _met(value: float, bar: float) -> str:
    return "met" if value >= bar else "not met"


def test_what_an_idle_service_costs(tmp_path: Path) -> None:
    (tmp_path / "pathgauge.yaml").write_text(CONFIG % "{}")
    (tmp_path / "reference.yaml").write_text(REFERENCE)
    with process(str(PATHGAUGE), "serve", "--config", str(tmp_path / "pathgauge.yaml")) as server:
        ports(server)
        before = cpu_s(server)
        time.sleep(SECONDS)
        used = cpu_s(server) - before
        print(f"\nidle: {used / SECONDS:.1%} of a core, {resident(server.pid, 'VmRSS'):.0f} MiB")


@pytest.mark.skipif(not LONG, reason="a second says nothing: make bench")
def test_a_judge_that_takes_a_second_holds_up_nothing_else(tmp_path: Path) -> None:
    slow = answering(reasoning="Nothing harmful in it.", verdict="safe").after(1)
    rows = [measure_service(tmp_path, "mixed", rate=STEADY)]
    with JudgeServer(slow) as model:
        rows.append(measure_service(tmp_path, "mixed", rate=STEADY, judge=model))
        asked, at_once = len(model.requests), model.max_concurrent
    without, beside = rows
    assert 0 < at_once <= 8
    print(
        f"\n{'server, load':34}"
        + "".join(f"{heading:>{width}}" for heading, width in COLUMNS.items())
    )
    print(
        "\n".join(
            (without.row(f"no judge, {STEADY:,} spans/s"), beside.row("all is judged, 1 s each"))
        )
    )
    faster = beside.acked_per_s / without.acked_per_s, beside.scored_per_s / without.scored_per_s
    told = (
        f"{faster[0]:.2f} of the acknowledged and {faster[1]:.2f} of the scored spans/s without a"
        " judge"
    )
    print(
        f"{told}; {beside.rss_mib - without.rss_mib:+.0f} MiB; {asked} questions, {at_once} at a"
        " time"
    )


@pytest.mark.skipif(not LONG, reason="a second says nothing: make bench")
def test_evidence_and_readers_hold_up_little(tmp_path: Path) -> None:
    runs = {
        f"evidence: {keep}": measure_service(
            tmp_path, "mixed", rate=CALM, more=f"evidence: {{keep: {keep}}}"
        )
        for keep in ("none", "failed", "all")
    }
    runs[f"{READERS} readers"] = measure_service(tmp_path, "mixed", rate=CALM, readers=READERS)
    print(
        f"\n{'server, load':34}"
        + "".join(f"{heading:>{width}}" for heading, width in COLUMNS.items())
    )
    for name, run in runs.items():
        print(run.row(name))
    without, usual, every, read = runs.values()
    for name, run, beside in (
        ("evidence of failures", usual, without),
        ("evidence of every invocation", every, without),
        (f"{READERS} readers", read, usual),
    ):
        print(
            f"{name}: {run.acked_per_s / beside.acked_per_s:.2f} of the acknowledged and"
            f" {run.scored_per_s / beside.scored_per_s:.2f} of the scored spans/s,"
            f" {run.cpu_us_per_span / beside.cpu_us_per_span:.2f} of the CPU a span without"
        )


@pytest.mark.skipif(not LONG, reason="a second says nothing: make bench")
def test_drift_detection_costs_little(tmp_path: Path) -> None:
    runs = [
        measure_service(tmp_path, "mixed", rate=CALM, more=more) for more in ("drift: false", "")
    ]
    without, usual = runs
    ratio = usual.cpu_us_per_span / without.cpu_us_per_span
    print(
        f"\ndrift detection: {usual.cpu_us_per_span:.0f} us of CPU a span, {ratio:.2f} of that"
        f" without; {usual.rss_mib - without.rss_mib:+.0f} MiB"
    )
    assert ratio < 1.2, "1.1 and the noise of such a run"


def measure_bare(mix: str) -> Run:
    with process(str(HERE / "bare_server.py")) as server:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        idle_s = cpu_s(server)
        sent = load(port, mix)
        return Run(sent, sent["seconds"], cpu_s(server) - idle_s, resident(server.pid, "VmHWM"))


def measure_service(
    folder: Path,
    mix: str,
    store: str = "{}",
    *,
    rate: float = float("inf"),
    judge: JudgeServer | None = None,
    more: str = "",
    readers: int = 0,
) -> Run:
    folder = Path(tempfile.mkdtemp(dir=folder))  # what an earlier run stored would be restored
    written = CONFIG % store
    if judge is not None:
        written = written.partition("criteria:")[0] + JUDGED % judge.url
    (folder / "pathgauge.yaml").write_text(f"{written}\n{more}\n")
    (folder / "reference.yaml").write_text(REFERENCE)
    with (
        process(str(PATHGAUGE), "serve", "--config", str(folder / "pathgauge.yaml")) as server,
        ExitStack() as beside,
    ):
        grpc_port, metrics_port = ports(server)
        if readers:
            address = f"http://127.0.0.1:{metrics_port}"
            beside.enter_context(process(str(HERE / "readers.py"), address, str(readers)))
        before, idle_s = counter(metrics_port, SCORED), cpu_s(server)
        began = time.monotonic()
        sent = load(grpc_port, mix, rate)
        scored, progress = 0.0, time.monotonic()
        while scored < sent["invocations"] and time.monotonic() < progress + STALLED_S:
            time.sleep(0.2)
            last, scored = scored, counter(metrics_port, SCORED) - before
            progress = progress if scored == last else time.monotonic()
        assert scored == sent["invocations"], (
            f"{scored} of {sent['invocations']} invocations scored"
        )
        return Run(
            sent,
            time.monotonic() - began - SETTLE_S,
            cpu_s(server) - idle_s,
            resident(server.pid, "VmHWM"),
        )


def load(port: int, mix: str, rate: float = float("inf")) -> dict[str, float]:
    command = [
        sys.executable,
        str(HERE.parent / "support" / "load.py"),
        f"127.0.0.1:{port}",
        str(SECONDS),
        mix,
        str(rate),
    ]
    result: dict[str, float] = json.loads(
        subprocess.run(command, check=True, capture_output=True, timeout=60 + SECONDS).stdout
    )
    return result


def cpu_s(server: subprocess.Popen[str]) -> float:
    """User and system time of the process."""
    fields = Path(f"/proc/{server.pid}/stat").read_text().rsplit(")", 1)[1].split()
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


def counter(port: int, name: str) -> float:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as response:
        text = response.read().decode()
    return sum(float(line.rsplit(" ", 1)[1]) for line in text.splitlines() if line.startswith(name))


@contextmanager
def process(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(
        [sys.executable, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        try:
            yield running
        finally:
            running.kill()

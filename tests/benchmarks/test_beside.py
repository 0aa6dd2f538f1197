"""What the running service costs when nothing arrives, and what judges, evidence, readers and drift
detection cost beside the load.

`make bench` runs this for long enough to mean something; by default it is short.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

import pytest

from benchmarks.servers import (
    COLUMNS,
    CONFIG,
    LONG,
    PATHGAUGE,
    REFERENCE,
    SECONDS,
    Run,
    cpu_s,
    measure_service,
    ports,
    process,
    resident,
)
from support.judge_server import JudgeServer, answering

pytestmark = pytest.mark.slow

CALM = 10_000
"""Spans a second at which evidence and readers are looked at."""

STEADY = 4_000
"""Spans a second that a slow machine can score as they come, at which judges are looked at."""

READERS = 20
"""People who look at the pages at the same time."""


def test_what_an_idle_service_costs(tmp_path: Path) -> None:
    (tmp_path / "pathgauge.yaml").write_text(CONFIG % "{}")
    (tmp_path / "reference.yaml").write_text(REFERENCE)
    with process(
        sys.executable, str(PATHGAUGE), "serve", "--config", str(tmp_path / "pathgauge.yaml")
    ) as server:
        ports(server)
        before = cpu_s(server.pid)
        time.sleep(SECONDS)
        used = cpu_s(server.pid) - before
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
    """Compares the cheapest runs. Adds up to two pairs, while noise may be the reason."""
    without: list[Run] = []
    usual: list[Run] = []
    ratio = math.inf
    while ratio >= 1.2 and len(usual) < 3:
        without.append(measure_service(tmp_path, "mixed", rate=CALM, more="drift: false"))
        usual.append(measure_service(tmp_path, "mixed", rate=CALM))
        least, most = (min(run.cpu_us_per_span for run in runs) for runs in (without, usual))
        ratio = most / least
    print(
        f"\ndrift detection: {most:.0f} us of CPU a span, {ratio:.2f} of that without;"
        f" {usual[0].rss_mib - without[0].rss_mib:+.0f} MiB"
    )
    assert ratio < 1.2, "1.1 and the noise of such a run"

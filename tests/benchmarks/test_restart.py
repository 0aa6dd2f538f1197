"""What a restart costs with many results in the store, beside the start with an empty one. Almost
all results are read past: windows hold the newest ones of each series. `make bench` stores a
million, or `BENCH_RESULTS`.
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

import pytest

from benchmarks.servers import cpu_s
from pathgauge.collector.config import criteria
from pathgauge.collector.config.criteria import Location
from pathgauge.collector.core.documents import Document
from pathgauge.collector.sinks.prometheus.durable_metrics import DurableMetrics
from pathgauge.collector.store import Progress
from support.evaluated import opened
from support.running import NEW_PROCESS, Collector
from support.sink_harness import SinkHarness

pytestmark = pytest.mark.slow

RESULTS = int(os.environ.get("BENCH_RESULTS", "40000"))
CRITERIA = {
    "failure": 0.0,
    "tool_calls": None,
    "max_tool_calls": 1.0,
    "latency": None,
    "tool_trajectory_avg_score": 1.0,
}
"""The last one is never evaluated: there are no references."""
AGENTS = 20
COMMIT = 2_000
ROUNDS = 3
MAX_RATIO = 1.6
"""CPU until the service is ready, of what it takes with an empty store. Measured: 0.8 to 1.2."""


def fill(folder: Path) -> None:
    built = criteria.build(CRITERIA, Location(Document("", None), ("criteria",)))
    harness = SinkHarness(*built, metrics=DurableMetrics())
    harness.now = time.time()
    with opened(folder, max_bytes=20 << 30) as store:
        for start in range(0, RESULTS, COMMIT):
            events = []
            for number in range(start, min(start + COMMIT, RESULTS)):
                agent = f"agent {number % AGENTS}"
                run = harness.invocation(agent=agent, scenario_id=None, agent_version="1")
                events.append(harness.evaluator.evaluate(run, harness.references.match(run)))
            for event in events[:AGENTS]:
                harness.publish_evaluation(event)
            counts = harness.sink.pending()
            assert store.commit(Progress(0, 0.0, harness.now, tuple(events), counts=counts))
            harness.sink.commit()


def test_a_restart_reads_few_of_many_results(tmp_path: Path) -> None:
    fill(tmp_path / "many" / "store")
    (tmp_path / "empty").mkdir()
    measured: dict[str, list[float]] = {"empty": [], "many": []}
    for _ in range(ROUNDS):
        for name, costs in measured.items():
            with Collector(
                tmp_path / name, NEW_PROCESS, criteria=CRITERIA, store={"path": "store"}
            ) as collector:
                costs.append(cpu_s(collector.process.pid))
                samples = collector.value("pathgauge_score_window_samples")
    empty, many = map(statistics.median, measured.values())
    print(f"\nready with {RESULTS:,} results: {many:.1f} s of CPU, {many / empty:.1f} x")
    assert samples >= AGENTS * 100
    assert many <= MAX_RATIO * empty

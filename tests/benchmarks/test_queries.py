"""How long the API takes with many results in the store. `make bench` stores a million of them, and
fails beyond the bar; by default there are few, and the bar gives way to slow machines.
"""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from pathgauge.collector.api.endpoints import PREFIX
from pathgauge.collector.core.evaluations.evaluator import Evaluation
from pathgauge.collector.store.evidence.table import EvidencePolicy
from support.api_client import client, sources
from support.evaluated import commit, evaluation, opened
from support.pace import Pace

pytestmark = pytest.mark.slow

RESULTS = int(os.environ.get("BENCH_RESULTS", "20000"))
COMMIT = 5_000
FAILED = 0.05
PERIOD_S = 0.1
"""Between two results."""
BAR_MS = 100.0
ROUNDS = 7
PATHS = (
    "/results",
    "/results?limit=500",
    "/results?verdict=failed",
    "/results?verdict=failed&agent=agent-3&scenario=scenario-7",
    "/results?criterion=trajectory&verdict=failed",
    "/results?agent=agent-3&scenario=scenario-7",
    "/results?agent=nobody",
    "/results?flag=truncated",
    "/results?until=20m",
    "/clusters",
    "/clusters?agent=agent-3&scenario=scenario-7",
    "/versions?agent=agent-3&scenario=scenario-7",
    "/references",
    "/results/{trace_id}/{span_id}",
)


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    folder = tmp_path_factory.mktemp("store")
    fill(folder)
    return client(sources(folder))


def fill(folder: Path) -> None:
    began = time.time() - RESULTS * PERIOD_S
    with opened(folder, EvidencePolicy(), 10 << 30) as store:
        runs = evaluations()
        for start in range(0, RESULTS, COMMIT):
            commit(store, [next(runs) for _ in range(COMMIT)], began + start * PERIOD_S)


def evaluations() -> Iterator[Evaluation]:
    """Runs of five agents in twenty scenarios."""
    chosen = random.Random(1)
    made = {
        outcome: [
            evaluation("", outcome, agent=f"agent-{agent}", scenario=f"scenario-{scenario}")
            for agent in range(5)
            for scenario in range(20)
        ]
        for outcome in ("passed", "failed", "stopped")
    }
    for number in range(RESULTS):
        outcome = chosen.choice(("failed", "stopped")) if chosen.random() < FAILED else "passed"
        one = chosen.choice(made[outcome])
        yield replace(
            one,
            invocation=replace(one.invocation, trace_id=f"{number:032x}", span_id=f"{number:016x}"),
        )


def test_every_query_is_answered_quickly(api: TestClient) -> None:
    [failed] = api.get(f"{PREFIX}/results?verdict=failed&limit=1").json()["results"]
    print(f"\n{RESULTS:,} results in the store; median of {ROUNDS} answers")
    pace, medians = Pace(), {}
    for path in PATHS:
        pace.measure()
        took = [milliseconds(api, path.format(**failed)) for _ in range(ROUNDS)]
        medians[path] = statistics.median(took)
        print(f"{path:60}{medians[path]:8.1f} ms")
    bar = BAR_MS * pace.slower
    assert {path: median for path, median in medians.items() if median > bar} == {}


def milliseconds(api: TestClient, path: str) -> float:
    began = time.perf_counter()
    answer = api.get(PREFIX + path)
    assert answer.status_code == 200, answer.text
    return (time.perf_counter() - began) * 1000

"""What was learned about tool calls of agents survives a stop: one process and `workers: 2`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from pathgauge.collector.core.otlp.encode import encode_request
from pathgauge.collector.testing import span
from support.running import PATHGAUGE, Collector, until

pytestmark = pytest.mark.slow

INVOCATIONS = "pathgauge_traffic_drift_invocations"
ASSEMBLY = {"settle": "300ms", "idle": "600ms", "max_age": "60s", "late_ttl": "60s"}


def send(collector: Collector, names: list[str]) -> None:
    """Runs of one agent without a scenario, which call one tool each."""
    spans = []
    for name in names:
        agent = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "support"}
        tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "search"}
        spans += [
            span(name, "invoke_agent support", agent, trace=name, end=9.0),
            span(f"{name} search", "search", tool, trace=name, parent=name, start=1.0),
        ]
    body = encode_request(spans)
    assert until(lambda: collector.post("/v1/traces", body)[0] == 200)


def started(folder: Path, workers: int) -> Collector:
    criteria = {"tool_calls": None}
    return Collector(folder, criteria=criteria, assembly=ASSEMBLY, store={}, workers=workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_invocations_count_once_over_a_stop(workers: int, tmp_path: Path) -> None:
    with started(tmp_path, workers) as running:
        send(running, [f"run {number}" for number in range(6)])
        assert until(lambda: running.value(INVOCATIONS) == 6)
    with started(tmp_path, workers) as running:
        assert until(lambda: running.value(INVOCATIONS) == 6)
        send(running, ["another"])
        assert until(lambda: running.value(INVOCATIONS) == 7)
        [found] = json.loads(running.get("/api/v1/drift?agent=support")[1])["traffic"]
        assert (found["status"], found["invocations"]) == ("learning", 7)
    command = [str(PATHGAUGE), "explain", "support", "--json", "--config", str(running.config)]
    explained = json.loads(subprocess.check_output(command))
    assert [one["missing_invocations"] for one in explained["traffic"]] == [193]

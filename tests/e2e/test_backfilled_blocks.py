"""promtool makes blocks from the series of a backfill, and a real Prometheus answers from them at
the original times.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.backfilled import at, command, configured, rows
from support.exports import tempo_json
from support.monitoring import Prometheus, installed
from support.past import archive
from support.running import PATIENCE_S, until

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

HOURS = 6
BEGIN = 1_760_000_400


def test_a_prometheus_answers_from_the_blocks_of_a_backfill(tmp_path: Path) -> None:
    past = archive(600, HOURS * 3600)
    configured(tmp_path)
    (tmp_path / "traces.jsonl").write_bytes(b"\n".join(tempo_json(one.body) for one in past.traces))
    labels = "--label", "job=pathgauge", "--label", "instance=past:9464"
    address = f"file://{tmp_path}/traces.jsonl"
    done = command(tmp_path, address, HOURS * 3600 + 60, *labels)
    assert (done.returncode, done.stderr) == (0, "")
    made = subprocess.run(
        [
            installed("promtool"),
            *("tsdb", "create-blocks-from", "openmetrics"),
            str(tmp_path / "past" / "openmetrics.txt"),
            str(tmp_path / "prometheus"),
        ],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert made.stdout.count("\n") > HOURS // 2  # a block for every two hours, and a heading
    statement = "SELECT count(*) FROM results WHERE revision = 0 AND at <= {}"
    with Prometheus(tmp_path, target=9) as prometheus:
        for hours in (1, 3, HOURS):
            time = BEGIN + hours * 3600
            query = 'sum(pathgauge_invocations_scored_total{job="pathgauge"})'
            found = until(lambda: prometheus.get("query", query=query, time=at(time)))  # noqa: B023
            [(counted,)] = rows(tmp_path / "past", statement.format(time))
            assert float(found[0]["value"][1]) == counted
            rate = "sum by (agent) (rate(pathgauge_evaluations_total[30m])) > 0"
            agents = prometheus.get("query", query=rate, time=at(time))
            assert {one["metric"]["agent"] for one in agents} == {"desk", "guide"}
            mean = 'pathgauge_score_window_mean{scenario="refund", metric="tool_trajectory_f1"}'
            [window] = prometheus.get("query", query=mean, time=at(time))
            assert 0.8 < float(window["value"][1]) <= 1

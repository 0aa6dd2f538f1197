"""A real Prometheus scrapes a running collector: what it stores is what people will query and alert
on.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from support.monitoring import Prometheus, installed
from support.running import PATIENCE_S, Collector, until
from support.turns import otlp, script, trace_id, turn

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

REFERENCE = {"scenario": "refund", "expected_tools": ["lookup", "refund"]}
CRITERIA = {"tool_trajectory_f1": 0.9}


def test_prometheus_has_means_breaches_and_exemplars_of_what_was_sent(tmp_path: Path) -> None:
    (tmp_path / "references.yaml").write_text(yaml.safe_dump(REFERENCE))
    half_right = turn(script("refund", "refund"), "support", "2.0")
    windows = {"size": 10, "min_samples": 1}
    with (
        Collector(
            tmp_path, references=["references.yaml"], criteria=CRITERIA, windows=windows
        ) as collector,
        Prometheus(tmp_path, collector.ports["metrics"]) as prometheus,
    ):
        assert until(lambda: prometheus.get("query", query="up == 1"))
        assert collector.post("/v1/traces", otlp(half_right))[0] == 200

        def value(query: str) -> dict[tuple[str, str, str], float]:
            found = until(lambda: prometheus.get("query", query=query))
            return {
                (of["metric"]["agent"], of["metric"]["scenario"], of["metric"]["metric"]): float(
                    of["value"][1]
                )
                for of in found
            }

        series = ("support", "refund", "tool_trajectory_f1")
        assert value("pathgauge_score_window_mean") == {series: pytest.approx(2 / 3)}
        assert value("pathgauge_threshold") == {series: 0.9}
        assert value("pathgauge_threshold_breached == 1") == {series: 1.0}
        assert value('pathgauge_evaluations_total{outcome="fail"} == 1') == {series: 1.0}

        day = {"start": "2000-01-01T00:00:00Z", "end": "2100-01-01T00:00:00Z"}
        [found] = until(
            lambda: prometheus.get(
                "query_exemplars", query='pathgauge_evaluations_total{outcome="fail"}', **day
            )
        )
        assert [exemplar["labels"]["trace_id"] for exemplar in found["exemplars"]] == [
            trace_id(half_right)
        ]


def test_prometheus_finds_nothing_wrong_with_the_exposition(tmp_path: Path) -> None:
    promtool = installed("promtool")
    with Collector(tmp_path) as collector:
        assert collector.post("/v1/traces", otlp(turn(script(""))))[0] == 200
        assert until(lambda: collector.value("pathgauge_invocations_total"))
        text = collector.get("/metrics")[1]
    checked = subprocess.run(
        [promtool, "check", "metrics"],
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    ours = [line for line in checked.stderr.splitlines() if line.startswith("pathgauge_")]
    assert ours == []

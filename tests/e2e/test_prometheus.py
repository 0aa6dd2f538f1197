"""A real Prometheus scrapes a running collector: what it stores is what people will query and alert on."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from running import PATIENCE_S, Collector, until
from turns import otlp, script, trace_id, turn

pytestmark = pytest.mark.e2e

DEMANDED = bool(os.environ.get("CI") or os.environ.get("PATHGAUGE_E2E"))
REFERENCE = {"scenario": "refund", "expected_tools": ["lookup", "refund"]}
CRITERIA = {"tool_trajectory_f1": 0.9}


@pytest.fixture(name="program", scope="module")
def _program() -> str:
    """Where Prometheus is installed."""
    found = shutil.which("prometheus")
    if found is None:
        text = "no `prometheus` on PATH (on Debian: apt-get install prometheus)"
        if DEMANDED:
            pytest.fail(f"{text}, and CI or PATHGAUGE_E2E demands it")
        pytest.skip(text)
    return found


@contextmanager
def running(program: str, folder: Path, target: int) -> Iterator[str]:
    """Prometheus in `folder`, which scrapes port `target` five times a second; gives its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    often = {"scrape_interval": "200ms", "scrape_timeout": "200ms"}
    job = {"job_name": "pathgauge", **often, "static_configs": [{"targets": [f"127.0.0.1:{target}"]}]}
    (folder / "prometheus.yml").write_text(yaml.safe_dump({"scrape_configs": [job]}))
    arguments = [
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address={address}",
        "--enable-feature=exemplar-storage",
    ]
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen([program, *arguments], stdout=log, stderr=log)
    try:
        yield address
    finally:
        process.terminate()
        process.wait(PATIENCE_S)


def ask(address: str, page: str, **parameters: str) -> list[dict[str, Any]]:
    """The result of an API call; nothing while Prometheus starts."""
    try:
        with urllib.request.urlopen(f"http://{address}/api/v1/{page}?{urllib.parse.urlencode(parameters)}", timeout=PATIENCE_S) as answer:
            data = json.load(answer)["data"]
    except OSError:
        return []
    found: list[dict[str, Any]] = data["result"] if isinstance(data, dict) else data
    return found


def test_prometheus_has_means_breaches_and_exemplars_of_what_was_sent(program: str, tmp_path: Path) -> None:
    (tmp_path / "references.yaml").write_text(yaml.safe_dump(REFERENCE))
    half_right = turn(script("refund", "refund"), "support", "2.0")
    windows = {"size": 10, "min_samples": 1}
    with (
        Collector(tmp_path, references=["references.yaml"], criteria=CRITERIA, windows=windows) as collector,
        running(program, tmp_path, collector.ports["metrics"]) as prometheus,
    ):
        assert until(lambda: ask(prometheus, "query", query="up == 1"))
        assert collector.post("/v1/traces", otlp(half_right))[0] == 200

        def value(query: str) -> dict[tuple[str, str, str], float]:
            found = until(lambda: ask(prometheus, "query", query=query))
            return {(of["metric"]["agent"], of["metric"]["scenario"], of["metric"]["metric"]): float(of["value"][1]) for of in found}

        series = ("support", "refund", "tool_trajectory_f1")
        assert value("pathgauge_score_window_mean") == {series: pytest.approx(2 / 3)}
        assert value("pathgauge_threshold") == {series: 0.9}
        assert value("pathgauge_threshold_breached == 1") == {series: 1.0}
        assert value('pathgauge_evaluations_total{outcome="fail"} == 1') == {series: 1.0}

        day = {"start": "2000-01-01T00:00:00Z", "end": "2100-01-01T00:00:00Z"}
        [found] = until(lambda: ask(prometheus, "query_exemplars", query='pathgauge_evaluations_total{outcome="fail"}', **day))
        assert [exemplar["labels"]["trace_id"] for exemplar in found["exemplars"]] == [trace_id(half_right)]


def test_prometheus_finds_nothing_wrong_with_the_exposition(program: str, tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    assert promtool, f"{program} is installed without promtool"
    with Collector(tmp_path) as collector:
        assert collector.post("/v1/traces", otlp(turn(script(""))))[0] == 200
        assert until(lambda: collector.value("pathgauge_invocations_total"))
        text = collector.get("/metrics")[1]
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    ours = [line for line in checked.stderr.splitlines() if line.startswith("pathgauge_")]
    assert ours == []

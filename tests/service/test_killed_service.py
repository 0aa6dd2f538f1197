"""A collector that is killed and restarted: published results stay, and are published once."""

from __future__ import annotations

import subprocess
from pathlib import Path
from signal import SIGKILL, SIGTERM, Signals
from typing import Any

import pytest
import yaml

from support.running import PATHGAUGE, PATIENCE_S, QUICK, Collector, until
from support.turns import otlp, script, turn

REFERENCES: list[dict[str, Any]] = [
    {"scenario": "refund", "expected_tools": ["lookup", "refund"]},
    {"scenario": "talk", "turns": [{"expected_tools": ["greet"]}, {"expected_tools": ["help"]}]},
]
CRITERIA = {"tool_trajectory_avg_score": 1.0, "tool_trajectory_f1": 0.5, "latency": None}

RIGHT = script("refund", "lookup", "refund")
HALF_RIGHT = script("refund", "refund")

DURABLE = (
    "pathgauge_score_",
    "pathgauge_evaluations_total",
    "pathgauge_case",
    "pathgauge_threshold",
    "pathgauge_invocation",
    "pathgauge_last_evaluation",
    "pathgauge_trajectory_calls",
    "pathgauge_spans_",
    "pathgauge_traces_",
    "pathgauge_receiver_accepted",
)


def start(folder: Path, **options: Any) -> Collector:
    (folder / "references.yaml").write_text(yaml.safe_dump_all(REFERENCES))
    return Collector(
        folder,
        store={},
        references=["references.yaml"],
        criteria=CRITERIA,
        windows={"min_samples": 2},
        **{"assembly": QUICK, **options},
    )


def durable(collector: Collector) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """All series that must not change over a restart."""
    return {
        (sample.name, tuple(sample.labels.items())): sample.value
        for family in collector.families()
        for sample in family.samples
        if sample.name.startswith(DURABLE)
    }


def scored(collector: Collector) -> float:
    return collector.value("pathgauge_invocations_scored_total")


@pytest.mark.slow
@pytest.mark.parametrize("ending", [SIGKILL, SIGTERM])
def test_counters_windows_and_thresholds_go_on_where_they_were(
    tmp_path: Path, ending: Signals
) -> None:
    collector = start(tmp_path)
    for one in (RIGHT, HALF_RIGHT, HALF_RIGHT):
        assert collector.post("/v1/traces", otlp(turn(one)))[0] == 200
    assert until(lambda: scored(collector) == 3)
    before = durable(collector)
    collector.stop(ending)
    with start(tmp_path) as again:
        assert durable(again) == before
        mean = {"agent": "my_agent", "scenario": "refund", "metric": "tool_trajectory_avg_score"}
        assert again.value("pathgauge_score_window_mean", **mean) == pytest.approx(1 / 3)
        assert again.value("pathgauge_threshold_breached", **mean) == 1
        assert again.post("/v1/traces", otlp(turn(RIGHT)))[0] == 200
        assert until(lambda: scored(again) == 4)
        assert again.value("pathgauge_evaluations_total", **mean) == 4


@pytest.mark.slow
def test_a_trace_of_which_half_came_before_a_kill_is_scored_whole(tmp_path: Path) -> None:
    patient = {"settle": "300ms", "idle": "20s", "max_age": "30s"}
    spans = turn(RIGHT)
    collector = start(tmp_path, assembly=patient)
    assert collector.post("/v1/traces", otlp(spans[:-1]))[0] == 200
    assert collector.stop(SIGKILL) != 0
    with start(tmp_path, assembly=patient) as again:
        assert again.post("/v1/traces", otlp(spans[-1:]))[0] == 200
        assert until(lambda: scored(again) == 1)
        assert again.series(
            "pathgauge_score_window_mean", "metric", metric="tool_trajectory_avg_score"
        ) == {("tool_trajectory_avg_score",): 1.0}
        assert again.value("pathgauge_receiver_accepted_spans_total") == len(spans)
        assert again.value("pathgauge_spans_assembled_total") == len(spans)
        assert again.series("pathgauge_traces_completed_total", "reason") == {("root_ended",): 1.0}


@pytest.mark.slow
def test_a_conversation_goes_on_after_a_kill(tmp_path: Path) -> None:
    collector = start(tmp_path)
    assert collector.post("/v1/traces", otlp(turn(script("talk", "greet"))))[0] == 200
    assert until(lambda: scored(collector) == 1)
    collector.stop(SIGKILL)
    with start(tmp_path, conversations={"idle": "8s"}) as again:
        assert again.post("/v1/traces", otlp(turn(script("talk", "help"))))[0] == 200
        cases = {"metric": "tool_trajectory_avg_score", "outcome": "pass"}
        assert until(lambda: again.value("pathgauge_cases_total", **cases)) == 1
        assert again.series("pathgauge_case_turns_total", "state") == {
            ("matched",): 2.0,
            ("missing",): 0.0,
            ("unexpected",): 0.0,
        }


@pytest.mark.slow
def test_a_second_collector_on_the_same_store_says_why_it_does_not_start(tmp_path: Path) -> None:
    with start(tmp_path) as running:
        command = [str(PATHGAUGE), "serve", "--config", str(running.config)]
        second = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
    column = running.config.read_text().index("{}") + 1
    message = (
        f"pathgauge: {running.config}:1:{column}: store.path: found {tmp_path}/pathgauge-data in"
        " use, expected a separate folder for every collector\n"
    )
    assert (second.returncode, second.stderr) == (2, message)

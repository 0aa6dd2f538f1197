"""Criteria and references in shadow run beside the active ones, and never touch them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from pathgauge.collector.config import load
from pathgauge.collector.config.active import resolve
from pathgauge.collector.core.documents import ConfigError
from support.backfilled import RESULTS, configured, newest_results, rows
from support.past import CRITERIA, archive
from support.running import PATHGAUGE, Collector, until

PAST = archive(120, 600)
STRICT = {"tool_trajectory_f1": 1.0, "response_match_score": 0.99, "failure": None}
ASSEMBLY = {"settle": "1s", "idle": "2s", "max_age": "1m"}


def found(folder: Path, **settings: Any) -> tuple[Mapping[tuple[str, ...], Any], dict[str, Any]]:
    """The results, and the series without those of shadows, of a collector that got the past."""
    folder.mkdir()
    configured(folder)
    common = {"references": ["references.yaml"], "criteria": CRITERIA, "assembly": ASSEMBLY}
    conversations = {"conversations": {"idle": "1h"}, "store": {"path": "past"}}
    with Collector(folder, **common, **conversations, **settings) as collector:
        for one in PAST.traces:
            assert collector.post("/v1/traces", one.body)[0] == 200
        assert until(lambda: stored(folder) >= len(PAST.traces))
        scored = "pathgauge_invocations_scored_total"
        assert until(lambda: collector.value(scored) >= len(PAST.traces))
        series = {
            name: collector.series(name, "agent", "scenario", "metric", "outcome")
            for name in (
                "pathgauge_evaluations_total",
                "pathgauge_threshold",
                "pathgauge_score_window_mean",
                "pathgauge_invocations_scored_total",
            )
        }
        shadow = {
            "evaluations": collector.series(
                "pathgauge_shadow_evaluations_total", "metric", "verdict"
            ),
            "changes": collector.series("pathgauge_shadow_changes_total", "metric", "change"),
        }
    merged: dict[tuple[str, ...], Any] = {}
    for file in databases(folder):
        merged |= newest_results(file.parent)
    return merged, {"series": series, "shadow": shadow}


def databases(folder: Path) -> list[Path]:
    return sorted((folder / "past").rglob("pathgauge.db"))


def stored(folder: Path) -> int:
    return sum(len(rows(file.parent, RESULTS)) for file in databases(folder))


def without_shadow(results: Mapping[tuple[str, ...], Any]) -> dict[tuple[str, ...], Any]:
    return {
        key: (*row[:-1], {name: value for name, value in row[-1].items() if name != "shadow"})
        for key, row in results.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_the_active_results_and_series_are_those_without_a_shadow(
    workers: int, tmp_path: Path
) -> None:
    alone, before = found(tmp_path / "alone", workers=workers)
    shadow = {"shadow": {"criteria": STRICT}}
    both, after = found(tmp_path / "both", workers=workers, **shadow)
    assert without_shadow(both) == alone
    assert after["series"] == before["series"]
    stored = [row[-1]["shadow"] for row in both.values()]
    assert len(stored) == len(PAST.traces)
    assert len({one["setup"] for one in stored}) == 1
    verdicts: dict[tuple[str, str], float] = {}
    for one in stored:
        for result in one["criteria"]:
            key = result["name"], result["verdict"]
            verdicts[key] = verdicts.get(key, 0) + 1
    # A turn of a conversation may be evaluated anew; it is counted once, as it was at first.
    assert {key for key, _ in verdicts.items()} == set(after["shadow"]["evaluations"])
    assert verdicts["tool_trajectory_f1", "failed"] > 0
    changes = after["shadow"]["changes"]
    assert changes["tool_trajectory_f1", "same"] > 0
    assert set(before["shadow"]["evaluations"]) == set()


@pytest.mark.slow
def test_verdict_compares_both_before_the_switch(tmp_path: Path) -> None:
    (tmp_path / "both").parent.mkdir(exist_ok=True)
    wrong = {"scenario": "weather", "expected_tools": ["get_weather", "say_it"]}
    (tmp_path / "wrong.yaml").write_text(json.dumps(wrong))
    shadow = {"references": [str(tmp_path / "wrong.yaml")]}
    results, _ = found(tmp_path / "both", shadow=shadow)
    of_weather = [row[-1] for row in results.values() if row[1] == "weather"]
    assert {body["verdict"] for body in of_weather} == {"passed"}
    assert {
        one["verdict"]
        for body in of_weather
        for one in body["shadow"]["criteria"]
        if one["name"] == "tool_trajectory_avg_score"
    } == {"failed"}

    def verdict(agent: str, *options: str) -> dict[str, Any]:
        words = ["verdict", "--shadow", "--agent", agent, "--json", *options]
        done = subprocess.run(
            [str(PATHGAUGE), *words, "--config", str(tmp_path / "both" / "pathgauge.yaml")],
            capture_output=True,
            text=True,
            check=False,
            env=os.environ,
        )
        return {"status": done.returncode, **json.loads(done.stdout)}

    desk = verdict("desk", "--scenario", "weather")
    assert (desk["status"], desk["verdict"], desk["version"], desk["against"]) == (
        1,
        "worse",
        "shadow",
        "active",
    )
    metrics = {one["metric"]: one for one in desk["metrics"]}
    assert metrics["tool_trajectory_avg_score"]["difference"] == -1.0
    assert metrics["tool_trajectory_avg_score"]["pairs"] == len(of_weather)
    guide = verdict("guide")
    assert guide["status"] == 3


@pytest.mark.parametrize(
    ("shadow", "message"),
    [
        ({"criteria": {}, "references": []}, "shadow: found neither criteria nor references"),
        ({"criteria": {"tool_trajectory_f2": 1}}, "no scorer 'tool_trajectory_f2'"),
        (
            {"criteria": {"final_response_match_v2": 0.5}},
            "found criteria that ask a model or score sessions (final_response_match_v2), expected",
        ),
        (
            {"criteria": {"session_turns": 6}},
            "found criteria that ask a model or score sessions (session_turns), expected none",
        ),
    ],
)
def test_a_shadow_that_cannot_run_is_refused_at_the_start(
    shadow: Any, message: str, tmp_path: Path
) -> None:
    path = configured(tmp_path, shadow=shadow)
    with pytest.raises(ConfigError) as raised:
        resolve(load(path))
    assert message in str(raised.value)

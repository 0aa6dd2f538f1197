"""Criteria and references in shadow run beside the active ones, in every shape, and never touch
them.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from pathgauge.collector.config import load
from pathgauge.collector.config.active import resolve
from pathgauge.collector.core.documents import ConfigError
from support.backfilled import configured
from support.past import CRITERIA, Past, archive
from support.running import PATHGAUGE, PATIENCE_S, Collector, until
from support.shapes import EACH_SHAPE, Shape, started

PAST = archive(120, 600)
STRICT = {"tool_trajectory_f1": 1.0, "response_match_score": 0.99, "failure": None}
ASSEMBLY = {"settle": "1s", "idle": "2s", "max_age": "1m"}
SCORED = "pathgauge_invocations_scored_total"


@contextmanager
def running(name: str, folder: Path, **settings: Any) -> Iterator[Shape]:
    """One of `SHAPES` that got the past, and has scored it."""
    folder.mkdir()
    references = configured(folder).with_name("references.yaml")
    common = {"references": [str(references)], "criteria": CRITERIA, "assembly": ASSEMBLY}
    conversations = {"conversations": {"idle": "1h"}}
    with started(name, folder / "shape", {**common, **conversations, **settings}) as shape:
        assert until(shape.is_shared)
        first = {one.conversation: one for one in reversed(PAST.traces)}.values()
        send(shape, first, len(first))
        send(shape, [one for one in PAST.traces if one not in first], len(PAST.traces))
        yield shape


def send(shape: Shape, traces: Iterable[Past], expected: int) -> None:
    """Send these, and wait until so many are scored and nothing is on its way. Scorers of a cluster
    read at their own pace, and a turn that overtakes an earlier one is counted as what it seems to
    be at first.
    """
    for one in traces:
        assert until(lambda: shape.receiver.post("/v1/traces", one.body)[0] == 200)  # noqa: B023
    assert until(lambda: len(shape.stored().results) == expected)
    assert shape.settles(PATIENCE_S)
    assert until(lambda: shape.gauge.value(SCORED) == expected)


def found(
    name: str, folder: Path, **settings: Any
) -> tuple[Mapping[tuple[str, ...], Any], Mapping[str, Any], Mapping[str, Any]]:
    """The results, the series without those of shadows, and these."""
    with running(name, folder, **settings) as shape:
        gauge = shape.gauge
        series = {
            name: gauge.series(name, "agent", "scenario", "metric", "outcome")
            for name in (
                "pathgauge_evaluations_total",
                "pathgauge_threshold",
                "pathgauge_score_window_mean",
                SCORED,
            )
        }
        shadow = {
            "evaluations": gauge.series("pathgauge_shadow_evaluations_total", "metric", "verdict"),
            "changes": gauge.series("pathgauge_shadow_changes_total", "metric", "change"),
        }
        return shape.stored().results, series, shadow


def without_shadow(results: Mapping[tuple[str, ...], Any]) -> dict[tuple[str, ...], Any]:
    return {
        key: (*row[:-1], {name: value for name, value in row[-1].items() if name != "shadow"})
        for key, row in results.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH_SHAPE)
def test_the_active_results_and_series_are_those_without_a_shadow(
    name: str, tmp_path: Path
) -> None:
    alone, before, none = found(name, tmp_path / "alone")
    both, after, shadow = found(name, tmp_path / "both", shadow={"criteria": STRICT})
    assert without_shadow(both) == alone
    assert after == before
    assert not none["evaluations"]
    stored = [row[-1]["shadow"] for row in both.values()]
    assert len(stored) == len(PAST.traces)
    assert len({one["setup"] for one in stored}) == 1
    verdicts: dict[tuple[str, str], float] = {}
    for one in stored:
        for result in one["criteria"]:
            key = result["name"], result["verdict"]
            verdicts[key] = verdicts.get(key, 0) + 1
    # A turn of a conversation may be evaluated anew; it is counted once, as it was at first.
    assert {key for key, _ in verdicts.items()} == set(shadow["evaluations"])
    assert verdicts["tool_trajectory_f1", "failed"] > 0
    assert shadow["changes"]["tool_trajectory_f1", "same"] > 0


def verdict(gauge: Collector, agent: str, *options: str) -> dict[str, Any]:
    words = ["verdict", "--shadow", "--agent", agent, "--json", *options]
    done = subprocess.run(
        [str(PATHGAUGE), *words, "--config", str(gauge.config)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout, done.stderr
    return {"status": done.returncode, **json.loads(done.stdout)}


@pytest.mark.slow
@pytest.mark.parametrize("name", EACH_SHAPE)
def test_verdict_compares_both_before_the_switch(name: str, tmp_path: Path) -> None:
    wrong = {"scenario": "weather", "expected_tools": ["get_weather", "say_it"]}
    (tmp_path / "wrong.yaml").write_text(json.dumps(wrong))
    shadow = {"references": [str(tmp_path / "wrong.yaml")]}
    with running(name, tmp_path / "both", shadow=shadow) as shape:
        results = shape.stored().results
        of_weather = [row[-1] for row in results.values() if row[1] == "weather"]
        assert {body["verdict"] for body in of_weather} == {"passed"}
        assert {
            one["verdict"]
            for body in of_weather
            for one in body["shadow"]["criteria"]
            if one["name"] == "tool_trajectory_avg_score"
        } == {"failed"}
        desk = verdict(shape.gauge, "desk", "--scenario", "weather")
        guide = verdict(shape.gauge, "guide")
    assert (desk["status"], desk["verdict"], desk["version"], desk["against"]) == (
        1,
        "worse",
        "shadow",
        "active",
    )
    metrics = {one["metric"]: one for one in desk["metrics"]}
    assert metrics["tool_trajectory_avg_score"]["difference"] == -1.0
    assert metrics["tool_trajectory_avg_score"]["pairs"] == len(of_weather)
    assert guide["status"] == 3


@pytest.mark.parametrize(
    ("shadow", "message"),
    [
        ({"criteria": {}, "references": []}, "shadow: found neither criteria nor references"),
        ({"criteria": {"tool_trajectory_f2": 1}}, "no scorer 'tool_trajectory_f2'"),
        (
            {"criteria": {"final_response_match_v2": 0.5}},
            "found criteria that ask a model (final_response_match_v2) and no budget, expected",
        ),
        (
            {"criteria": {"session_turns": 6}},
            "found criteria that score sessions (session_turns), expected none",
        ),
        (
            {"criteria": {"safety_v1": 1}, "budget": {}},
            "shadow.budget: found no limit, expected at least one",
        ),
        (
            {"criteria": {"safety_v1": 1}, "budget": {"usd_per_day": 1}},
            "found a budget in US dollars and no price of local:judge, expected one",
        ),
    ],
)
def test_a_shadow_that_cannot_run_is_refused_at_the_start(
    shadow: Any, message: str, tmp_path: Path
) -> None:
    provider = {"base_url": "http://127.0.0.1:1", "allow_private": True}
    judge = {"model": "local:judge", "providers": {"local": provider}}
    path = configured(tmp_path, shadow=shadow, judge=judge)
    with pytest.raises(ConfigError) as raised:
        resolve(load(path))
    assert message in str(raised.value)


def test_with_references_only_judges_are_left_out_without_a_budget(tmp_path: Path) -> None:
    shadow = {"references": ["references.yaml"]}
    path = configured(tmp_path, shadow=shadow, criteria={**CRITERIA, "safety_v1": 1.0})
    found = resolve(load(path))
    assert found.shadow is not None
    assert "safety_v1" not in [one.name for one in found.shadow.evaluator.criteria]
    [warning] = [one for one in found.warnings if one.startswith("shadow")]
    assert "(shadow.budget would let them run)" in warning

"""The alerts that compare means, on simulated hours of pure noise and on hours with real drops.

`make e2e` simulates 40 scenarios of 25 hours each (1,000 hours), other runs simulate 4. Other
values of `NOISE_SEED` give other noise; with a few of them one alert fires by chance. The default
tests only run the last test, which checks false and missed alerts at once.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import accumulate, repeat
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from pathgauge.collector.sinks.prometheus.rules import Choices, to_yaml
from support.courses import Values, named, written
from support.promtool import needs_promtool, run

pytestmark = needs_promtool

STEP = 20
"""Minutes between two evaluations of the rules. An alert fires after two evaluations in a row."""
WARM_UP, HOURS = 25, 25
STEPS = (WARM_UP + HOURS) * 60 // STEP
SCENARIOS = 40 if os.environ.get("PATHGAUGE_E2E") else 4
PASS_RATE, THRESHOLD, OBJECTIVE = 0.93, 0.9, 0.9
SCORES_A_STEP = 10
"""Each score is 0 or 1: no other scores from 0 to 1 vary more."""
WINDOW = 100
"""The scores in the window of the collector."""
HOURS_A_VERSION = 20
COMPARING_MEANS = ("pathgauge.scores.", "pathgauge.versions.", "pathgauge.budgets.")
"""The groups of rules whose alerts compare means."""
SEED = int(os.environ.get("NOISE_SEED") or 2026)


def simulated(scenario: str, pass_rates: Iterable[float], random: Random) -> dict[str, Values]:
    """The series of a scenario. `pass_rates`: for each step the probability that a score is 1."""
    passes = [[float(random.random() < rate) for _ in range(SCORES_A_STEP)] for rate in pass_rates]
    labels = {"agent": f"agent of {scenario}", "scenario": scenario, "metric": "f1"}
    samples = [min(WINDOW, SCORES_A_STEP * (step + 1)) for step in range(STEPS)]
    scores = [score for step in passes for score in step]
    means = [
        sum(scores[:end][-WINDOW:]) / count
        for end, count in zip(
            range(SCORES_A_STEP, len(scores) + 1, SCORES_A_STEP), samples, strict=True
        )
    ]
    series: dict[str, Values] = {
        named("pathgauge_score_window_mean", **labels): means,
        named("pathgauge_score_window_samples", **labels): samples,
        named("pathgauge_threshold", **labels): [THRESHOLD] * STEPS,
        named("pathgauge_objective", **labels): [OBJECTIVE] * STEPS,
    }
    steps_a_version = HOURS_A_VERSION * 60 // STEP
    for number, start in enumerate(range(0, STEPS, steps_a_version)):
        series |= _version(f"{number}.0", start, passes[start : start + steps_a_version], labels)
    return series


def _version(
    version: str, start: int, passes: Sequence[Sequence[float]], labels: dict[str, str]
) -> dict[str, Values]:
    """The counters of a version that is deployed at step `start`. They stay when it is replaced."""

    def counter(increases: Iterable[float]) -> Values:
        # 0 in the step before the first score, so that `increase` sees this score
        before = [*[None] * (start - 1), 0.0][-start:] if start else []
        values = [*before, *accumulate(increases)]
        return [*values, *repeat(values[-1], STEPS - len(values))]

    of = {**labels, "agent_version": version}
    passed = counter(sum(step) for step in passes)
    first = passed.count(None) * STEP * 60.0
    first_seen: Values = [None if value is None else first for value in passed]
    return {
        named("pathgauge_score_sum", **of): passed,
        named("pathgauge_score_count", **of): counter(float(len(step)) for step in passes),
        named("pathgauge_evaluations_total", outcome="pass", **of): passed,
        named("pathgauge_evaluations_total", outcome="fail", **of): counter(
            len(step) - sum(step) for step in passes
        ),
        named(
            "pathgauge_agent_version_first_seen_timestamp_seconds",
            agent=labels["agent"],
            agent_version=version,
        ): first_seen,
    }


def alerts_fired(folder: Path, series: dict[str, Values], groups: list[dict[str, Any]]) -> str:
    """The alerts after the warm-up, in the words of promtool, or `SUCCESS` if there were none."""
    info = named(
        "pathgauge_metric_info", metric="f1", min="0", max="1", direction="higher_is_better"
    )
    test = {
        "interval": f"{STEP}m",
        "input_series": written({info: [1.0] * STEPS, **series}),
        "promql_expr_test": [
            {
                "expr": (
                    "count by (alertname, scenario, window, baseline)"
                    f' (count_over_time(ALERTS{{alertstate="firing"}}[{HOURS}h]))'
                ),
                "eval_time": f"{(STEPS - 1) * STEP}m",
                "exp_samples": [],
            }
        ],
    }
    return run(folder, groups, test, step=STEP)


def rules(sigmas: float = 4) -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load(to_yaml(Choices(sigmas=sigmas)))["groups"]
    return [group for group in groups if group["name"].startswith(COMPARING_MEANS)]


def noise(seed: int) -> dict[str, Values]:
    """All scenarios, with a constant pass rate."""
    random = Random(seed)
    series: dict[str, Values] = {}
    for number in range(SCENARIOS):
        series |= simulated(f"s{number}", [PASS_RATE] * STEPS, random)
    return series


@pytest.mark.slow
def test_noise_triggers_no_alert(tmp_path: Path) -> None:
    assert alerts_fired(tmp_path, noise(SEED), rules()) == "SUCCESS"


@pytest.mark.slow
def test_the_same_noise_triggers_alerts_at_one_standard_error(tmp_path: Path) -> None:
    """The test above can fail."""
    fired = alerts_fired(tmp_path, noise(SEED), rules(sigmas=1))
    assert "PathgaugeScoreRegression" in fired
    assert "PathgaugeVersionRegression" in fired
    assert "PathgaugeFailureBudgetBurn" not in fired


@pytest.mark.slow
def test_only_scenarios_with_a_real_drop_trigger_alerts(tmp_path: Path) -> None:
    """The pass rate of some scenarios drops to 0.6 for the last five hours."""
    series = noise(SEED)
    worse = {"s1", "s2", "s3"}
    random = Random(SEED)
    for scenario in sorted(worse):
        series |= simulated(scenario, [PASS_RATE] * (STEPS - 15) + [0.6] * 15, random)
    fired = alerts_fired(tmp_path, series, rules())
    assert set(re.findall(r'scenario="(\w+)"', fired)) == worse

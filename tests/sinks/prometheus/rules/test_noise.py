"""The burn-rate alerts on simulated hours of pure noise, and on hours with real drops.

`make e2e` simulates 40 scenarios of 25 hours each (1,000 hours), other runs simulate 4. Other
values of `NOISE_SEED` give other noise. The default tests only run the last test, which checks
false and missed alerts at once. The alerts about drift have simulations of their own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import accumulate
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
PASS_RATE, OBJECTIVE = 0.93, 0.9
SCORES_A_STEP = 10
BUDGETS = "pathgauge.budgets."
"""The groups of rules whose alerts compare shares of failures."""
SEED = int(os.environ.get("NOISE_SEED") or 2026)


def simulated(scenario: str, pass_rates: Iterable[float], random: Random) -> dict[str, Values]:
    """The series of a scenario. `pass_rates`: for each step the probability of a pass."""
    passed = [sum(random.random() < rate for _ in range(SCORES_A_STEP)) for rate in pass_rates]
    failed = [SCORES_A_STEP - passes for passes in passed]
    of = {"agent": f"agent of {scenario}", "scenario": scenario, "metric": "f1"}
    return {
        named("pathgauge_objective", **of): [OBJECTIVE] * STEPS,
        named("pathgauge_evaluations_total", outcome="pass", **of): [*accumulate(passed)],
        named("pathgauge_evaluations_total", outcome="fail", **of): [*accumulate(failed)],
    }


def alerts_fired(folder: Path, series: dict[str, Values], groups: list[dict[str, Any]]) -> str:
    """The alerts after the warm-up, in the words of promtool, or `SUCCESS` if there were none."""
    test = {
        "interval": f"{STEP}m",
        "input_series": written(series),
        "promql_expr_test": [
            {
                "expr": (
                    "count by (alertname, scenario, window)"
                    f' (count_over_time(ALERTS{{alertstate="firing"}}[{HOURS}h]))'
                ),
                "eval_time": f"{(STEPS - 1) * STEP}m",
                "exp_samples": [],
            }
        ],
    }
    return run(folder, groups, test, step=STEP)


def rules() -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load(to_yaml(Choices()))["groups"]
    return [group for group in groups if group["name"].startswith(BUDGETS)]


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
def test_only_scenarios_with_a_real_drop_trigger_alerts(tmp_path: Path) -> None:
    """The pass rate of some scenarios drops to 0.2 for the last seven hours. A drop that does not
    fill the window of six hours is missed with every third seed, because so few runs are scored.
    """
    series = noise(SEED)
    worse = {"s1", "s2", "s3"}
    random = Random(SEED)
    for scenario in sorted(worse):
        series |= simulated(scenario, [PASS_RATE] * (STEPS - 21) + [0.2] * 21, random)
    fired = alerts_fired(tmp_path, series, rules())
    assert set(re.findall(r'scenario="(\w+)"', fired)) == worse

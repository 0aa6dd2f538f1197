"""The alerts that judge means, over hours of scores in which nothing but chance is at work, and
over some in which it is not.

There are 1,000 hours of it in `make e2e`, and 200 elsewhere. `NOISE_SEED` gives other ones, of
which a few have an alert by chance.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

from support.courses import Values, named, written
from support.promtool import needed, needs_promtool, rule_groups, run

pytestmark = needs_promtool

STEP = 20
"""Minutes; three evaluations of the rules in an hour, of which two in a row must agree before an
alert fires.
"""
WARM_UP, HOURS = 25, 25
SCENARIOS = 40 if os.environ.get("PATHGAUGE_E2E") else 8
PASSES, THRESHOLD, OBJECTIVE = 0.93, 0.9, 0.9
AN_HOUR = 30
"""Scores; each is 0 or 1, which varies more than any other between these."""
JUDGING = (
    "PathgaugeScoreBelowThreshold",
    "PathgaugeScoreRegression",
    "PathgaugeVersionRegression",
    "PathgaugeFailureBudgetBurn",
)
SEED = int(os.environ.get("NOISE_SEED") or 2026)


def simulated(scenario: str, passes: Iterable[float], random: Random) -> dict[str, Values]:
    """The series of a scenario of which each score is 1 with these probabilities, one for each
    step. A new version comes every 20 hours.
    """
    scores: list[float] = []
    versions: dict[str, list[list[float | None]]] = {}
    means: list[float | None] = []
    steps = list(passes)
    for step, probability in enumerate(steps):
        drawn = [float(random.random() < probability) for _ in range(AN_HOUR * STEP // 60)]
        scores = (scores + drawn)[-100:]
        means.append(sum(scores) / len(scores))
        version = f"{step * STEP // 60 // 20}.0"
        before = (
            [*[None] * (step - 1), 0.0][-step:] if step else []
        )  # a series is 0 before its first score, however short
        total, count = versions.setdefault(version, [list(before), list(before)])
        for counted, more in ((total, sum(drawn)), (count, float(len(drawn)))):
            counted.append(((counted[-1] or 0.0) if counted else 0.0) + more)
    return _series(scenario, len(steps), means, versions)


def _series(
    scenario: str,
    steps: int,
    means: list[float | None],
    versions: dict[str, list[list[float | None]]],
) -> dict[str, Values]:
    of = {"agent": f"agent of {scenario}", "scenario": scenario, "metric": "f1"}
    series: dict[str, Values] = {
        named("pathgauge_score_window_mean", **of): means,
        named("pathgauge_score_window_samples", **of): [
            min(100.0, 10.0 * (step + 1)) for step in range(steps)
        ],
        named("pathgauge_threshold", **of): [THRESHOLD] * steps,
        named("pathgauge_objective", **of): [OBJECTIVE] * steps,
    }
    for version, (total, count) in versions.items():
        since = [value is None for value in total].count(True)
        of_version = {**of, "agent_version": version}
        rest = steps - len(total)
        lasting = [[*values, *[values[-1]] * rest] for values in (total, count)]
        fails = [None if t is None or c is None else c - t for t, c in zip(*lasting, strict=True)]
        series |= {
            named("pathgauge_score_sum", **of_version): lasting[0],
            named("pathgauge_score_count", **of_version): lasting[1],
            named("pathgauge_evaluations_total", outcome="pass", **of_version): lasting[0],
            named("pathgauge_evaluations_total", outcome="fail", **of_version): fails,
            named(
                "pathgauge_agent_version_first_seen_timestamp_seconds",
                agent=of["agent"],
                agent_version=version,
            ): [None if value is None else since * STEP * 60.0 for value in lasting[0]],
        }
    return series


def firing(
    folder: Path, series: dict[str, Values], steps: int, groups: list[dict[str, Any]]
) -> str:
    """What promtool says when it expects no alert after the warm-up; `SUCCESS` when there was none."""
    hours = steps * STEP // 60 - WARM_UP
    info = named(
        "pathgauge_metric_info", metric="f1", min="0", max="1", direction="higher_is_better"
    )
    test = {
        "interval": f"{STEP}m",
        "input_series": written({info: [1.0] * steps, **series}),
        "promql_expr_test": [
            {
                "expr": (
                    "count by (alertname, scenario, window, baseline)"
                    f' (count_over_time(ALERTS{{alertstate="firing"}}[{hours}h]))'
                ),
                "eval_time": f"{(steps - 1) * STEP}m",
                "exp_samples": [],
            }
        ],
    }
    return run(folder, groups, test, step=STEP)


def rules(sigmas: float = 4) -> list[dict[str, Any]]:
    """The judging alerts, which wait for so many standard errors."""
    by_name = {group["name"]: {**group, "rules": []} for group in rule_groups()}
    for alert in JUDGING:
        for group in needed(alert):
            by_name[group["name"]]["rules"] += [
                rule for rule in group["rules"] if rule not in by_name[group["name"]]["rules"]
            ]
    for group in by_name.values():
        group["rules"] = [
            (
                {**rule, "expr": rule["expr"].replace("4 * ", f"{sigmas:g} * ")}
                if "alert" in rule
                else rule
            )
            for rule in group["rules"]
        ]
    return [group for group in by_name.values() if group["rules"]]


def noise(seed: int) -> tuple[dict[str, Values], int]:
    steps = (WARM_UP + HOURS) * 60 // STEP
    random = Random(seed)
    series = {
        key: of
        for number in range(SCENARIOS)
        for key, of in simulated(f"s{number}", [PASSES] * steps, random).items()
    }
    return series, steps


def test_hours_of_chance_alone_are_no_alert(tmp_path: Path) -> None:
    assert firing(tmp_path, *noise(SEED), rules()) == "SUCCESS"


def test_the_same_chance_is_seen_by_rules_that_wait_for_less(tmp_path: Path) -> None:
    """What is demanded of the noise can fail: at one standard error there are alerts of all kinds
    that judge means.
    """
    said = firing(tmp_path, *noise(SEED), rules(sigmas=1))
    assert all(
        alert in said for alert in ("PathgaugeScoreRegression", "PathgaugeVersionRegression")
    )
    assert "PathgaugeFailureBudgetBurn" not in said


def test_scenarios_that_get_worse_are_found_among_the_others(tmp_path: Path) -> None:
    """Three fall to 0.6 for the last five hours; no other one is an alert."""
    series, steps = noise(SEED)
    worse = {f"s{number}" for number in (1, 4, 6)}
    random = Random(SEED)
    for name in worse:
        for key in [
            key
            for key in series
            if f'scenario="{name}"' in key or f'agent="agent of {name}"' in key
        ]:
            del series[key]
        series |= simulated(name, [PASSES] * (steps - 15) + [0.6] * 15, random)
    said = firing(tmp_path, series, steps, rules())
    assert set(re.findall(r'scenario="(\w+)"', said)) == worse

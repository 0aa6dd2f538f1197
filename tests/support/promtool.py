"""Runs the unit tests of Prometheus over the shipped rules: series and expectations come in,
promtool's verdict goes out.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.courses import Course, Values, written
from support.repository import DEPLOY

RULES = DEPLOY / "prometheus" / "rules.yml"
RECORDED = re.compile(r"\w+:\w+:\w+")
MISSING = "promtool is not on PATH: sudo apt-get install prometheus"
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason=MISSING)


def rule_groups(path: Path = RULES) -> list[dict[str, Any]]:
    """The groups of a rule file."""
    groups: list[dict[str, Any]] = yaml.safe_load(path.read_text())["groups"]
    return groups


def alert_rules(path: Path = RULES) -> list[dict[str, Any]]:
    """The alerts of a rule file; some names stand several times."""
    return [rule for group in rule_groups(path) for rule in group["rules"] if "alert" in rule]


def needed(alert: str, **labels: str) -> list[dict[str, Any]]:
    """The alert, of several of its name the one with these labels, and the records that it reads:
    promtool takes its time for each rule.
    """
    groups = rule_groups()
    rules = [rule for group in groups for rule in group["rules"]]
    wanted = [
        rule
        for rule in rules
        if rule.get("alert") == alert and labels.items() <= rule["labels"].items()
    ]
    for rule in wanted:  # which grows meanwhile
        read = set(RECORDED.findall(rule["expr"]))
        wanted += [other for other in rules if other.get("record") in read and other not in wanted]
    kept = [
        {**group, "rules": [rule for rule in group["rules"] if rule in wanted]} for group in groups
    ]
    return [group for group in kept if group["rules"]]


def run(folder: Path, groups: list[dict[str, Any]], *tests: dict[str, Any], step: int = 1) -> str:
    """What promtool has against these groups of rules; `SUCCESS` when nothing."""
    (folder / "rules.json").write_text(json.dumps({"groups": groups}))  # which is YAML, too
    document = {
        "rule_files": ["rules.json"],
        "evaluation_interval": f"{step}m",
        "group_eval_order": [group["name"] for group in groups],
        "tests": tests,
    }
    file = folder / "test.json"
    file.write_text(json.dumps(document))
    done = subprocess.run(
        ["promtool", "test", "rules", file],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    return (done.stdout + done.stderr).removeprefix(f"Unit Testing:  {file}").strip()


def fired(alert: str, minutes: int, at: int) -> dict[str, str]:
    """A question whose answer is empty when the alert did not fire in the minutes before `at`."""
    return {
        "expr": f'count_over_time(ALERTS{{alertname="{alert}", alertstate="firing"}}[{minutes}m])',
        "eval_time": f"{at}m",
    }


def story(
    course: Course, series: Mapping[str, Values], alert: str, *expected: tuple[dict[str, str], str]
) -> dict[str, Any]:
    """A test: silence until it gets bad, then the expected alerts, each by labels and description,
    and silence at the end.
    """
    of = next(rule["annotations"] for rule in alert_rules() if rule["alert"] == alert)
    alerts = [
        {"exp_labels": labels, "exp_annotations": {**of, "description": description}}
        for labels, description in expected
    ]
    return {
        "interval": f"{course.step}m",
        "input_series": written(series),
        "promql_expr_test": [
            {**fired(alert, course.before, course.before - course.step), "exp_samples": []}
        ],
        "alert_rule_test": [
            {
                "alertname": alert,
                "eval_time": f"{course.turning - course.step}m",
                "exp_alerts": alerts,
            },
            {"alertname": alert, "eval_time": f"{course.end - course.step}m", "exp_alerts": []},
        ],
    }

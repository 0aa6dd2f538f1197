"""Runs the unit tests of Prometheus over the shipped rules: series and expectations come in, promtool's verdict goes out."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from courses import Course, Values, written

RULES = Path(__file__).parents[2] / "deploy" / "prometheus" / "rules.yml"
MISSING = "promtool is not on PATH: sudo apt-get install prometheus"
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason=MISSING)


def rule_groups(path: Path = RULES) -> list[dict[str, Any]]:
    """The groups of a rule file."""
    groups: list[dict[str, Any]] = yaml.safe_load(path.read_text())["groups"]
    return groups


def alert_rules(path: Path = RULES) -> list[dict[str, Any]]:
    """The alerts of a rule file; some names stand several times."""
    return [rule for group in rule_groups(path) for rule in group["rules"] if "alert" in rule]


def needed(*alerts: str) -> list[dict[str, Any]]:
    """The rules that alerts need: themselves and the records of their parts of the file. The part of versions reads that of scores."""
    groups = rule_groups()
    parts = {_part(group) for group in groups if any(rule.get("alert") in alerts for rule in group["rules"])}
    parts |= {"scores"} if "versions" in parts else set()
    kept = [(group, [rule for rule in group["rules"] if rule.get("alert", alerts[0]) in alerts]) for group in groups]
    return [{**group, "rules": rules} for group, rules in kept if rules and _part(group) in parts]


def _part(group: dict[str, Any]) -> str:
    part: str = group["name"].split(".")[1]
    return part


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
    done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, timeout=280, check=False)
    return (done.stdout + done.stderr).removeprefix(f"Unit Testing:  {file}").strip()


def fired(alert: str, minutes: int, at: int) -> dict[str, str]:
    """A question whose answer is empty when the alert did not fire in the minutes before `at`."""
    return {"expr": f'count_over_time(ALERTS{{alertname="{alert}", alertstate="firing"}}[{minutes}m])', "eval_time": f"{at}m"}


def story(course: Course, series: Mapping[str, Values], alert: str, *expected: tuple[dict[str, str], str]) -> dict[str, Any]:
    """A test: silence until it gets bad, then the expected alerts, each by labels and description, and silence at the end."""
    of = {rule["alert"]: rule["annotations"] for rule in alert_rules()}[alert]
    alerts = [{"exp_labels": labels, "exp_annotations": {**of, "description": description}} for labels, description in expected]
    return {
        "interval": f"{course.step}m",
        "input_series": written(series),
        "promql_expr_test": [{**fired(alert, course.before, course.before - course.step), "exp_samples": []}],
        "alert_rule_test": [
            {"alertname": alert, "eval_time": f"{course.turning - course.step}m", "exp_alerts": alerts},
            {"alertname": alert, "eval_time": f"{course.end - course.step}m", "exp_alerts": []},
        ],
    }

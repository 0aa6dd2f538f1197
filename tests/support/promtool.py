"""Runs unit tests of the shipped Prometheus rules with promtool."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus

import pytest
import yaml

from support.courses import Course, Values, written
from support.repository import DEPLOY

RULES = DEPLOY / "prometheus" / "rules.yml"
_WITH = re.compile(r"\{\{ with (?:reReplaceAll \S+ \S+ )?\$labels\.(\w+) \}\}(.*?)\{\{ end \}\}")
_LABEL = re.compile(r"\{\{ \$labels\.(\w+)(?: \| urlquery)? \}\}")
RECORD_NAME = re.compile(r"\w+:\w+:\w+")
MISSING = "promtool is not on PATH: sudo apt-get install prometheus"
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason=MISSING)


@cache
def rule_groups() -> list[dict[str, Any]]:
    """The groups of the rule file, which is read once. Callers must not change them."""
    groups: list[dict[str, Any]] = yaml.safe_load(RULES.read_text())["groups"]
    return groups


def alert_rules() -> list[dict[str, Any]]:
    """The alerts of the rule file. Several may have the same name."""
    return [rule for group in rule_groups() for rule in group["rules"] if "alert" in rule]


def rules_for(alert: str, **labels: str) -> list[dict[str, Any]]:
    """The groups reduced to the alerts with this name and these labels and to the records that they
    read: promtool needs time for every rule.
    """
    groups = rule_groups()
    rules = [rule for group in groups for rule in group["rules"]]
    required = [
        rule
        for rule in rules
        if rule.get("alert") == alert and labels.items() <= rule["labels"].items()
    ]
    for rule in required:  # grows during the loop
        description = rule.get("annotations", {}).get("description", "")
        read = set(RECORD_NAME.findall(f"{rule['expr']} {description}"))
        required += [
            other for other in rules if other.get("record") in read and other not in required
        ]
    reduced = [
        {**group, "rules": [rule for rule in group["rules"] if rule in required]}
        for group in groups
    ]
    return [group for group in reduced if group["rules"]]


def run(folder: Path, groups: list[dict[str, Any]], *tests: dict[str, Any], step: int = 1) -> str:
    """The complaints of promtool about these groups of rules, or `SUCCESS`. `step` is the
    evaluation interval in minutes.
    """
    (folder / "rules.json").write_text(json.dumps({"groups": groups}))  # JSON is YAML
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
    lines = (done.stdout + done.stderr).splitlines()
    return "\n".join(line for line in lines if str(file) not in line).strip()


@cache
def _counts_the_beginning_of_a_range() -> bool:
    """Prometheus 2 counts a value at the beginning of a range, Prometheus 3 does not."""
    if shutil.which("promtool") is None:
        return True
    version = subprocess.run(["promtool", "--version"], capture_output=True, text=True, check=True)
    return "promtool, version 2." in version.stdout + version.stderr


def by_range(with_beginning: str, without: str) -> str:
    """What a rule says in a test whose values lie at the beginning of its range."""
    return with_beginning if _counts_the_beginning_of_a_range() else without


def fired(alert: str, minutes: int, at: int) -> dict[str, str]:
    """A query without result if the alert did not fire in the `minutes` before minute `at`."""
    return {
        "expr": f'count_over_time(ALERTS{{alertname="{alert}", alertstate="firing"}}[{minutes}m])',
        "eval_time": f"{at}m",
    }


def always_firing(alert: str, series: Mapping[str, Values], begin: int, end: int) -> dict[str, Any]:
    """A unit test: one alert fires from minute `begin` to minute `end` without a break."""
    firing = f'ALERTS{{alertname="{alert}", alertstate="firing"}}'
    minutes = end - begin
    return {
        "interval": "1m",
        "input_series": written(series),
        "promql_expr_test": [
            {
                # Half a minute more, so that every version of Prometheus counts `begin`.
                "expr": f"sum(count_over_time({firing}[{minutes}m30s]))",
                "eval_time": f"{end}m",
                "exp_samples": [{"labels": "{}", "value": minutes + 1}],
            }
        ],
    }


def _links(texts: Mapping[str, str], labels: Mapping[str, str]) -> dict[str, str]:
    """The texts, with the names of `labels` in the link to the results."""

    def value(found: re.Match[str]) -> str:
        return quote_plus(labels.get(found[1], ""))

    def if_present(found: re.Match[str]) -> str:
        name, text = found.groups()
        known = labels.get(name, "").replace("__other__", "")
        return text.replace("{{ . | urlquery }}", quote_plus(known)) if known else ""

    if "results_url" not in texts:
        return dict(texts)
    link = _WITH.sub(if_present, " ".join(texts["results_url"].split()))
    return {**texts, "results_url": _LABEL.sub(value, link)}


def alert_test(
    course: Course, series: Mapping[str, Values], alert: str, *expected: tuple[dict[str, str], str]
) -> dict[str, Any]:
    """A unit test: no alert before the bad phase, the expected alerts (labels and description) at
    its end, and no alert at the end of the good phase.
    """
    texts = next(rule["annotations"] for rule in alert_rules() if rule["alert"] == alert)
    alerts = [
        {
            "exp_labels": labels,
            "exp_annotations": {**_links(texts, labels), "description": description},
        }
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


def assert_alerts(
    folder: Path,
    course: Course,
    series: Mapping[str, Values],
    alert: str,
    *expected: tuple[dict[str, str], str],
    **labels: str,
) -> None:
    """Runs `alert_test`. With `labels`, only the rules of the alert that have these."""
    test = alert_test(course, series, alert, *expected)
    result = run(folder, rules_for(alert, **labels), test, step=course.step)
    assert result == "SUCCESS", result

"""The shipped rule file is up to date, follows the conventions of Prometheus, and reads existing
series.
"""

from __future__ import annotations

import re
import subprocess
from typing import Any

import pytest

from pathgauge.collector.sinks.prometheus.rules import Choices, to_yaml
from pathgauge.collector.sinks.prometheus.rules.options import RUNBOOKS
from support.promtool import RULES, alert_rules, needs_promtool, rule_groups
from support.repository import DOCS

DOCUMENTED = re.compile(r"^\| `(pathgauge_\w+)` \| (\w+) \|", re.MULTILINE)
WRITTEN_BY_PROMETHEUS = {"up", "process_start_time_seconds"}
NAME = re.compile(
    r"(?<![\w:\"$])[a-z]\w*:pathgauge_\w+:\w+|(?<![\w:])pathgauge_\w+|(?<![\w:])(?:up|process_start_time_seconds)(?=\{)"
)
ALERTS = alert_rules()


def rules() -> list[dict[str, Any]]:
    return [rule for group in rule_groups() for rule in group["rules"]]


def exported() -> set[str]:
    """The names of the series of `docs/metrics.md`. Another test compares that page with the
    registry.
    """
    names = set()
    for name, kind in DOCUMENTED.findall((DOCS / "metrics.md").read_text()):
        names |= (
            {f"{name}_bucket", f"{name}_sum", f"{name}_count"} if kind == "histogram" else {name}
        )
    return names | WRITTEN_BY_PROMETHEUS


def test_the_file_is_the_output_of_the_command() -> None:
    assert RULES.read_text() == to_yaml(Choices()), (
        f"out of date: run `pathgauge rules --output {RULES.relative_to(DOCS.parent)}`"
    )


@needs_promtool
def test_promtool_reports_no_problem() -> None:
    done = subprocess.run(
        ["promtool", "check", "rules", "--lint=all", "--lint-fatal", RULES],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout.split(), done.stderr) == (
        0,
        ["Checking", str(RULES), "SUCCESS:", str(len(rules())), "rules", "found"],
        "",
    )


def test_rules_read_only_existing_series_and_read_every_record() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    read = {name for rule in rules() for name in NAME.findall(rule["expr"])}
    assert read - recorded <= exported()
    assert recorded - read == set()


def test_records_are_named_level_metric_operation() -> None:
    names = [rule["record"] for rule in rules() if "record" in rule]
    assert [
        name for name in names if not re.fullmatch(r"[a-z_]+:pathgauge_[a-z_]+:[a-z0-9_]+", name)
    ] == []


@pytest.mark.parametrize("rule", ALERTS, ids=lambda rule: rule["alert"])
def test_alerts_have_a_severity_texts_and_a_link_to_the_runbook(
    rule: dict[str, Any],
) -> None:
    assert re.fullmatch(r"Pathgauge[A-Z]\w+", rule["alert"])
    assert rule["labels"]["severity"] in {"critical", "warning", "info", "none"}
    annotations = rule["annotations"]
    assert {*annotations} - {"results_url"} == {"summary", "description", "runbook_url"}
    if {"metric", "scenario", "flag"} & set(re.findall(r"\$labels\.(\w+)", str(annotations))):
        assert annotations["results_url"].startswith("http://localhost:9464/")
    assert re.fullmatch(r"[A-Z][^{}]+\.", annotations["summary"]), "a static sentence"
    assert re.fullmatch(r".+\.", annotations["description"])
    assert annotations["runbook_url"] == f"{RUNBOOKS}/{rule['alert']}.md"
    assert (DOCS / "runbooks" / f"{rule['alert']}.md").is_file()


def test_the_rules_only_use_features_of_prometheus_2_42() -> None:
    assert {key for group in rule_groups() for key in group} == {"name", "interval", "rules"}
    assert {key for rule in rules() for key in rule} == {
        "record",
        "expr",
        "labels",
        "alert",
        "for",
        "keep_firing_for",
        "annotations",
    }

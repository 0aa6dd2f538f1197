"""`pathgauge rules` writes the rule file with the chosen options."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import Result

Run = Callable[..., Result]


def alerts(text: str) -> dict[str, dict[str, Any]]:
    """The alerts by name. Of several with the same name, the first."""
    rules = [
        rule
        for group in yaml.safe_load(text)["groups"]
        for rule in group["rules"]
        if "alert" in rule
    ]
    return {rule["alert"]: rule for rule in reversed(rules)}


def test_the_output_file_has_the_printed_text(run: Run, folder: Path) -> None:
    printed, written = run("rules"), run("rules", "--output", "rules.yml")
    assert (printed.exit_code, written.exit_code, written.stdout) == (0, 0, "")
    assert (folder / "rules.yml").read_text() == printed.stdout
    assert len(alerts(printed.stdout)) == 40


def test_severities_are_renamed_by_alert_and_by_severity(run: Run) -> None:
    found = alerts(
        run(
            "rules", "--severity", "critical=page", "--severity", "PathgaugeStoreNotOk=ticket"
        ).stdout
    )
    assert {
        name: found[name]["labels"]["severity"]
        for name in ("PathgaugeStoreNotOk", "PathgaugeCanaryFailing", "PathgaugeWatchdog")
    } == {
        "PathgaugeStoreNotOk": "ticket",
        "PathgaugeCanaryFailing": "page",
        "PathgaugeWatchdog": "none",
    }


def test_for_applies_to_all_alerts_that_wait_by_default_or_to_one(run: Run) -> None:
    found = alerts(
        run(
            "rules", "--for", "3m", "--for", "PathgaugeStoreNotOk=0s", "--keep-firing-for", "1m"
        ).stdout
    )
    times = {name: (found[name].get("for"), found[name].get("keep_firing_for")) for name in found}
    assert times["PathgaugeScoreBelowThreshold"] == ("3m", "1m")
    assert times["PathgaugeBacklogOld"] == ("3m", None)
    assert (
        times["PathgaugeStoreNotOk"]
        == times["PathgaugeWatchdog"]
        == times["PathgaugeStoreDamaged"]
        == (None, None)
    )


def test_links_use_the_given_urls(run: Run) -> None:
    found = alerts(
        run(
            "rules",
            "--runbook-url",
            "https://wiki.example/runbooks/",
            "--dashboard-url",
            "https://grafana.example/d/a",
        ).stdout
    )
    links = {
        (of["annotations"]["runbook_url"], of["annotations"]["dashboard_url"])
        for of in found.values()
    }
    assert links == {
        (f"https://wiki.example/runbooks/{name}.md", "https://grafana.example/d/a")
        for name in found
    }


@pytest.mark.parametrize(("interval", "slow"), [("1s", "2m"), ("1m30s", "2m"), ("4m", "4m")])
def test_groups_that_read_days_are_evaluated_at_most_every_two_minutes(
    run: Run, interval: str, slow: str
) -> None:
    groups = {
        group["name"]: group["interval"]
        for group in yaml.safe_load(run("rules", "--interval", interval).stdout)["groups"]
    }
    assert {groups[name] for name in groups if name.endswith(".history.rules")} == {slow}
    assert {groups[name] for name in groups if name.endswith(".alerts")} == {interval}


def test_the_options_appear_in_the_expressions(run: Run) -> None:
    text = run("rules", "--job", "scores", "--min-samples", "7", "--sigmas", "2.5").stdout
    found = {name: rule["expr"] for name, rule in alerts(text).items()}
    assert found["PathgaugeInstanceDown"] == 'up{job="scores"} == 0'
    assert found["PathgaugeCollectorDown"] == 'absent(up{job="scores"} == 1)'
    assert "verdicts:increase1h >= 7" in text
    assert "20" not in found["PathgaugeUnmatchedScenarios"]
    assert (
        found["PathgaugeScoreBelowThreshold"] == "agent_scenario_metric:pathgauge_score:shortfall\n"
        "> 2.5 * abs(agent_scenario_metric:pathgauge_threshold:max)\n"
        "  / sqrt(agent_scenario_metric:pathgauge_score_window:samples >= 7)"
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (
            ("--severity", "Pathgauge=page"),
            "--severity: found 'Pathgauge', expected NAME=VALUE with one of"
            " PathgaugeAggregateBreached, ",
        ),
        (("--severity", "critical="), "--severity: found '', expected a word such as page"),
        (("--severity", "critical"), "--severity: found 'critical', expected NAME=VALUE"),
        (
            ("--for", "PathgaugeNothing=5m"),
            (
                "--for: found 'PathgaugeNothing', expected NAME=VALUE with one of"
                " PathgaugeAggregateBreached, "
            ),
        ),
        (("--for", "soon"), "--for: found 'soon', expected a duration such as 30s or 1h30m"),
        (
            ("--interval", "1m1h"),
            "--interval: found '1m1h', expected a duration such as 30s or 1h30m",
        ),
        (
            ("--interval", "0s"),
            "--interval: found '0s', expected more than 0s and less than 5m",
        ),
        (
            ("--interval", "5m"),
            "--interval: found '5m', expected more than 0s and less than 5m",
        ),
        (("--job", 'a"b'), "--job: found 'a\"b', expected letters, digits and any of _.:/-"),
    ],
)
def test_invalid_options_are_rejected_and_nothing_is_written(
    run: Run, folder: Path, arguments: tuple[str, ...], problem: str
) -> None:
    result = run("rules", *arguments, "--output", "rules.yml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"pathgauge: {problem}")
    assert not (folder / "rules.yml").exists()

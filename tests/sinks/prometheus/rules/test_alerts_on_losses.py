"""Lost spans are an alert of their own, and no alert about scores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from support.courses import Course, Values, named, written
from support.promtool import (
    alert_rules,
    alert_test,
    assert_alerts,
    fired,
    needs_promtool,
    rules_for,
    run,
)
from support.repository import DEPLOY

ALERT = "PathgaugeTelemetryLost"
LABELS = {"job": "pathgauge", "severity": "warning", "agent": "support"}
COURSE = Course(blip=1, gap=4, bad=60, good=150)


def lost(
    course: Course, calm: float, bad: float, agent: str = "support", sign: str = "lost_parents"
) -> dict[str, Values]:
    """Invocations that lose spans, by minute."""
    of = {"agent": agent, "reason": sign}
    return {named("pathgauge_lost_telemetry_total", **of): course.counter(calm, bad)}


def invocations(course: Course, rate: float, agent: str = "support") -> dict[str, Values]:
    of = {"agent": agent, "agent_version": "1", "match": "scenario", "status": "ok"}
    return {named("pathgauge_invocations_total", **of): course.counter(rate, rate)}


@needs_promtool
@pytest.mark.parametrize(
    ("rate", "course", "share"),
    [(2, COURSE, "50%"), (0.2, COURSE, "50%")],
    ids=["busy", "12 invocations an hour"],
)
def test_it_fires_within_an_hour_and_ends(
    rate: float, course: Course, share: str, tmp_path: Path
) -> None:
    series: Mapping[str, Values] = {
        **lost(course, 0, rate / 8),
        **lost(course, 0, rate * 3 / 8, sign="missing_root"),
        **invocations(course, rate),
        **lost(course, 0.02, 0.02, agent="other"),
        **invocations(course, 2, agent="other"),
    }
    test = alert_test(course, series, ALERT, (LABELS, ""))
    [alert] = test["alert_rule_test"][0]["exp_alerts"]
    alert["exp_annotations"] |= {
        "description": f'{share} of the invocations of agent "support" have lost spans,'
        " most often with the sign missing_root.",
        "results_url": "http://localhost:9464/results?agent=support&flag=missing_root",
    }
    assert run(tmp_path, rules_for(ALERT), test) == "SUCCESS"


@needs_promtool
def test_a_few_losses_are_no_alert(tmp_path: Path) -> None:
    series = {**lost(COURSE, 0.05, 0.15), **invocations(COURSE, 2)}
    assert_alerts(tmp_path, COURSE, series, ALERT)


@pytest.mark.slow
@needs_promtool
def test_losses_that_ended_do_not_fire_again_when_traffic_falls_in_the_evening(
    tmp_path: Path,
) -> None:
    """A hundred invocations an hour, all of them with losses in the second hour. From the sixth
    hour on there are ten an hour, so that six hours count.
    """
    counts = [0.0]
    losses = [0.0]
    for minute in range(1, 600):
        now = 100 / 60 if minute < 300 else 10 / 60
        counts.append(counts[-1] + now)
        losses.append(losses[-1] + now * (60 <= minute < 120))
    series: Mapping[str, Values] = {
        named("pathgauge_invocations_total", agent="support"): counts,
        named("pathgauge_lost_telemetry_total", agent="support"): losses,
    }
    test = {
        "interval": "1m",
        "input_series": written(series),
        "promql_expr_test": [{**fired(ALERT, 360, 590), "exp_samples": []}],
    }
    assert run(tmp_path, rules_for(ALERT), test) == "SUCCESS"


def test_it_inhibits_all_alerts_about_scores_of_the_agent() -> None:
    config = yaml.safe_load((DEPLOY / "alertmanager" / "alertmanager.yml").read_text())
    [rule] = [
        one for one in config["inhibit_rules"] if one["source_matchers"] == [f"alertname = {ALERT}"]
    ]
    assert rule["equal"] == ["job", "tenant", "agent"]
    [matcher] = rule["target_matchers"]
    pattern = matcher.removeprefix("alertname =~ ").strip('"')
    alerts = {rule["alert"] for rule in alert_rules()}
    assert {one for one in alerts if re.fullmatch(pattern, one)} == {
        "PathgaugeScoreBelowThreshold",
        "PathgaugeScoreDrift",
        "PathgaugeTrafficDrift",
        "PathgaugeVersionDrift",
        "PathgaugeAggregateBreached",
        "PathgaugeFailureBudgetBurn",
        "PathgaugeCoverageDrop",
    }

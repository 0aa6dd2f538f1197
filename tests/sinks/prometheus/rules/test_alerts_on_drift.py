"""The alerts about scores that became worse, from the evidence of the collector."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from support.courses import Course, Values, named
from support.promtool import assert_alerts, needs_promtool
from support.repository import DEPLOY

pytestmark = needs_promtool

COURSE = Course(blip=0, gap=4)
SERIES = {"agent": "support", "scenario": "refund", "metric": "f1"}
LABELS = {"job": "pathgauge", "severity": "warning", **SERIES}
SINCE = 1_795_428_000.0


def drift(against: str, evidence: float, version: str = "v2", **labels: str) -> dict[str, Values]:
    """A stream that has so much evidence in the bad phase."""
    of = {**SERIES, **labels, "against": against}
    shown = {"mean": 0.6, "mean_before": 0.95, "samples": 40.0, "baseline": 0.9}
    return {
        named("pathgauge_drift_limit"): COURSE.gauge(365, 365),
        named("pathgauge_drift_adjusted_evidence_days", **of): COURSE.gauge(1, evidence),
        **{
            named(f"pathgauge_drift_{name}", **of): COURSE.gauge(None, value)
            for name, value in shown.items()
        },
        named("pathgauge_drift_since_timestamp_seconds", **of, agent_version=version): COURSE.gauge(
            None, SINCE
        ),
    }


def misses(share: float, against: str, **labels: str) -> dict[str, Values]:
    of = {**SERIES, "against": against, "kind": "missing", "tool": "search", **labels}
    return {named("pathgauge_drift_misses", **of): COURSE.gauge(None, share)}


TEXT = (
    'f1 of agent "support" in scenario "refund" is 0.6 (mean of 40 scores since 2026-11-23 10:00:00'
    " +0000 UTC) and was 0.95 before; the baseline is 0.9. Version v2 was first seen about then."
)
RARITY = " By chance alone, this much evidence is reached once in"
END = f"{RARITY} 1000 days."


@pytest.mark.parametrize("against", ["threshold", "learned"])
def test_evidence_above_the_limit_says_what_changed(against: str, tmp_path: Path) -> None:
    series: Mapping[str, Values] = drift(against, 1000) | misses(0.75, against)
    text = f"{TEXT} 75% of the loss: missing search.{END}"
    alert = ({**LABELS, "against": against}, text)
    assert_alerts(tmp_path, COURSE, series, "PathgaugeScoreDrift", alert)


def test_differences_that_have_no_name_are_named_so(tmp_path: Path) -> None:
    series = drift("learned", 1000) | misses(0.75, "learned", kind="other", tool="")
    alert = ({**LABELS, "against": "learned"}, f"{TEXT} 75% of the loss: other differences.{END}")
    assert_alerts(tmp_path, COURSE, series, "PathgaugeScoreDrift", alert)


def test_of_several_collectors_that_with_the_most_evidence_is_described(tmp_path: Path) -> None:
    """And not the mean of one with the time and the number of scores of another."""
    series = drift("learned", 1000) | misses(0.75, "learned")
    for name, values in (drift("learned", 500) | misses(0.9, "learned", tool="other")).items():
        more = [value if value is None else value * 1.1 for value in values]
        series[name.replace("a:9464", "b:9464")] = more if "evidence" not in name else values
    series[named("pathgauge_drift_limit", instance="b:9464")] = COURSE.gauge(365, 365)
    alert = ({**LABELS, "against": "learned"}, f"{TEXT} 75% of the loss: missing search.{END}")
    assert_alerts(tmp_path, COURSE, series, "PathgaugeScoreDrift", alert)


def test_a_number_of_days_that_says_nothing_is_not_written(tmp_path: Path) -> None:
    alert = ({**LABELS, "against": "learned"}, f"{TEXT}{RARITY} more than 100 years.")
    series = drift("learned", 111_113_792)
    assert_alerts(tmp_path, COURSE, series, "PathgaugeScoreDrift", alert)


def test_less_evidence_is_no_alert(tmp_path: Path) -> None:
    assert_alerts(tmp_path, COURSE, drift("learned", 364), "PathgaugeScoreDrift")


def test_a_version_that_is_worse_has_an_alert_of_its_own(tmp_path: Path) -> None:
    text = f"{TEXT} 75% of the loss: missing search.{END}"
    alert = ({**LABELS, "against": "version", "agent_version": "v2"}, text)
    series = drift("version", 1000) | misses(0.75, "version")
    series |= misses(1.0, "learned", tool="other") | misses(1.0, "version", judge="j", tool="other")
    assert_alerts(tmp_path, COURSE, series, "PathgaugeVersionDrift", alert)
    assert_alerts(tmp_path, COURSE, series, "PathgaugeScoreDrift")


def test_a_version_is_not_blamed_for_a_change_that_came_later(tmp_path: Path) -> None:
    seen = "pathgauge_agent_version_first_seen_timestamp_seconds"
    series = drift("version", 1000, version="") | {
        named(seen, agent="support", agent_version=version): COURSE.gauge(at, at)
        for version, at in (("v1", 1.0), ("v2", 2.0))
    }
    text = TEXT.replace(
        "v2 was first seen about then", "v2 is the newest, but was first seen at another time"
    )
    alert = ({**LABELS, "against": "version"}, f"{text}{END}")
    assert_alerts(tmp_path, COURSE, series, "PathgaugeVersionDrift", alert)


def test_only_the_alert_about_a_version_that_came_with_the_change_inhibits_others() -> None:
    config = yaml.safe_load((DEPLOY / "alertmanager" / "alertmanager.yml").read_text())
    matchers = [one["source_matchers"] for one in config["inhibit_rules"]]
    assert ["alertname = PathgaugeVersionDrift", 'agent_version != ""'] in matchers


@pytest.mark.parametrize(("explained", "alerts"), [(1000, ["refund"]), (100, [""])])
def test_an_agent_is_an_alert_if_none_of_its_scenarios_is(
    explained: float, alerts: list[str], tmp_path: Path
) -> None:
    series = drift("scenarios", 1000, scenario="") | drift("threshold", explained)
    texts = {
        "refund": f"{TEXT}{END}",
        "": TEXT.replace('in scenario "refund"', "in all its scenarios") + END,
    }
    against = {"refund": "threshold", "": "scenarios"}
    expected = []
    for scenario in alerts:
        labels = {**LABELS, "against": against[scenario], "scenario": scenario}
        labels = {name: value for name, value in labels.items() if value}
        expected.append((labels, texts[scenario]))
    assert_alerts(tmp_path, COURSE, series, "PathgaugeScoreDrift", *expected)


def traffic(evidence: float, **labels: str) -> dict[str, Values]:
    """An agent whose tool calls have so much evidence in the bad phase."""
    of = {"agent": "support", **labels}
    change = {**of, "kind": "tool", "what": "web_search", "direction": "new"}
    less = {**change, "what": "search", "direction": "fewer"}
    return {
        named("pathgauge_drift_limit"): COURSE.gauge(365, 365),
        named("pathgauge_traffic_drift_evidence_days", **of): COURSE.gauge(1, evidence),
        named("pathgauge_traffic_drift_since_timestamp_seconds", **of): COURSE.gauge(None, SINCE),
        named("pathgauge_traffic_drift_changes", **change): COURSE.gauge(None, 0.5),
        named("pathgauge_traffic_drift_changes", **less): COURSE.gauge(None, 0.2),
    }


@pytest.mark.parametrize(("version", "text"), [("", ""), ("v2", " in version v2")])
def test_other_tool_calls_are_an_alert_that_names_the_largest_change(
    version: str, text: str, tmp_path: Path
) -> None:
    labels = {"job": "pathgauge", "severity": "warning", "agent": "support"}
    labels |= {"agent_version": version} if version else {}
    description = (
        f'The tool calls of agent "support"{text} differ from the traffic before since'
        ' 2026-11-23 10:00:00 +0000 UTC. Most of all: tool "web_search" (new).'
        f"{RARITY} 365 days."
    )
    series = traffic(365, agent_version=version) if version else traffic(365)
    assert_alerts(tmp_path, COURSE, series, "PathgaugeTrafficDrift", (labels, description))


def test_of_several_collectors_that_with_the_most_other_tool_calls_is_described(
    tmp_path: Path,
) -> None:
    series = traffic(1000)
    for name, values in traffic(500).items():
        other = name.replace("a:9464", "b:9464").replace("web_search", "shell")
        more = [value if value is None else value * 1.1 for value in values]
        series[other] = values if "evidence" in name or "limit" in name else more
    description = (
        'The tool calls of agent "support" differ from the traffic before since 2026-11-23'
        f' 10:00:00 +0000 UTC. Most of all: tool "web_search" (new).{END}'
    )
    labels = {"job": "pathgauge", "severity": "warning", "agent": "support"}
    assert_alerts(tmp_path, COURSE, series, "PathgaugeTrafficDrift", (labels, description))


def test_usual_tool_calls_are_no_alert(tmp_path: Path) -> None:
    assert_alerts(tmp_path, COURSE, traffic(364), "PathgaugeTrafficDrift")

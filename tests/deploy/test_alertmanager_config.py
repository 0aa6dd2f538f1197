"""The shipped routes of Alertmanager are valid, name existing alerts, and send each severity to its
receiver.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from support.monitoring import installed
from support.promtool import alert_rules
from support.repository import DEPLOY

CONFIG = DEPLOY / "alertmanager" / "alertmanager.yml"
SEVERITIES = {rule["alert"]: rule["labels"]["severity"] for rule in alert_rules()}
RECEIVERS = {"critical": "pager", "warning": "chat", "info": "nobody", "none": "dead-man"}


def amtool(*arguments: str | Path) -> str:
    """Its output; raises if it fails."""
    return subprocess.run(
        [installed("amtool"), *arguments], capture_output=True, text=True, timeout=60, check=True
    ).stdout


def test_amtool_accepts_it() -> None:
    assert "SUCCESS" in amtool("check-config", CONFIG)


@pytest.mark.parametrize(
    "alert",
    [
        "PathgaugeStoreNotOk",
        "PathgaugeScoreDrift",
        "PathgaugeTelemetryIncomplete",
        "PathgaugeWatchdog",
    ],
)
def test_an_alert_goes_to_the_receiver_of_its_severity(alert: str) -> None:
    severity = SEVERITIES[alert]
    found = amtool(
        "config",
        "routes",
        "test",
        f"--config.file={CONFIG}",
        f"alertname={alert}",
        f"severity={severity}",
        "job=pathgauge",
    )
    assert found.strip() == RECEIVERS[severity]


def test_all_named_alerts_exist() -> None:
    named = set(re.findall(r"\bPathgauge\w+", CONFIG.read_text()))
    assert named <= set(SEVERITIES)


def test_a_store_that_cannot_be_written_hides_nothing_about_other_collectors() -> None:
    """Alerts of a single collector have its `instance`; the receiver is busy in the whole job."""
    inhibited = {
        alert: rule["equal"]
        for rule in yaml.safe_load(CONFIG.read_text())["inhibit_rules"]
        if rule["source_matchers"] == ["alertname = PathgaugeStoreNotOk"]
        for alert in re.findall(r"Pathgauge\w+", rule["target_matchers"][0])
    }
    assert inhibited == {
        "PathgaugeReceiverBusy": ["job"],
        "PathgaugeBacklogOld": ["job", "instance"],
        "PathgaugeCanaryFailing": ["job", "instance"],
    }


def test_no_alert_inhibits_itself() -> None:
    """Alertmanager needs a special case for inhibitions whose targets include the source."""
    for rule in yaml.safe_load(CONFIG.read_text())["inhibit_rules"]:
        source = rule["source_matchers"][0].split(" = ")[1]
        targets = " ".join(rule["target_matchers"])
        assert source not in re.sub(r"!~ \S+", "", targets) or "severity" in targets

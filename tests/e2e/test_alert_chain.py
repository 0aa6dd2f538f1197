"""From an agent that gets worse to the message that someone gets: service, Prometheus and
Alertmanager, each restarted on the way.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.browser import chromium, needs_chromium
from support.monitoring import ONLY_MAKE_E2E, Alertmanager, Prometheus, Webhook
from support.ports import free_port
from support.running import FREE_PORTS, PATHGAUGE, Collector, until
from support.sending import Traffic
from support.turns import script

pytestmark = [pytest.mark.e2e, ONLY_MAKE_E2E]

ALERT = "PathgaugeScoreDrift"
REFERENCE = {"scenario": "refund", "expected_tools": ["lookup", "refund"]}
GOOD = script("refund", "lookup", "refund", answer="Refunded.")
BAD = script("refund", "guess", answer="I guess so.")
LABELS = {"alertname": ALERT, "severity": "warning", "against": "threshold", "job": "pathgauge"}
LABELS |= {"agent": "support", "scenario": "refund", "metric": "tool_trajectory_f1"}
PATIENT = {"settle": "1s", "idle": "4s", "max_age": "30s"}
"""A busy machine may take long from one request of a trace to the next. A run that is read without
one of its calls would be a loss before the regression.
"""
EVER = {"start": "2000-01-01T00:00:00Z", "end": "2100-01-01T00:00:00Z"}
COUNT = 'sum(pathgauge_evaluations_total{metric="tool_trajectory_f1"})'


def quick_rules(folder: Path, metrics_port: int) -> Path:
    """The rules as a site writes them that is in a hurry. What keeps firing bridges a restart."""
    written = folder / "rules.yml"
    options = [
        "--for",
        "2s",
        "--keep-firing-for",
        "20s",
        "--interval",
        "1s",
        "--min-samples",
        "5",
        "--runbook-url",
        "https://wiki.example",
        "--results-url",
        f"http://127.0.0.1:{metrics_port}",
    ]
    subprocess.run([PATHGAUGE, "rules", *options, "--output", written], check=True)
    return written


class Chain:
    """Everything from the agent to the webhook."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        (folder / "references.yaml").write_text(yaml.safe_dump(REFERENCE))
        self._folder, self._stack = folder, stack
        self._grpc, self._metrics = free_port(), free_port()
        self.collector = self._start()
        self.webhook = stack.enter_context(Webhook())
        self.alertmanager = stack.enter_context(Alertmanager(folder, self.webhook.url))
        rules = quick_rules(folder, self._metrics)
        self.prometheus = stack.enter_context(
            Prometheus(folder, self._metrics, rules, self.alertmanager.address)
        )
        self.traffic = stack.enter_context(Traffic(self._grpc, GOOD, "support", "2.0"))

    def restart_collector(self) -> None:
        """On the same ports and the same store."""
        assert self.collector.stop() == 0
        self.collector = self._start()

    def has_evaluated_all(self) -> bool:
        """Whether every run that was sent is counted."""
        sent = sum(map(len, self.traffic.traces.values()))
        return self.collector.value("pathgauge_invocations_total") == sent

    def messages(self) -> list[tuple[str, str]]:
        """Who was told what of the alert."""
        return [(receiver, alert["status"]) for receiver, alert in self.webhook.of(ALERT)]

    def _start(self) -> Collector:
        receivers: Any = {"otlp": {"protocols": {"grpc": {"endpoint": f"127.0.0.1:{self._grpc}"}}}}
        collector = Collector(
            self._folder,
            receivers=receivers,
            exporters={"prometheus": {"endpoint": f"127.0.0.1:{self._metrics}"}},
            references=["references.yaml"],
            criteria={"tool_trajectory_f1": 0.9},
            windows={"size": 10, "min_samples": 5},
            store={"path": "data"},
            assembly=PATIENT,
            logging=FREE_PORTS["logging"],
        )
        return self._stack.enter_context(collector)


@pytest.fixture(name="chain")
def _chain(tmp_path: Path) -> Iterator[Chain]:
    with ExitStack() as stack:
        yield Chain(tmp_path, stack)


def assert_two_clicks_lead_to_the_reason(results_url: str) -> None:
    """From the link of the alert to a failed run, and what it did instead of what was expected."""
    with chromium() as browser:
        page = browser.new_page()
        page.goto(results_url)
        page.locator("a[href^='/results/']").first.click()
        calls = page.locator("table", has_text="not called").first
        assert calls.locator("tr", has_text="lookup").count() == 1
        assert calls.locator("tr", has_text="guess").count() == 1


@needs_chromium
def test_a_regression_reaches_the_webhook_outlives_every_restart_and_is_resolved(
    chain: Chain,
) -> None:
    prometheus, alertmanager, traffic = chain.prometheus, chain.alertmanager, chain.traffic
    assert until(lambda: (prometheus.value("max(pathgauge_score_window_samples)") or 0) >= 10)
    assert until(lambda: chain.webhook.of("PathgaugeWatchdog"))
    assert chain.webhook.of("PathgaugeWatchdog")[0][0] == "dead-man"
    assert chain.messages() == []

    with traffic.paused():  # otherwise the last good run may be scored after the first bad one
        assert until(chain.has_evaluated_all)
        traffic.script = BAD
    assert until(chain.messages) == [("chat", "firing")]
    [(_, sent)] = chain.webhook.of(ALERT)
    assert sent["labels"] == LABELS
    assert sent["annotations"]["runbook_url"] == f"https://wiki.example/{ALERT}.md"
    description = sent["annotations"]["description"]
    assert re.fullmatch(
        r'tool_trajectory_f1 of agent "support" in scenario "refund" is [0-9.]+'
        r" \(mean of [0-9]+ scores since [^)]+\) and was 1 before; the baseline is 0\.9\."
        r" Version 2\.0 was first seen about then\."
        r" [0-9.]+% of the loss: (missing|unexpected) (lookup|refund|guess)\."
        r" By chance alone, this much evidence is reached once in"
        r" ([0-9]+ days|more than 100 years)\.",
        description,
    ), description

    assert_two_clicks_lead_to_the_reason(sent["annotations"]["results_url"])

    [found] = until(
        lambda: prometheus.get(
            "query_exemplars", query='pathgauge_evaluations_total{outcome="fail"}', **EVER
        )
    )
    exemplars = {exemplar["labels"]["trace_id"] for exemplar in found["exemplars"]}
    assert exemplars
    assert exemplars <= traffic.traces[BAD.answer]

    before = prometheus.value(COUNT)
    assert before is not None
    chain.restart_collector()
    assert until(lambda: (prometheus.value(COUNT) or 0) > before), "counts go on"
    assert prometheus.value("max(resets(pathgauge_evaluations_total[10m]))") == 0

    silence = {
        "matchers": [{"name": "alertname", "value": "PathgaugeInstanceDown", "isRegex": False}],
        "startsAt": EVER["start"],
        "endsAt": EVER["end"],
        "createdBy": "test",
        "comment": "kept",
    }
    assert alertmanager.ask("/api/v2/silences", silence)
    alertmanager.restart()
    assert [one["comment"] for one in json.loads(alertmanager.ask("/api/v2/silences") or "[]")] == [
        "kept"
    ]

    prometheus.restart()
    assert until(
        lambda: prometheus.value(
            f'count(count_over_time(ALERTS{{alertname="{ALERT}"}}[10m])) and on ()'
            f' ALERTS{{alertname="{ALERT}"}}'
        )
    )
    assert until(lambda: ALERT in alertmanager.alerts())
    assert (prometheus.value(f"max_over_time({COUNT}[10m:1s])") or 0) >= before, (
        "samples from before are kept"
    )
    assert chain.messages() == [("chat", "firing")], (
        "nobody is told twice, and nothing is resolved by a restart"
    )

    traffic.script = GOOD
    assert until(lambda: len(chain.messages()) > 1)
    assert chain.messages() == [("chat", "firing"), ("chat", "resolved")]
    assert chain.webhook.of(ALERT)[-1][1]["labels"] == LABELS


def test_a_collector_that_is_down_silences_what_follows_from_it_and_not_the_watchdog(
    tmp_path: Path,
) -> None:
    def alert(name: str, severity: str = "warning", **labels: str) -> dict[str, Any]:
        return {"labels": {"alertname": name, "severity": severity, **labels}}

    down = alert("PathgaugeCollectorDown", "critical", job="pathgauge")
    others = [
        alert("PathgaugeNoRecentEvaluations", job="pathgauge"),
        alert("PathgaugeConfigReloadFailed", job="elsewhere"),
        alert("PathgaugeWatchdog", "none"),
    ]
    with Webhook() as webhook, Alertmanager(tmp_path, webhook.url) as alertmanager:
        assert alertmanager.ask("/api/v2/alerts", [down]) is not None
        assert until(lambda: webhook.of("PathgaugeCollectorDown"))
        assert alertmanager.ask("/api/v2/alerts", others) is not None
        assert until(lambda: webhook.of("PathgaugeConfigReloadFailed"))
        assert until(lambda: webhook.of("PathgaugeWatchdog"))
        held = {
            name: bool(one["status"]["inhibitedBy"]) for name, one in alertmanager.alerts().items()
        }
    assert held == {
        "PathgaugeCollectorDown": False,
        "PathgaugeNoRecentEvaluations": True,
        "PathgaugeConfigReloadFailed": False,
        "PathgaugeWatchdog": False,
    }
    assert {(receiver, one["labels"]["alertname"]) for receiver, one in webhook.received} == {
        ("pager", "PathgaugeCollectorDown"),
        ("chat", "PathgaugeConfigReloadFailed"),
        ("dead-man", "PathgaugeWatchdog"),
    }

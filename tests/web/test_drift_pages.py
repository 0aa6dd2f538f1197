"""What the pages say about scores that became worse."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from pathgauge import ToolTrajectoryAvgScore
from pathgauge.collector.core.drift.drift import SeriesKey
from pathgauge.collector.core.drift.measure import Measure
from pathgauge.collector.core.drift.registry import Drifts
from pathgauge.collector.core.evaluations.evaluator import Criterion
from pathgauge.collector.core.evaluations.windows import Window
from pathgauge.collector.core.evidence.miss import Miss
from pathgauge.collector.sinks.prometheus.current_scores import CurrentScore
from pathgauge.collector.sinks.prometheus.drift.recording import explained
from pathgauge.collector.sinks.prometheus.labels import AgentVersion
from support.api_client import NORTH, sources, with_tokens
from support.drifted import MEASURE, WALL, drifted
from support.web_client import site, text_of

KEY = SeriesKey("support", "refund", "f1")
FINE = KEY._replace(scenario="fine")
PAGE = "/scenario?agent=support&scenario=refund"
VERSIONS = {AgentVersion("support", "2.5.0"): WALL + 45 * 60}


@pytest.fixture(autouse=True)
def _soon_after_the_scores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: WALL + 86_400)


def pages(drifts: Drifts, versions: Mapping[AgentVersion, float] = VERSIONS) -> TestClient:
    window = Window("support", "refund", "f1", 0.4, 0.0, 20, WALL, values=(1.0, 0.4))
    criterion = Criterion("f1", ToolTrajectoryAvgScore(), 0.9)
    scores = [
        CurrentScore(window, criterion, 5),
        CurrentScore(replace(window, scenario="fine"), criterion, 5),
    ]
    return site(
        sources(None, scores=lambda: scores, drifts=lambda: explained(drifts, versions)),
        dashboard_url="https://grafana.example/{agent}/{scenario}",
    )


def read(drifts: Drifts, path: str = PAGE) -> str:
    answer = pages(drifts).get(path)
    assert answer.status_code == 200, answer.text
    return text_of(answer.text)


def steady(drifts: Drifts, key: SeriesKey = FINE, scores: int = 50, bad: int = 0) -> Drifts:
    for number in range(scores + bad):
        value = 1.0 if number < scores else 0.0
        drifts.observe(key, MEASURE, value, WALL + 60 * number, version="2.4.0")
    return drifts


def test_an_open_alarm_comes_first_with_all_that_is_known_about_it() -> None:
    text = read(drifted(KEY))
    shown = text.index("f1 fell from 1 to 0 Since 2026-11-23 03:03:20")
    assert shown < text.index("Recent scores")
    for part in (
        "Scores became worse",
        "First seen about then version 2.5.0",
        "Compared with the threshold or the objective baseline 0.9",
        "Scores since then 40 newest",
        "Evidence by chance alone, this much is reached once in more than 100 years",
        "missing call: search 100% 1 0",
    ):
        assert part in text
    assert "Do scores become worse?" not in text


def test_without_an_alarm_drift_takes_one_line() -> None:
    page = pages(steady(drifted(KEY))).get("/scenario?agent=support&scenario=fine").text
    assert "<details>\n<summary>No sign of it in 1 comparison</summary>" in page
    assert 'id="worse"' not in page
    text = text_of(page)
    assert (
        "f1 the threshold or the objective 0.9 1 – less than a day no sign"
        in text[text.index("Do scores") :]
    )


def test_evidence_that_is_too_little_for_an_alarm_is_open_to_the_reader() -> None:
    page = pages(steady(Drifts(), KEY, bad=6)).get(PAGE).text
    assert "<details open>" in page
    text = text_of(page)
    assert "1 comparison of 1 with some evidence, too little for an alert" in text
    assert "1 → 0 2026-11-23 03:03:20" in text
    assert 'id="worse"' not in page


def test_a_baseline_that_is_being_learned_is_not_known_yet() -> None:
    drifts = Drifts()
    drifts.observe(KEY, Measure(), 0.8, WALL)
    assert "f1 the scores of the last days not known yet 0.8 – – learning" in read(drifts)


def test_comparisons_that_still_learn_are_not_counted_as_those_without_a_sign() -> None:
    drifts = Drifts()
    drifts.observe(KEY._replace(metric="other"), Measure(), 0.8, WALL)
    assert "Not known yet: 1 comparison still learning" in read(drifts)
    steady(drifts, KEY)
    assert "No sign of it in 1 comparison; 1 still learning" in read(drifts)
    steady(drifts, KEY._replace(metric="third"), bad=6)
    assert "1 comparison of 3 with some evidence, too little for an alert; 1 still" in read(drifts)


def test_a_version_is_compared_with_the_one_before_it() -> None:
    drifts = two_versions(Measure(threshold=0.2))
    seen = {AgentVersion("support", "2"): WALL + 3600 * 100}
    text = text_of(pages(drifts, seen).get(PAGE).text)
    assert "First seen about then version 2 Compared with the version before 2 baseline" in text


def test_what_a_metric_is_compared_with_takes_one_box() -> None:
    page = pages(two_versions(Measure())).get(PAGE).text
    assert page.count('class="card worse"') == 1
    text = text_of(page)
    assert "Compared with the scores of the last days baseline" in text
    assert re.search("Also worse than the version before 2 .baseline 0.9[0-9]+.: by chance", text)


def two_versions(measure: Measure) -> Drifts:
    """The first version only passes, the second one has low scores."""
    drifts = Drifts()
    for hour in range(130):
        score, version = (1.0, "1") if hour < 100 else (0.4, "2")
        drifts.observe(KEY, measure, score, WALL + 3600 * hour, version=version)
    return drifts


def test_an_alarm_of_all_scenarios_together_is_linked() -> None:
    both = drifted(KEY, KEY._replace(scenario="order"))
    together = read(both, "/scenario?agent=support")
    assert "support · all scenarios together" in together
    assert "unknown · no scenario" in read(both, "/scenario?agent=unknown")
    assert "The scores of all scenarios of this agent together became worse" in together
    assert "f1 became worse: its mean is 0 Since" in together
    assert "Compared with the baseline of each scenario baseline 0.9" in together
    listed = together[together.index("Scenarios that became worse") :]
    assert "support · refund f1 1 → 0 2026-11-23" in listed
    assert "support · order f1" in listed
    assert "this scenario" not in together


def test_an_alarm_that_one_scenario_explains_is_not_told_twice() -> None:
    """As alerts: `PathgaugeScoreDrift` leaves out the agent while one of its scenarios fires."""
    drifts = steady(steady(Drifts(), FINE), KEY, bad=40)
    together = next(one for one in drifts.snapshot() if one.against == "scenarios")
    assert together.alarm
    assert "All scenarios of this agent together" not in read(drifts)
    overview = read(drifts, "/")
    assert "support · refund f1 1 → 0" in overview
    assert "all scenarios together" not in overview


def test_scenarios_that_became_worse_only_together_link_to_the_agent() -> None:
    keys = [KEY._replace(scenario=f"scenario {number}") for number in range(30)]
    drifts = Drifts()
    for number in range(14):
        for index, key in enumerate(keys):
            value = 1.0 if number < 10 else float((number + index) % 2)
            drifts.observe(key, MEASURE, value, WALL + 60 * number)
    alarms = {one.against for one in drifts.snapshot() if one.alarm}
    assert alarms == {"scenarios"}
    text = read(drifts, "/scenario?agent=support&scenario=scenario%201")
    assert "All scenarios of this agent together became worse: f1 ." in text
    assert "support · all scenarios together f1" in read(drifts, "/")


def test_an_alarm_without_new_scores_says_that_alerts_are_silent() -> None:
    def stream(start: float) -> Drifts:
        drifts = Drifts()
        for number in range(90):
            drifts.observe(KEY, MEASURE, float(number < 50), start + 60 * number)
        return drifts

    silent = "No score has come for days, so alerts are silent about it now."
    now = time.time()
    assert silent in read(stream(now - 4 * 86_400))
    assert silent not in read(stream(now - 2 * 86_400))
    assert "became worse" not in read(stream(now - 4 * 86_400), "/")
    assert "became worse" in read(stream(now - 2 * 86_400), "/")


def test_the_overview_lists_alarms_first_and_marks_their_scenarios() -> None:
    drifts = steady(drifted(KEY, KEY._replace(metric="other")))
    text = read(drifts, "/")
    assert (
        "Scores that became worse Agent and scenario Criterion Mean before → since Since"
        " First seen about then Most of the loss"
        " support · refund f1 and 1 further alert 1 → 0 2026-11-23 03:03:20"
    ) in text
    assert "version 2.5.0 missing call: search 100%" in text
    assert "support · refund breached became worse newest" in text
    assert "support · fine breached newest" in text


def test_the_overview_does_not_ask_for_spans_while_an_alarm_is_open() -> None:
    drifts = explained(drifted(KEY), VERSIONS)
    text = text_of(site(sources(None, drifts=lambda: drifts)).get("/").text)
    assert "Scores that became worse" in text
    assert "No results yet" not in text


def test_the_overview_without_an_alarm_does_not_mention_drift() -> None:
    assert "worse" not in read(steady(Drifts()), "/").replace("worst", "")


def test_more_alarms_than_the_overview_lists_are_counted() -> None:
    keys = [KEY._replace(agent=f"agent {number}") for number in range(12)]
    text = read(drifted(*keys), "/")
    assert "2 further pairs of agent and scenario became worse." in text


def test_names_of_tools_are_text() -> None:
    drifts = Drifts()
    for number in range(90):
        misses = () if number < 50 else (Miss("argument", "<b>\u202e", "<i>id"),)
        drifts.observe(KEY, MEASURE, float(number < 50), WALL + 60 * number, misses=misses)
    page = pages(drifts).get(PAGE).text
    assert "&lt;b&gt;‹U+202E›" in page
    assert "&lt;i&gt;id" in page
    assert "wrong argument: <b>‹U+202E› <i>id 100%" in text_of(page)


def test_a_tenant_reads_only_about_its_own_scores(tmp_path: Path) -> None:
    drifts = drifted(KEY._replace(tenant="south"))
    found = site(sources(None, drifts=lambda: explained(drifts)), with_tokens(tmp_path))
    headers = {"authorization": f"Bearer {NORTH}"}
    for path in ("/", f"{PAGE}&tenant=south"):
        answer = found.get(path, headers=headers)
        assert (answer.status_code, "became worse" in answer.text) == (200, False)


@pytest.mark.parametrize("path", ["/", PAGE])
def test_a_collector_without_drift_detection_says_nothing_about_it(path: str) -> None:
    text = read(Drifts(), path)
    assert "became worse" not in text
    assert "Do scores become worse?" not in text

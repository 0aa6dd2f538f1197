"""Alerts about scores of judge models. Each judge is compared with itself, so that a change of the
judge does not look like a change of the agent.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from support.courses import Course, Values, named
from support.promtool import (
    alert_test,
    always_firing,
    assert_alerts,
    needs_promtool,
    rules_for,
    run,
)

pytestmark = needs_promtool

ONE = "gpt-4.1-mini@1f3a9c20"
SERIES = {"agent": "support", "scenario": "refund", "metric": "quality"}
BURN = Course(calm=60, bad=80, good=30)
WHO = f'quality by {ONE} of agent "support" in scenario "refund"'


def alert(severity: str, text: str, **labels: str) -> tuple[dict[str, str], str]:
    return {"job": "pathgauge", "severity": severity, **SERIES, "judge": ONE, **labels}, text


def verdicts(course: Course) -> dict[str, Values]:
    of = {**SERIES, "agent_version": "1.0", "judge": ONE}
    return {
        named("pathgauge_evaluations_total", outcome="fail", **of): course.counter(0.02, 2),
        named("pathgauge_evaluations_total", outcome="pass", **of): course.counter(1.98, 0),
        named("pathgauge_objective", **{**SERIES, "judge": ONE}): course.gauge(0.95, 0.95),
    }


def test_failures_under_one_judge_burn_its_budget(tmp_path: Path) -> None:
    text = (
        f"100% of the 120 verdicts on {WHO} failed in 1h, more than 6 times the share that the SLO"
        " allows (5 %)."
    )
    assert_alerts(
        tmp_path,
        BURN,
        verdicts(BURN),
        "PathgaugeFailureBudgetBurn",
        alert("critical", text, window="1h"),
        window="1h",
    )


@pytest.mark.slow
def test_failures_under_a_removed_judge_burn_nothing(tmp_path: Path) -> None:
    """Its objective is no longer exported."""
    turn = BURN.turning - 10
    ended = {
        name: [*values[:turn], *[None] * (len(values) - turn)]
        for name, values in verdicts(BURN).items()
    }
    test = alert_test(BURN, ended, "PathgaugeFailureBudgetBurn")
    test["alert_rule_test"][0]["eval_time"] = f"{turn + 20}m"
    assert run(tmp_path, rules_for("PathgaugeFailureBudgetBurn", window="1h"), test) == "SUCCESS"


AGREED = Course(calm=60, bad=60, good=60)
PEOPLE = {"metric": "quality", "judge": ONE}


def agreement(
    course: Course, pairs: float, metric: dict[str, str] | None = None
) -> dict[str, Values]:
    """The upper bound of kappa falls below the limit, and recovers."""
    of = PEOPLE if metric is None else metric
    return {
        named("pathgauge_feedback_kappa_upper", **of): course.gauge(0.9, 0.3),
        named("pathgauge_feedback_pairs", **of): course.gauge(pairs, pairs),
        named("pathgauge_feedback_min_kappa"): course.gauge(0.4, 0.4),
        named("pathgauge_feedback_min_pairs"): course.gauge(20, 20),
    }


@pytest.mark.parametrize(
    ("tenant", "whose"), [({}, ""), ({"tenant": "north"}, ' of tenant "north"')], ids=["", "north"]
)
def test_a_judge_that_departs_from_people_raises_an_alert(
    tenant: dict[str, str], whose: str, tmp_path: Path
) -> None:
    of = {**PEOPLE, **tenant}
    text = (
        f"Cohen's kappa of quality by {ONE} and of people{whose} is below 0.30 with a confidence of"
        " 95 %, which is less than feedback.min_kappa."
    )
    assert_alerts(
        tmp_path,
        AGREED,
        agreement(AGREED, 20, of),
        "PathgaugeJudgeDepartsFromPeople",
        ({"job": "pathgauge", "severity": "warning", **of}, text),
    )


def test_a_restart_does_not_end_the_disagreement_of_a_judge_with_people(tmp_path: Path) -> None:
    departs = agreement(Course(calm=0, blip=0, gap=0, bad=150, good=0), 20)
    series = {name: [*values[:60], *[None] * 3, *values[63:]] for name, values in departs.items()}
    alert = "PathgaugeJudgeDepartsFromPeople"
    assert run(tmp_path, rules_for(alert), always_firing(alert, series, 40, 140)) == "SUCCESS"


@pytest.mark.parametrize(
    ("pairs", "metric"), [(19, PEOPLE), (20, {"metric": "tool_calls", "judge": ""})]
)
def test_few_answers_and_criteria_without_a_model_raise_none(
    tmp_path: Path, pairs: float, metric: dict[str, str]
) -> None:
    test = alert_test(AGREED, agreement(AGREED, pairs, metric), "PathgaugeJudgeDepartsFromPeople")
    assert run(tmp_path, rules_for("PathgaugeJudgeDepartsFromPeople"), test) == "SUCCESS"
